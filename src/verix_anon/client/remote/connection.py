"""Send requests to a service: one at a time, bounded, and tried again while that may help.

The token goes to the one service that was named, and nowhere else: no redirect is followed, and no
error repeats it. No answer is read past its limit, nor for longer than a slow line would take. The
time counts from the first byte of the request: headers that trickle, or interim answers without
end, do not renew it.
"""

import math
import re
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partialmethod
from random import Random
from typing import TYPE_CHECKING, Any

from verix_anon.client.arguments import check_fields
from verix_anon.client.remote.answers import RemoteProblem
from verix_anon.errors import ProviderError, TableError
from verix_anon.fields import printable
from verix_anon.files.optional_packages import need
from verix_anon.files.store import FilePath, reason
from verix_anon.files.trust import keys_that_count
from verix_anon.progress import Progress, ignore
from verix_anon.protocol.envelopes import PublicKey
from verix_anon.protocol.providers import is_loopback

if TYPE_CHECKING:
    import httpx2


FIRST, MOST = 0.25, 30.0
"""Seconds: what is waited at first and at the most, before jitter."""
MOST_ASKED = 300.0
"""Seconds that a service may ask for at once."""
now, sleep = time.monotonic, time.sleep
TIMEOUT = 60.0
"""Seconds without a byte after which a connection counts as lost."""
LEAST_RATE = 1024
"""Bytes a second below which, TIMEOUT apart, a request counts as lost."""
PIECE = 1 << 16
"""What is written at once, so that each piece is timed."""
MOST_ANSWER = 16 << 20
MOST_PROBLEM = 1 << 16
GREETING = 15.0
"""Seconds of patience with a service that never answered: its address may be wrong."""
TOKEN = re.compile(r"[!-~]{1,4096}")
BUSY = frozenset({408, 429, 502, 503, 504, 507})
AGAIN = frozenset({"idempotency-key-in-flight"})
"""Codes that ask for the same again later, whatever their status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteOptions:
    """What the caller may choose about the way to a service.

    Examples:
        >>> options = verix_anon.RemoteOptions(keep=True)
        >>> provider = verix_anon.RemoteProvider("https://host", "token", options=options)
    """

    provider_keys: Sequence[FilePath] = ()
    """Files of the provider's keys, or of what was pinned; one of them must sign the delivery"""
    keep: bool = False
    """Whether the job stays at the service after its delivery came"""
    insecure_http: bool = False
    """Whether a token may go unencrypted to another machine"""
    ca_file: FilePath | None = None
    """Certificates of the authorities that are trusted, in place of the system's"""
    patience: float = 600.0
    """Seconds after which a service that does not answer is given up"""
    wait: float = math.inf
    """Seconds after which a job that is not done is given up; it stays there"""
    seed: int | None = None
    """The seed of the waits' jitter, for tests"""
    progress: Progress = ignore

    def __post_init__(self) -> None:
        check_fields(self)
        if not (self.patience >= 0 and self.wait >= 0):
            raise TableError("patience and wait must be numbers of seconds, 0 or more")

    def keys(self) -> tuple[PublicKey, ...]:
        """The provider's keys that count now."""
        return keys_that_count(self.provider_keys)


class Waiting:
    """The waits between attempts at one thing; what advances begins again."""

    def __init__(self, patience: float, seed: int | None) -> None:
        self.patience = patience
        self.silence = math.inf
        """Patience until the service says for the first time when to come again."""
        # Jitter spreads clients that lost the same service; no one gains by guessing it.
        self.random = Random(seed)  # noqa: S311
        self.advanced()

    def advanced(self) -> None:
        """Something was achieved: patience and the waits begin again."""
        self.tries, self.since = 0, now()

    def next_delay(self, asked: float | None = None) -> float | None:
        """Seconds to wait now, not fewer than the service asked for; None if it took too long."""
        if asked is not None:
            self.silence = math.inf
        if now() - self.since > min(self.patience, self.silence):
            return None
        if asked is not None:
            # The service knows better when there is room. Jitter comes on top: else all who were
            # told the same come at once.
            return min(max(asked, FIRST), MOST_ASKED) * self.random.uniform(1.0, 1.25)
        most = min(MOST, FIRST * 2.0 ** min(self.tries, 20))
        self.tries += 1
        return self.random.uniform(most / 2, most)


