"""Take from verix_anon what Windows lacks: put this folder on PYTHONPATH of a process to be tried.

Only modules of the package see a system without POSIX. Python's own modules and other packages
were made for the system that really runs, and would break.
"""

import builtins
import contextlib
import os
import re
import signal
import sys
import types
import warnings

BLOCKED = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "syslog"}
NOT_IN_OS = {
    *("fork", "killpg", "getuid", "geteuid", "getgid", "fchmod", "chown", "fchown", "mkfifo"),
    *("pread", "preadv", "pwrite", "pwritev", "uname", "sysconf", "sched_getaffinity", "setsid"),
    *("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC", "O_TMPFILE", "getpgid", "statvfs"),
}
NOT_IN_SIGNAL = {"SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE"}
_import = builtins.__import__


class _Lacking(types.ModuleType):
    """A module without some of its names; the rest is that of the real one."""

    def __init__(self, real: types.ModuleType, lacks: set[str], **others: object) -> None:
        super().__init__(real.__name__)
        self.__dict__.update({"_real": real, "_lacks": lacks, **others})

    def __getattr__(self, name: str) -> object:
        if name in self.__dict__["_lacks"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return getattr(self.__dict__["_real"], name)


def _open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return os.open(path, flags, mode)


def _stat(path: str, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> object:
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    return os.stat(path, follow_symlinks=follow_symlinks)


def _scandir(path: object = ".") -> object:
    if isinstance(path, int):
        raise NotImplementedError("scandir: path should be string, not int")
    return os.scandir(path)  # type: ignore[call-overload]


def _fsync(descriptor: int) -> None:
    os.write(descriptor, b"")  # Windows syncs only what can be written.
    os.fsync(descriptor)


def _kill(process: int, number: int) -> None:
    raise AssertionError("on Windows os.kill ends the process at once, whatever the signal")


LACKING = {
    "os": _Lacking(
        os, NOT_IN_OS, open=_open, stat=_stat, scandir=_scandir, fsync=_fsync, kill=_kill
    ),
    "signal": _Lacking(signal, NOT_IN_SIGNAL),
}


def _imported(name, globals=None, locals=None, fromlist=(), level=0):  # type: ignore[no-untyped-def] # noqa: A002
    by = (globals or {}).get("__name__", "")
    if by.split(".")[0] == "verix_anon":
        if name.split(".")[0] in BLOCKED:
            raise ImportError(f"No module named {name!r} on Windows")
        if name in LACKING:
            return LACKING[name]
    return _import(name, globals, locals, fromlist, level)


FORBIDDEN = re.compile(r'[<>:"|?*\x00-\x1f]|[ .]$|^(con|prn|aux|nul|(com|lpt)[0-9])(\.|$)', re.I)
CHANGES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}


def _check_name(path: str) -> None:
    """Refuse a new name that Windows forbids, or takes for one that is there in another case."""
    folder, name = os.path.split(os.path.abspath(path))
    if os.path.lexists(path):
        return
    if FORBIDDEN.search(name):
        raise OSError(22, "Invalid argument", path)
    if name.casefold() in (each.casefold() for each in os.listdir(folder)):
        raise FileExistsError(17, "File exists under this name in another case", path)


def _check_free(path: str) -> None:
    """Refuse to rename or remove what some process has open, or has an open file in."""
    place = os.path.realpath(path)
    for process in filter(str.isdecimal, os.listdir("/proc")):
        opened = []
        with contextlib.suppress(OSError):
            for each in os.listdir(f"/proc/{process}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    opened.append(os.readlink(f"/proc/{process}/fd/{each}"))
        if any(f"{each}/".startswith(f"{place}/") for each in opened):
            raise PermissionError(13, "The process cannot access the file", path)


def _audit(event: str, given: tuple[object, ...]) -> None:
    if event not in CHANGES or not isinstance(given[0], str | os.PathLike):
        return
    path = os.fspath(given[0])
    if isinstance(path, bytes) or "__pycache__" in path or path.startswith(("/dev/", "/proc/")):
        return
    if event == "open":
        if isinstance(given[2], int) and given[2] & os.O_CREAT:
            _check_name(path)
    elif event == "os.mkdir":
        _check_name(path)
    elif event != "os.rmdir":
        _check_free(path)
        if event == "os.rename" and isinstance(given[1], str | os.PathLike):
            _check_free(str(given[1]))
            _check_name(str(given[1]))


builtins.__import__ = _imported
sys.addaudithook(_audit)
# Windows reads and writes text as cp1252 unless it is told otherwise. `machine` reads /proc, which
# is not there.
warnings.simplefilter("ignore", EncodingWarning)
warnings.filterwarnings("error", category=EncodingWarning, module=r"verix_anon\.(?!machine)")
for _stream in (sys.stdout, sys.stderr):
    if _stream is not None:
        _stream.reconfigure(encoding="cp1252", newline="\r\n")  # type: ignore[union-attr]
