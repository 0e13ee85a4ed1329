"""Keeps arrays that are too large for memory in a file without a name.

Only the owner can open the file, and it is unlinked before anything is written. So nothing of the
table stays behind, however the process ends. Arrays are read with plain reads, because the pages of
a mapped file would count as the process's memory.

Hashed bytes are kept here too, or in memory if they are few. Decoding uses these bytes and never
reads the original file again, because the sender may change it between two reads.
"""

import errno
import io
import os
import tempfile
import threading
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verix_anon.errors import TableError
from verix_anon.files.store import reason

NAMED = ("TMPDIR", "TEMP", "TMP")
# Instead of /tmp, which is memory on many systems.
ON_DISK = "/var/tmp"  # noqa: S108, because what is made there has no name

# Holds the place in a file where the system cannot read and write at a place of its own.
_seeking = threading.Lock()


class Scratch:
    """One such file. It grows as arrays are added, and disappears with this object."""

    def __init__(self) -> None:
        is_named = any(os.environ.get(name) for name in NAMED)
        self.folder = ON_DISK if not is_named and os.access(ON_DISK, os.W_OK) else None
        try:
            with tempfile.TemporaryFile(dir=self.folder, buffering=0) as file:
                self.descriptor = os.dup(file.fileno())
        except OSError as error:
            raise self._failed(error) from None
        self.size = 0
        self.lock = threading.Lock()

    def __del__(self) -> None:
        # The attribute is missing if the file could not be made.
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> "Kept":
        """Reserve room for an array that is written in parts."""
        kind = np.dtype(dtype)
        n_bytes = kind.itemsize * int(np.prod(shape, dtype=np.int64))
        with self.lock:
            at = self.size
            self.size += n_bytes
        return Kept(self, at, shape, kind)

    def put(self, array: npt.NDArray[Any]) -> "Kept":
        """Write an array."""
        kept = self.empty(array.shape, array.dtype)
        kept.write(0, array)
        return kept

    def write(self, at: int, data: memoryview) -> None:
        """Write bytes to a place of the file."""
        try:
            while data:
                n_written = _write_at(self.descriptor, data, at)
                data, at = data[n_written:], at + n_written
        except OSError as error:
            raise self._failed(error) from None

    def read(self, at: int, into: memoryview) -> None:
        """Fill some memory with what was written to a place of the file."""
        while into:
            n_read = _read_at(self.descriptor, into, at)
            assert n_read, "what is read was written"
            into, at = into[n_read:], at + n_read

    def _failed(self, error: OSError) -> TableError:
        folder = self.folder or tempfile.gettempdir()
        ways = "free some, or name another folder by TMPDIR"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return TableError(f"there is no room left on the disk of {folder}: {ways}")
        return TableError(f"nothing can be written to {folder} ({reason(error)}): {ways}")


def _write_at(descriptor: int, data: memoryview, at: int) -> int:
    """Write some bytes to a place of a file and return how many; threads may do so side by side."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, at)
    with _seeking:
        os.lseek(descriptor, at, os.SEEK_SET)
        return os.write(descriptor, data)


def _read_at(descriptor: int, into: memoryview, at: int) -> int:
    """Read some bytes from a place of a file into memory and return how many."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [into], at)
    with _seeking:
        os.lseek(descriptor, at, os.SEEK_SET)
        data = os.read(descriptor, min(len(into), 1 << 24))
    into[: len(data)] = data
    return len(data)


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """An array in a scratch file. Several threads may read and write it at once."""

    scratch: Scratch
    at: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def write(self, first: int, part: npt.NDArray[Any]) -> None:
        """Write some rows, beginning at row `first`."""
        assert part.dtype == self.dtype
        assert part.shape[1:] == self.shape[1:]
        assert 0 <= first <= first + len(part) <= self.shape[0]
        self.scratch.write(self.at + first * self._row_bytes, _bytes(np.ascontiguousarray(part)))

    def read(self, first: int = 0, end: int | None = None) -> npt.NDArray[Any]:
        """Return some rows, or all, in new memory."""
        end = self.shape[0] if end is None else min(end, self.shape[0])
        out = np.empty((max(0, end - first), *self.shape[1:]), self.dtype)
        self.scratch.read(self.at + first * self._row_bytes, _bytes(out))
        return out

    @property
    def _row_bytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


# A page header has some dozens of bytes.
WINDOW_BYTES = 4096


@dataclass(frozen=True, slots=True)
class InMemory:
    """Bytes that are few enough to stay in memory."""

    data: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.data)

    def part(self, start: int, end: int) -> memoryview:
        """Return some of the bytes."""
        return memoryview(self.data)[start:end]

    def window(self, end: int) -> memoryview:
        """Return the bytes before `end`, for random access."""
        return self.part(0, end)

    def open(self) -> pa.NativeFile:
        """Return a file over these bytes for Arrow."""
        return pa.BufferReader(pa.py_buffer(self.data))


@dataclass(frozen=True, slots=True)
class InScratch:
    """Bytes that were copied to a scratch file while they were hashed."""

    kept: Kept = field(repr=False)

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.kept.shape[0]

    def part(self, start: int, end: int) -> memoryview:
        """Return some of the bytes."""
        return self.kept.read(start, end).data

    def window(self, end: int) -> "Window":
        """Return the bytes before `end`, for random access."""
        return Window(self.kept, end)

    def open(self) -> pa.NativeFile:
        """Return a file over these bytes for Arrow."""
        return pa.PythonFile(_File(self.kept), mode="r")


Held = InMemory | InScratch


class Window:
    """Bytes like a memoryview, but only a few of them are read at a time."""

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
        # Not bytes, because they would be copied once more.
        end = self.kept.shape[0] if size < 0 else self.at + size
        found = self.kept.read(self.at, end).data
        self.at += len(found)
        return found
