"""Who is let in: a link that works once, and the sessions that browsers got for such links.

There is one link at a time. It lies in a file of mode 0600 in the desk's folder, as Jupyter's does:
anybody who can read the file is the desk's user. Once a browser has used the link, a new one takes
its place. Nothing else about sessions leaves the process, so links and sessions end with it.

The desk holds a lock on the file while it runs. The lock ends with the process, even if the process
is killed. So the link of a desk that was killed is never shown. By then another program may listen
on its port.
"""

import hmac
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock

from verix_anon.errors import TableError
from verix_anon.files.store import BINARY, NO_LINK
from verix_anon.platform import held, is_own

FILE = ".verix-desk.url"
LONGEST = 1 << 12


class Sessions:
    """The token and the sessions of one desk; only the digests of sessions are kept."""

    def __init__(self, note: Callable[[str], None] = lambda token: None) -> None:
        self._key = secrets.token_bytes(32)
        self._known: set[bytes] = set()
        self._lock = Lock()
        self._note = note
        self._renew()

    def _renew(self) -> None:
        self.token = secrets.token_urlsafe(32)
        """What lets one browser in, once."""
        self._note(self.token)

    def exchange(self, token: str) -> str | None:
        """Return a session for the token, and replace the token by a new one."""
        session = secrets.token_urlsafe(32)
        with self._lock:
            if not hmac.compare_digest(_digest(token), _digest(self.token)):
                return None
            self._renew()
            self._known.add(_digest(session))
        return session

    def knows(self, session: str) -> bool:
        """Whether this process made the session."""
        return _digest(session) in self._known

    def csrf(self, session: str) -> str:
        """Return the token that every form of a session holds."""
        return hmac.new(self._key, session.encode(), sha256).hexdigest()

    def is_csrf(self, session: str, given: str) -> bool:
        """Whether the token that a form holds is the session's."""
        return hmac.compare_digest(self.csrf(session).encode(), given.encode())


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


@contextmanager
def link_file(folder: Path) -> Iterator[Callable[[str], None]]:
    """Hold the folder's link file while the desk runs; yield a function that writes a link into it.

    Raises:
        TableError: Another desk runs for this folder, or the file is not this user's own.
    """
    path = folder / FILE
    descriptor = _open(path, os.O_RDWR | os.O_CREAT)

    def write(link: str) -> None:
        # All links of a desk have the same length, so a reader never sees half of one.
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, link.encode())
        os.ftruncate(descriptor, len(link))

    try:
        with _held(path, descriptor) as is_held:
            if not is_held:
                raise TableError(
                    f"a desk is running for {folder}; its address: verix-anon desk {folder} --url"
                )
            try:
                yield write
            finally:
                os.ftruncate(descriptor, 0)
                # Windows removes no file that is open; an empty one holds no link.
                with suppress(PermissionError):
                    path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def link_of(folder: Path) -> str | None:
    """Return the link that lets a browser in, once; None if no desk runs for this folder.

    Raises:
        TableError: The file is not this user's own.
    """
    path = folder.resolve() / FILE
    try:
        descriptor = _open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        with _held(path, descriptor) as is_held:
            return None if is_held else os.read(descriptor, LONGEST).decode() or None
    finally:
        os.close(descriptor)


@contextmanager
def _held(path: Path, descriptor: int) -> Iterator[bool]:
    """Hold the file's lock, or yield False if another process that runs has it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(held(path, descriptor, patience=0.0))
        except BlockingIOError:
            yield False
            return
        except OSError as error:
            raise TableError(f"{FILE} cannot be locked ({error.strerror})") from None
        yield True


def _open(path: Path, flags: int) -> int:
    """Open the file if it is this user's own and for nobody else."""
    try:
        descriptor = os.open(path, flags | NO_LINK | BINARY, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror})") from None
    if not is_own(descriptor):
        os.close(descriptor)
        raise TableError(f"{path} is not this user's own; it is not believed")
    return descriptor