class Lost(Exception):  # noqa: N818, because it is not an error before patience ends
    """An attempt that failed in a way that another one may not."""

    def __init__(self, why: str, asked: float | None = None) -> None:
        super().__init__(why)
        self.asked = asked
        """Seconds after which the service asks to be asked again."""


class RefusedError(ProviderError):
    """The service says no, and would again."""

    def __init__(self, problem: RemoteProblem) -> None:
        super().__init__(f"the service refused: {problem}")
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Deadline:
    """When a request is given up: a minute, and more by what was moved at the least rate."""

    began, moved = 0.0, 0

    def begin(self) -> None:
        """From now on it is another request's."""
        self.began, self.moved = now(), 0

    def left(self, most: float | None = None) -> float:
        """Seconds that the next step may take, and `most` at most; Lost if there are none."""
        left = self.began + TIMEOUT + self.moved / LEAST_RATE - now()
        if left <= 0:
            raise Lost("its answer only trickles")
        return left if most is None else min(left, most)


class _Timed:
    """A way to the network, or a stream, of the HTTP library's: each step ends by the deadline."""

    def __init__(self, inner: Any, deadline: Deadline) -> None:
        self._inner, self._deadline = inner, deadline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _made(self, name: str, *of: Any, timeout: float | None = None, **more: Any) -> "_Timed":
        made = getattr(self._inner, name)(*of, timeout=self._deadline.left(timeout), **more)
        return _Timed(made, self._deadline)

    connect_tcp, start_tls = partialmethod(_made, "connect_tcp"), partialmethod(_made, "start_tls")

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        found: bytes = self._inner.read(max_bytes, timeout=self._deadline.left(timeout))
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), PIECE):
            piece = buffer[start : start + PIECE]
            self._inner.write(piece, timeout=self._deadline.left(timeout))
            self._deadline.moved += len(piece)


class Connection:
    """Requests to one service, in the name of one token."""

    def __init__(self, url: str, token: str, options: RemoteOptions) -> None:
        need("httpx2", "remote", "a remote provider", ProviderError)
        self.base = _checked(url, insecure_http=options.insecure_http)
        if not isinstance(token, str) or not TOKEN.fullmatch(token):
            raise ProviderError("the token must be printable ASCII without blanks")
        self.options, self._token = options, token
        self.deadline = Deadline()
        self.keys = options.keys()
        self._authorities = _authorities(self.base, options)

    @cached_property
    def client(self) -> "httpx2.Client":
        """Made when it is first needed: reading the system's certificates takes 0.1 s."""
        import httpx2

        client = httpx2.Client(
            headers={
                "Authorization": f"Bearer {self._token}",
                # What is packed could unfold without end.
                "Accept-Encoding": "identity",
                "User-Agent": "verix-anon",
            },
            timeout=httpx2.Timeout(TIMEOUT),
            follow_redirects=False,
            # A proxy of the environment's would see the token of a plain connection.
            trust_env=self.base.startswith("https:"),
            verify=self._authorities,
        )
        for transport in (client._transport, *client._mounts.values()):
            # The library bounds each read and no request: a byte a second would last for ever.
            if (pool := getattr(transport, "_pool", None)) is not None:
                pool._network_backend = _Timed(pool._network_backend, self.deadline)
        return client

    def __repr__(self) -> str:
        return f"<Connection to {self.base}>"

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def waiting(self, patience: float | None = None) -> Waiting:
        """Waits for the attempts at one thing."""
        most = self.options.patience
        return Waiting(most if patience is None else min(most, patience), self.options.seed)

    def insist(self, method: str, path: str, waits: Waiting | None = None, **more: Any) -> Response:
        """Ask again while the answer is Lost and patience lasts, and return it."""
        waits = waits or self.waiting()
        while True:
            try:
                return self.ask(method, path, **more)
            except Lost as lost:
                self.pause(lost, waits)

    def pause(self, lost: Lost, waits: Waiting) -> None:
        """Wait before the next attempt, or give up."""
        delay = waits.next_delay(lost.asked)
        if delay is None:
            raise ProviderError(f"the service at {self.base} does not serve ({lost})") from None
        sleep(delay)

    def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Response:
        """One request and its whole answer.

        Raises:
            Lost: it may be tried again.
            RefusedError: it may not.
        """
        with self.stream(method, path, headers=headers, content=content) as (status, found, body):
            return Response(status, found, _gathered(body, MOST_ANSWER))

    def get(self, path: str, patience: float | None = None) -> Response:
        """Get a path, and try again while patience lasts."""
        return self.insist("GET", path, self.waiting(patience))

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Iterator[tuple[int, Mapping[str, str], Iterator[bytes]]]:
        """Status, headers and the pieces of one answer that is not a problem."""
        import httpx2

        self.deadline.begin()
        try:
            request = self.client.stream(
                method, self.base + path, headers=dict(headers or {}), content=content
            )
            with request as response:
                pieces = self._in_time(response)
                if response.status_code >= 300:
                    raise _failure(response, pieces)
                yield response.status_code, response.headers, pieces
        except httpx2.TransportError as error:
            raise _lost(error) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise ProviderError(f"the service answers no HTTP ({_words(error)})") from None

    def _in_time(self, response: "httpx2.Response") -> Iterator[bytes]:
        """The pieces of an answer as they come; one that only trickles is Lost."""
        for piece in response.iter_raw():
            self.deadline.moved += len(piece)
            yield piece
            self.deadline.left()


