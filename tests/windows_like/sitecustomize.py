"""Take from verix_anon what Windows lacks: put this folder on PYTHONPATH of a process to be tried.

Only modules of the package see a system without POSIX. Python's own modules and other packages
were made for the system that really runs, and would break.
"""

import builtins
import os
import pathlib
import signal
import sys
import types

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


def _replaced(replace):  # type: ignore[no-untyped-def]
    """A rename that refuses to replace a file that this process has open, as Windows does."""

    def checked(self, target):  # type: ignore[no-untyped-def]
        place = os.path.realpath(target)
        for each in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{each}") == place:
                    raise PermissionError(13, "The process cannot access the file", place)
            except FileNotFoundError:
                continue
        return replace(self, target)

    return checked


builtins.__import__ = _imported
pathlib.Path.replace = _replaced(pathlib.Path.replace)  # type: ignore[method-assign, no-untyped-call]
for _stream in (sys.stdout, sys.stderr):
    if _stream is not None:
        _stream.reconfigure(encoding="cp1252", newline="\r\n")  # type: ignore[union-attr]
