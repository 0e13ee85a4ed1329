"""The bytes of a file as they were hashed: in memory if they are few, else in a scratch file.

What is decoded are these bytes, never the file again: whoever filled the folder may change it
between two reads.
"""

import io
import os
from dataclasses import dataclass, field
from typing import overload

import pyarrow as pa

from verix_anon.files.scratch import Kept

__all__ = ["Held", "InMemory", "InScratch"]

# A page header has some dozens of bytes.
WINDOW_BYTES = 4096


@dataclass(frozen=True, slots=True)
class InMemory:
    """Few enough to be held."""

    data: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.data)

    def part(self, start: int, end: int) -> memoryview:
        """Some of them."""
        return memoryview(self.data)[start:end]

    def window(self, end: int) -> memoryview:
        """Those before some end, to be looked at here and there."""
        return memoryview(self.data)[:end]

    def open(self) -> pa.NativeFile:
        """A file of them for Arrow."""
        return pa.BufferReader(pa.py_buffer(self.data))


@dataclass(frozen=True, slots=True)
class InScratch:
    """Copied to a scratch file while they were hashed."""

    kept: Kept = field(repr=False)

    @property
    def size(self) -> int:
        """How many there are."""
        return self.kept.shape[0]

    def part(self, start: int, end: int) -> memoryview:
        """Some of them."""
        return self.kept.read(start, end).data

    def window(self, end: int) -> "Window":
        """Those before some end, to be looked at here and there."""
        return Window(self.kept, end)

    def open(self) -> pa.NativeFile:
        """A file of them for Arrow."""
        return pa.PythonFile(_File(self.kept), mode="r")


Held = InMemory | InScratch


class Window:
    """Bytes like those of a memoryview, of which only a few are read at a time."""

    def __init__(self, kept: Kept, end: int) -> None:
        self.kept, self.end = kept, end
        self.start, self.seen = 0, memoryview(b"")

    def __len__(self) -> int:
        return self.end

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> memoryview: ...
    def __getitem__(self, at: int | slice) -> int | memoryview:
        if isinstance(at, slice):
            return self.kept.read(at.start, min(at.stop, self.end)).data
        offset = at - self.start
        if not 0 <= offset < len(self.seen):
            if at >= self.end:
                raise IndexError(at)
            self.start, offset = at, 0
            self.seen = self.kept.read(at, min(at + WINDOW_BYTES, self.end)).data
        return self.seen[offset]


class _File(io.RawIOBase):
    """What Arrow asks of a file."""

    def __init__(self, kept: Kept) -> None:
        self.kept, self.at = kept, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begins = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: self.kept.shape[0]}
        self.at = max(0, begins[whence] + offset)
        return self.at

    def read(self, size: int = -1, /) -> memoryview:
        # Not bytes: those would be copied once more.
        end = self.kept.shape[0] if size < 0 else self.at + size
        found = self.kept.read(self.at, end).data
        self.at += len(found)
        return found