def _checked(url: str, *, insecure_http: bool) -> str:
    """The address without its last slash, if a token may go there."""
    import httpx2

    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError):
        raise ProviderError("the service's address must be a URL such as https://host") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ProviderError("the service's address must be a URL such as https://host")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise ProviderError("the service's URL must have no user, no query and no fragment")
    if parsed.scheme == "http" and not insecure_http and not is_loopback(parsed.host):
        raise ProviderError(
            f"http:// would send the token unencrypted to {printable(parsed.host, 80)}; use"
            " https://, or allow it (--insecure-http)"
        )
    return str(parsed).rstrip("/")


def _authorities(base: str, options: RemoteOptions) -> ssl.SSLContext | bool:
    if base.startswith("http:"):
        # Whatever else, no one is trusted.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if options.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=options.ca_file)
    except OSError as error:
        # An SSLError is one too: the file is there, and holds no certificate.
        raise TableError(f"{options.ca_file} holds no certificates ({reason(error)})") from None


def _gathered(pieces: Iterator[bytes], most: int) -> bytes:
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) > most:
            raise ProviderError(f"the service's answer is larger than {most:,} bytes")
    return bytes(found)


def _failure(response: "httpx2.Response", pieces: Iterator[bytes]) -> Exception:
    status = response.status_code
    if status < 400:
        return ProviderError(
            "the service redirects to another address, which does not get the token; give the"
            " final URL"
        )
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
    is_problem = kind == "application/problem+json"
    data = _gathered(pieces, MOST_PROBLEM) if is_problem else b""
    problem = RemoteProblem.parse(status, data)
    if status in BUSY or problem.code in AGAIN:
        return Lost(str(problem), asked_seconds(response.headers))
    return RefusedError(problem)


def asked_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds after which the service asks to be asked again."""
    text = headers.get("Retry-After", "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _lost(error: Exception) -> Exception:
    """What a failure of the connection means: that it may be tried again, or not."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = printable(cause.verify_message, 100)
            return ProviderError(
                f"the service's certificate is not trusted ({why}); if the provider has"
                " an authority of its own, give its certificate (--ca-file)"
            )
        cause = cause.__cause__ or cause.__context__
    return Lost(_words(error))


def _words(error: Exception) -> str:
    return printable(str(error), 100) or type(error).__name__
