"""Files of JSON lines that are only ever appended to, for their owner's eyes alone."""

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.aside import sync_folder

__all__ = ["Lines", "append", "locked", "read"]

PATIENCE = 60.0
"""Seconds until whoever holds a lock is taken to hang."""


class Lines:
    """A file of lines that nobody else writes to as long as it is held."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def read(self) -> list[Fields | None]:
        """Every line that is not empty, None for one that is damaged; raises OSError."""
        return _parsed(self._bytes(0))

    def append(self, fields: Mapping[str, object]) -> None:
        """Add a line, and see it on the disk; raises OSError, and then there is none."""
        size = os.fstat(self.descriptor).st_size
        # A line that was cut short must not take the next one with it.
        is_whole = size == 0 or self._bytes(size - 1) == b"\n"
        left = memoryview((b"" if is_whole else b"\n") + json.dumps(fields).encode() + b"\n")
        try:
            while left:
                left = left[os.write(self.descriptor, left) :]
            os.fsync(self.descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self.descriptor, size)
            raise

    def _bytes(self, start: int) -> bytes:
        size, parts = os.fstat(self.descriptor).st_size, []
        while start < size and (part := os.pread(self.descriptor, size - start, start)):
            parts.append(part)
            start += len(part)
        return b"".join(parts)


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[Lines]:
    """The file, made if there is none, held against everybody else; raises OSError."""
    is_new = not Path(path).exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, fcntl.LOCK_EX)
        if is_new:
            sync_folder(Path(path).parent)
        yield Lines(descriptor)
    finally:
        os.close(descriptor)


def append(path: str | os.PathLike[str], fields: Mapping[str, object]) -> None:
    """Add a line, and see it on the disk; raises OSError."""
    with locked(path) as held:
        held.append(fields)


def read(path: str | os.PathLike[str]) -> list[Fields | None]:
    """Every line that is not empty, None for one that is damaged; raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return []
    try:
        _lock(descriptor, fcntl.LOCK_SH)
        return Lines(descriptor).read()
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> None:
    """Held until the file is closed, which the end of a process does in any case."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise OSError(errno.EWOULDBLOCK, "another process holds it") from None
            time.sleep(0.02)
        else:
            return


def _parsed(data: bytes) -> list[Fields | None]:
    return [_parse(line) for line in data.split(b"\n") if line.strip()]


def _parse(line: bytes) -> Fields | None:
    try:
        return Fields.parse(line, "a line", TableError)
    except TableError:
        return None
