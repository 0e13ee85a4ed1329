"""Uploads in parts: files that grow on the service's own disk until they are whole (tus 1.0).

The offset of an upload is the size of its file, so it is right after any crash. Each request that
begins to write takes a new number. Each write happens under a lock, and only if the writer's number
is still the last. So a new request can replace a client that died at once, and bytes of the old
request that arrive later are refused.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

from verix_anon.files.store import PART
from verix_anon.protocol.providers import File
from verix_anon.service.jobs import RequestRefusedError

PATTERN = rf"^(submission\.json|contract\.json|records\.parquet(/{PART})?)$"
"""The files of a submission's folder (spec §8)"""


@dataclass(frozen=True, slots=True)
class Upload:
    """One file of a job on its way here."""

    folder: Path
    """Where all uploads lie; each job has a folder there."""
    job: str
    file: File
    """The stated name, size and digest"""

    @property
    def path(self) -> Path:
        """The file with the bytes so far; its name on this disk is never the sender's name."""
        return self.folder / self.job / sha256(self.file.name.encode()).hexdigest()

    def offset(self) -> int:
        """Return how many bytes are there."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def begin(self, offset: int) -> "UploadWriter":
        """Return a writer from this offset on; all earlier writers end."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        with self._locked() as lock:
            if self.offset() != offset:
                raise RequestRefusedError("offset-mismatch", f"The upload is at {self.offset()}.")
            return UploadWriter(self, _next_number(lock))

    def finish(self, keep: Callable[[Path], None]) -> None:
        """Keep the complete file elsewhere if it has the stated digest; else empty the upload.

        If two requests finish at the same time, the second leaves the work to the first and does
        not wait, because a large file takes long. Earlier writers can no longer write.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._locked("finishing", fcntl.LOCK_EX | fcntl.LOCK_NB))
            except BlockingIOError:
                return
            with self._locked() as lock:
                _next_number(lock)
                if self.offset() != self.file.size:
                    return
            with self.path.open("rb+") as file:
                found = file_digest(file, "sha256").hexdigest()
                if found != self.file.sha256:
                    with self._locked() as lock:
                        _next_number(lock)
                        file.truncate(0)
                    raise RequestRefusedError(
                        "digest-mismatch",
                        "The bytes do not have the stated SHA-256; upload the file again.",
                    )
                os.fsync(file.fileno())
            keep(self.path)
            with self._locked() as lock:
                _next_number(lock)
                self.path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, name: str = "writer", how: int = fcntl.LOCK_EX) -> Iterator[int]:
        lock = _open(self.path.with_suffix(f".{name}"), os.O_RDWR)
        try:
            fcntl.flock(lock, how)
            yield lock
        finally:
            os.close(lock)


@dataclass(frozen=True, slots=True)
class UploadWriter:
    """Writes to an upload, until another request begins to write."""

    upload: Upload
    number: int

    def append(self, data: bytes) -> int:
        """Add bytes at the end, and return the new offset."""
        upload = self.upload
        with upload._locked() as lock:
            if _number(lock) != self.number:
                raise RequestRefusedError(
                    "upload-taken-over", "Another request continues this upload."
                )
            file = _open(upload.path, os.O_WRONLY | os.O_APPEND)
            try:
                if os.fstat(file).st_size + len(data) > upload.file.size:
                    raise too_large()
                left = memoryview(data)
                while left:
                    # A full disk takes only a part; the file's size then says how much.
                    left = left[os.write(file, left) :]
                return os.fstat(file).st_size
            finally:
                os.close(file)


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CREAT, 0o600)
    except FileNotFoundError:
        raise RequestRefusedError("not-found", "There is no such job.") from None


def too_large() -> RequestRefusedError:
    """Return what the sender of too many bytes is told."""
    return RequestRefusedError("upload-too-large", "More was sent than the file's stated size.")


def _number(lock: int) -> int:
    return int.from_bytes(os.pread(lock, 8, 0), "big")


def _next_number(lock: int) -> int:
    """Return a new number, which ends all writers with earlier numbers."""
    number = _number(lock) + 1
    os.pwrite(lock, number.to_bytes(8, "big"), 0)
    return number


def remove_uploads(folder: Path, job: str) -> None:
    """Remove all that was uploaded for a job and is not kept elsewhere."""
    shutil.rmtree(folder / job, ignore_errors=True)
