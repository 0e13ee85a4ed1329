"""What differs between operating systems: locks, permissions, processes and limits.

Everything here looks at what the system offers, not at its name. POSIX systems have all of it.
Windows lacks most of it, and then the safest equivalent stands here; docs/threat-model.md says what
is weaker there. How files are opened without following links stands in `files/store.py`.
"""

import contextlib
import errno
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
    import resource
except ImportError:
    IS_POSIX = False
else:
    IS_POSIX = True


def settle(path: Path, mode: int) -> None:
    """Give a file or folder its mode and see it on the disk; raises OSError."""
    if IS_POSIX:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    elif path.is_dir():
        # Windows writes a folder's entries by itself.
        return
    else:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        if IS_POSIX:
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private(path: Path) -> None:
    """Let only this user at a file or folder that is new; raises OSError.

    A mode of 0600 says nothing to Windows. There the file gets an access list with one entry.
    """
    if IS_POSIX:
        path.chmod(0o700 if path.is_dir() else 0o600)
        return
    rights = "(OI)(CI)F" if path.is_dir() else "F"
    user = f"{os.environ.get('USERDOMAIN', '.')}\\{os.environ.get('USERNAME', '')}"
    words = ["icacls", str(path), "/inheritance:r", "/grant:r", f"{user}:{rights}"]
    done = subprocess.run(words, capture_output=True, check=False)  # noqa: S603, because the system's own program is run
    if done.returncode:
        raise OSError(errno.EACCES, "its access list cannot be set")


def is_own(descriptor: int) -> bool:
    """Whether an open file belongs to this user, and no one else may read it."""
    if not IS_POSIX:
        return True
    about = os.fstat(descriptor)
    return about.st_uid == os.getuid() and not stat.S_IMODE(about.st_mode) & 0o077


@contextlib.contextmanager
def held(path: Path, descriptor: int, *, shared: bool = False, patience: float) -> Iterator[None]:
    """Hold an open file against other processes. The lock ends with the process in any case.

    Where files cannot be locked by their descriptor, a file `.lock` beside it is locked.

    Raises:
        BlockingIOError: Another process holds it for longer than so many seconds.
        OSError: It cannot be locked.
    """
    if not IS_POSIX:
        import filelock

        beside = filelock.FileLock(f"{path}.lock")
        try:
            beside.acquire(timeout=patience)
        except filelock.Timeout:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process holds it") from None
        try:
            yield
        finally:
            beside.release()
        return
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= end:
                raise BlockingIOError(errno.EWOULDBLOCK, "another process holds it") from None
            time.sleep(0.02)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def limit_memory(room: int) -> None:
    """Limit the memory of this process to so many bytes more, where the system can."""
    if not IS_POSIX:
        return
    pages = Path("/proc/self/statm")
    used = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 0
    # The program that started this one may have set a limit, which cannot be raised.
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = used + room if hard == resource.RLIM_INFINITY else min(used + room, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_group(process: int, *, at_once: bool) -> None:
    """End a process that leads a session of its own, and everything that it started.

    Windows has neither sessions nor SIGTERM. There the processes are looked up, and ended at once.
    """
    if IS_POSIX:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL if at_once else signal.SIGTERM)
        return
    import psutil  # type: ignore[import-untyped, unused-ignore]

    with contextlib.suppress(psutil.NoSuchProcess):
        leader = psutil.Process(process)
        for each in [*leader.children(recursive=True), leader]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()


def interrupt() -> None:
    """Interrupt this process as Ctrl-C does, from a thread that is not the main one."""
    if IS_POSIX:
        # A real signal: it also ends a system call that waits.
        os.kill(os.getpid(), signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


def prepare_console() -> None:
    """Print what the console cannot show as escapes, instead of failing over it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower() != "utf-8":
            stream.reconfigure(errors="backslashreplace")
