"""Serve HTTP on one socket until SIGTERM or SIGINT, for the desk and the service.

Connections are counted from the moment they are taken, so that silent ones, and those that never
end their TLS handshake, leave room for others. A request's headers must come in time.
"""

import asyncio
import signal
import socket
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from verix_anon.errors import ProviderError

BACKLOG = 512
HEADER_SECONDS = 15.0
OTHER_FILES = 256
"""Descriptors that are left for files, the database and the store"""


class _Connection(socket.socket):
    """A connection that is counted until it is closed."""

    listener: "Listener"
    address: str

    def close(self) -> None:
        """Close it; once more changes nothing."""
        if self.fileno() >= 0:
            # An address without connections is forgotten.
            self.listener.open -= Counter((self.address,))
        super().close()


class Listener(socket.socket):
    """Takes connections up to a number in all, and from one address beyond this machine."""

    def __init__(self, fileno: int) -> None:
        super().__init__(fileno=fileno)
        self.open = Counter[str]()
        # 0 for any number.
        self.most = self.per_address = 0

    def limit(self, most: int, per_address: int) -> None:
        """Take no more than so many, nor more than this process may have files open."""
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= soft < most + OTHER_FILES:
            soft = most + OTHER_FILES if hard < 0 else min(hard, most + OTHER_FILES)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            most = max(1, soft - OTHER_FILES)
        self.most, self.per_address = most, per_address

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; one too many is closed, which counts as aborted."""
        taken, address = super().accept()
        host, others = address[0], self.open
        is_near = host == "::1" or host.startswith("127.")
        is_many = self.per_address and not is_near and others[host] >= self.per_address
        if is_many or (self.most and others.total() >= self.most):
            taken.close()
            raise ConnectionAbortedError
        made = _Connection(fileno=taken.detach())
        made.listener, made.address = self, host
        others[host] += 1
        return made, address


class _Protocol(H11Protocol):
    """Lets a connection go whose next request's headers do not come in time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEADER_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def listener(host: str, port: int) -> Listener:
    """A socket that takes connections; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, port), family=family, backlog=BACKLOG)
        made = Listener(fileno=opened.detach())
        # Connections inherit it: without, each answer on a kept connection waits 40 ms for an ACK.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    except OSError as error:
        raise ProviderError(
            f"{host} port {port} cannot be listened on ({error.strerror})"
        ) from None


def end_by_signal() -> None:
    """From now on a signal leaves this process by its `with` statements.

    uvicorn raises the signal once more when it has closed, and then what runs beside is ended.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))


def serve(
    app: Any, on: socket.socket, *, grace: int, tls: tuple[Path | None, Path | None] = (None, None)
) -> None:
    """Answer requests; those that last longer than so many seconds after a signal are cut.

    `tls` is the file of a certificate and that of its key.
    """
    certificate, key = tls
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        # A URL may hold a token.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=grace,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    uvicorn.Server(config).run(sockets=[on])
