"""Arrays that are too large to hold, in a file without a name, for as long as the process has it.

The file is for its owner alone and is unlinked before anything is written: whatever ends the
process, nothing of the table stays behind. Arrays are read by plain reads into memory of their
own; pages of a mapped file would count as the process's memory.
"""

import errno
import os
import tempfile
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from verix_anon.errors import TableError
from verix_anon.files.store import reason

__all__ = ["Kept", "Scratch"]

NAMED = ("TMPDIR", "TEMP", "TMP")
# In place of /tmp, which on many systems is memory.
ON_DISK = "/var/tmp"  # noqa: S108, because what is made there has no name


class Scratch:
    """One such file; it grows as arrays are added, and is gone when it is let go of."""

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
        # Not there if the file could not be made.
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> "Kept":
        """Room for an array, to be written in parts."""
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
                n_written = os.pwrite(self.descriptor, data, at)
                data, at = data[n_written:], at + n_written
        except OSError as error:
            raise self._failed(error) from None

    def read(self, at: int, into: memoryview) -> None:
        """Fill some memory with what was written to a place of the file."""
        while into:
            n_read = os.preadv(self.descriptor, [into], at)
            assert n_read, "what is read was written"
            into, at = into[n_read:], at + n_read

    def _failed(self, error: OSError) -> TableError:
        folder = self.folder or tempfile.gettempdir()
        ways = "free some, or name another folder by TMPDIR"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return TableError(f"there is no room left on the disk of {folder}: {ways}")
        return TableError(f"nothing can be written to {folder} ({reason(error)}): {ways}")


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """An array in a scratch file; threads may read and write it side by side."""

    scratch: Scratch
    at: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def write(self, first: int, part: npt.NDArray[Any]) -> None:
        """Write some rows, from this one on."""
        assert part.dtype == self.dtype
        assert part.shape[1:] == self.shape[1:]
        assert 0 <= first <= first + len(part) <= self.shape[0]
        self.scratch.write(self.at + first * self._row_bytes, _bytes(np.ascontiguousarray(part)))

    def read(self, first: int = 0, end: int | None = None) -> npt.NDArray[Any]:
        """Some rows, or all, in memory of their own."""
        end = self.shape[0] if end is None else min(end, self.shape[0])
        out = np.empty((max(0, end - first), *self.shape[1:]), self.dtype)
        self.scratch.read(self.at + first * self._row_bytes, _bytes(out))
        return out

    @property
    def _row_bytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
