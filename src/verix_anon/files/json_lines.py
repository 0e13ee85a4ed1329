"""Files of JSON lines that are only ever appended to, and that only their owner can read.

Nothing relies on a line before it is whole and on the disk. If a crash cuts a line short, the next
append marks it as void. Nothing is ever removed.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.atomic_write import sync_folder
from verix_anon.files.store import BINARY, FilePath
from verix_anon.platform import held

PATIENCE = 60.0
"""Seconds until the holder of a lock counts as hung."""
VOID = b" (cut short)"
"""The end of a line that was cut short, in a file that was added to since."""


class Lines:
    """A locked file of lines: while it is held, no other process writes to it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def lines(self) -> list[bytes]:
        """Return every line that is neither empty nor void, without its end; raises OSError."""
        *ended, last = self._bytes(0).split(b"\n")
        found = [line for line in ended if line.strip() and not line.endswith(VOID)]
        # A line without an end may be whole, or damaged in another way.
        return [*found, last] if last.strip() and not _is_cut_short(last) else found

    def read(self) -> list[Fields | None]:
        """Return the same lines as fields, None for one that is damaged; raises OSError."""
        return [parse(line) for line in self.lines()]

    def is_cut_short(self) -> bool:
        """Whether the last line is not whole; raises OSError."""
        return _is_cut_short(self._bytes(0).split(b"\n")[-1])

    def append(self, fields: Mapping[str, object]) -> bytes:
        """Add a line, flush it to the disk and return it; after an OSError it is not there."""
        size = os.fstat(self.descriptor).st_size
        # A line without an end must not run into the next one.
        has_end = size == 0 or self._bytes(size - 1) == b"\n"
        end = b"" if has_end else (VOID if self.is_cut_short() else b"") + b"\n"
        line = json.dumps(fields).encode()
        left = memoryview(end + line + b"\n")
        try:
            while left:
                left = left[os.write(self.descriptor, left) :]
            os.fsync(self.descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self.descriptor, size)
            raise
        return line

    def _bytes(self, start: int) -> bytes:
        size, parts = os.fstat(self.descriptor).st_size, []
        os.lseek(self.descriptor, start, os.SEEK_SET)
        while start < size and (part := os.read(self.descriptor, size - start)):
            parts.append(part)
            start += len(part)
        return b"".join(parts)


@contextmanager
def locked(path: FilePath) -> Iterator[Lines]:
    """Yield the file under an exclusive lock; makes it if it is missing; raises OSError."""
    is_new = not Path(path).exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | BINARY, 0o600)
    try:
        with held(Path(path), descriptor, patience=PATIENCE):
            if is_new:
                sync_folder(Path(path).parent)
            yield Lines(descriptor)
    finally:
        os.close(descriptor)


def lines(path: FilePath) -> list[bytes]:
    """Return every line that is neither empty nor void, without its end; raises OSError."""
    with _shared(path) as found:
        return [] if found is None else found.lines()


def read(path: FilePath) -> list[Fields | None]:
    """Return the same lines as fields, None for one that is damaged; raises OSError."""
    return [parse(line) for line in lines(path)]


def is_cut_short(path: FilePath) -> bool:
    """Whether the last line is not whole; raises OSError."""
    with _shared(path) as found:
        return found is not None and found.is_cut_short()


@contextmanager
def _shared(path: FilePath) -> Iterator[Lines | None]:
    """Yield the file under a shared lock, or None if it does not exist."""
    try:
        descriptor = os.open(path, os.O_RDONLY | BINARY)
    except FileNotFoundError:
        yield None
        return
    try:
        with held(Path(path), descriptor, shared=True, patience=PATIENCE):
            yield Lines(descriptor)
    finally:
        os.close(descriptor)


def _is_cut_short(line: bytes) -> bool:
    """Whether a line without an end begins as all of ours do, and is not whole."""
    return line.startswith(b"{") and parse(line) is None


def parse(line: bytes) -> Fields | None:
    """Return the fields of a line, or None if it is damaged."""
    try:
        return Fields.parse(line, "a line", TableError)
    except TableError:
        return None
