"""Uploads in parts: files that grow on the service's own disk until they are whole (tus 1.0).

The offset of an upload is the size of its file and nothing else, so that it is true after any
crash. Whoever begins to write takes a new number; each write happens under a lock and only while
the writer's number is still the last: a client that died is taken over at once, and what arrives
of it later is refused.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

from verix_anon.errors import Error
from verix_anon.files.store import PART
from verix_anon.protocol.providers import File

PATTERN = rf"^(submission\.json|contract\.json|records\.parquet(/{PART})?)$"
"""The files of a submission's folder (spec §8)"""


class GoneError(Error):
    """The job was deleted meanwhile, and its folder with it."""


class OffsetMismatchError(Error):
    """The upload is not where the sender believes."""


class TakenOverError(Error):
    """Another writer has begun."""


class UploadTooLargeError(Error):
    """More was sent than was stated."""


class DigestMismatchError(Error):
    """All bytes are there, and they are not those that were stated."""


@dataclass(frozen=True, slots=True)
class Upload:
    """One file of a job on its way here."""

    folder: Path
    """Where all uploads lie; each job has a folder there."""
    job: str
    file: File
    """What was stated of it"""

    @property
    def path(self) -> Path:
        """The bytes so far; a sender's name is never a name on this disk."""
        return self.folder / self.job / sha256(self.file.name.encode()).hexdigest()

    def offset(self) -> int:
        """How many bytes are there."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def begin(self, offset: int) -> "UploadWriter":
        """Become the one who writes, from this offset on."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        with self._locked() as lock:
            if self.offset() != offset:
                raise OffsetMismatchError(f"the upload is at {self.offset()}")
            return UploadWriter(self, _next_number(lock))

    def finish(self, keep: Callable[[Path], None]) -> None:
        """Keep the whole file elsewhere if it is the one that was stated; another begins anew.

        Of two that finish at the same time the second leaves it to the first, without waiting:
        a large file takes as long as its disk. Writers are fenced off, and need not wait either.
        """
        with self._alone() as is_first:
            if not is_first or not self._is_whole():
                return
            with self.path.open("rb+") as file:
                found = file_digest(file, "sha256").hexdigest()
                if found != self.file.sha256:
                    with self._locked() as lock:
                        _next_number(lock)
                        file.truncate(0)
                    raise DigestMismatchError("the SHA-256 is another")
                os.fsync(file.fileno())
            keep(self.path)
            with self._locked() as lock:
                _next_number(lock)
                self.path.unlink(missing_ok=True)

    def _is_whole(self) -> bool:
        """Whether all bytes are there; whoever wrote them writes no more."""
        with self._locked() as lock:
            _next_number(lock)
            return self.offset() == self.file.size

    @contextmanager
    def _locked(self) -> Iterator[int]:
        lock = _open(self.path.with_suffix(".writer"), os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
        finally:
            os.close(lock)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        lock = _open(self.path.with_suffix(".finishing"), os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(lock)


@dataclass(frozen=True, slots=True)
class UploadWriter:
    """Who writes to an upload, until somebody else begins to."""

    upload: Upload
    number: int

    def append(self, data: bytes) -> int:
        """Add bytes at the end; the new offset."""
        upload = self.upload
        with upload._locked() as lock:
            if _number(lock) != self.number:
                raise TakenOverError("another request continues this upload")
            file = _open(upload.path, os.O_WRONLY | os.O_APPEND)
            try:
                if os.fstat(file).st_size + len(data) > upload.file.size:
                    raise UploadTooLargeError("more was sent than was stated")
                left = memoryview(data)
                while left:
                    # A disk that fills up takes a part; the file's size says which.
                    left = left[os.write(file, left) :]
                return os.fstat(file).st_size
            finally:
                os.close(file)


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CREAT, 0o600)
    except FileNotFoundError:
        raise GoneError("the job was deleted") from None


def _number(lock: int) -> int:
    return int.from_bytes(os.pread(lock, 8, 0), "big")


def _next_number(lock: int) -> int:
    """A new number, with which all before it end."""
    number = _number(lock) + 1
    os.pwrite(lock, number.to_bytes(8, "big"), 0)
    return number


def remove_uploads(folder: Path, job: str) -> None:
    """Remove all that was uploaded for a job and is not kept elsewhere."""
    shutil.rmtree(folder / job, ignore_errors=True)
