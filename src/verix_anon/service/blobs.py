"""The files of jobs, on this disk or in S3, by an fsspec URL.

An upload lies under `jobs/ID/upload/`, a delivery under `jobs/ID/attempt-FENCE/`. Nothing here is
visible to a tenant until a row of the database says so, whatever a writer left behind.

Everything that a cloud's client raises becomes a `StorageError` here, so that callers need to know
one error. A store in a cloud that does not answer before the deadline raises it too.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from fsspec.core import url_to_fs

from verix_anon.errors import ProviderError
from verix_anon.files.atomic_write import sync_folder

PIECE = 1 << 20
DISK_PIECE, CLOUD_PIECE = 1 << 18, 4 << 20
"""What is read at once for a download: each piece from a cloud is a request of its own."""
SHORT = "a file is shorter than its row says"
JOBS = "jobs"
PROBE = "reachable"
PROBE_BYTES = bytes(4096)
PROBE_SECONDS = 5.0
LEAST_RATE = 1 << 20
"""Bytes a second; a large file has so much more time than the deadline."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def check_folder(folder: Path) -> None:
    """Raise OSError unless a new file can be stored: one that is kept has its room already."""
    with TemporaryFile(dir=folder) as file:
        file.write(PROBE_BYTES)


class StorageError(OSError):
    """The store is away, refuses or does not answer in time; the same may work later."""


def job(job_id: str) -> str:
    """Where all of a job lies."""
    return f"{JOBS}/{job_id}"


def uploads(job_id: str) -> str:
    """Where all that was uploaded for a job lies."""
    return f"{JOBS}/{job_id}/upload"


def upload(job_id: str, name: str) -> str:
    """Where a file that was uploaded lies."""
    return f"{uploads(job_id)}/{name}"


def attempt(job_id: str, fence: int, name: str = "") -> str:
    """Where a file that an attempt made lies, or all of them."""
    return f"{JOBS}/{job_id}/attempt-{fence}/{name}"


def _read(opened: IO[bytes], start: int, end: int) -> Iterator[bytes]:
    with opened as file:
        file.seek(start)
        while start < end:
            piece = file.read(min(DISK_PIECE, end - start))
            if not piece:
                raise StorageError(errno.EIO, SHORT)
            start += len(piece)
            yield piece


class Blobs:
    """A store of whole files: what is under a name was put there complete."""

    def __init__(self, url: str, *, seconds: float = 30.0) -> None:
        self._seconds = seconds
        try:
            # Other processes write there too: a listing that was kept would be wrong.
            self._fs, self._top = url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise ProviderError(f"the blobs cannot be opened ({error})") from None
        protocol = self._fs.protocol
        self._is_local = "file" in (protocol if isinstance(protocol, tuple) else (protocol,))

    def put(self, name: str, source: Path) -> None:
        """Store a file under a name; OSError if there is no room, and then nothing is there."""
        target = self._path(name)
        if not self._is_local:
            # Never through an open file: leaving that by an exception stores what was written.
            self._ask("put_file", str(source), target, n_bytes=source.stat().st_size)
            return
        aside = Path(f"{target}.aside-{os.getpid()}")
        aside.parent.mkdir(parents=True, exist_ok=True)
        try:
            with source.open("rb") as read, aside.open("wb") as write:
                shutil.copyfileobj(read, write, PIECE)
                write.flush()
                os.fsync(write.fileno())
            aside.replace(target)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        sync_folder(aside.parent)

    def get(self, name: str, target: Path, n_bytes: int = 0) -> None:
        """Fetch a file of so many bytes into this disk; FileNotFoundError if there is none."""
        target.parent.mkdir(parents=True, exist_ok=True)
        self._ask("get_file", self._path(name), str(target), n_bytes=n_bytes)

    def pieces(self, name: str, start: int, end: int) -> Iterator[bytes]:
        """The bytes of a file from `start` to `end`; FileNotFoundError at once if there is none."""
        path = self._path(name)
        if self._is_local:
            return _read(Path(path).open("rb"), start, end)
        # The first piece now: an answer that has begun cannot become an error.
        first = self._ask("cat_file", path, start=start, end=min(end, start + CLOUD_PIECE))
        return self._fetched(path, first, start, end)

    def _fetched(self, path: str, piece: bytes, start: int, end: int) -> Iterator[bytes]:
        while piece:
            yield piece
            start += len(piece)
            if start >= end:
                return
            piece = self._ask("cat_file", path, start=start, end=min(end, start + CLOUD_PIECE))
        raise StorageError(errno.EIO, SHORT)

    def attempts(self) -> dict[str, set[int]]:
        """Every job of which something lies here, and the fences of its attempts."""
        top, found = self._path(JOBS), dict[str, set[int]]()
        for path in self._ask("find", top, withdirs=True):
            job, _, rest = str(path)[len(top) + 1 :].partition("/")
            fence = rest.partition("/")[0].removeprefix("attempt-")
            if job:
                found.setdefault(job, set()).update({int(fence)} if fence.isdecimal() else ())
        return found

    def delete(self, prefix: str) -> None:
        """Delete all files below a name, if there are any."""
        try:
            self._ask("rm", self._path(prefix), recursive=True)
        except FileNotFoundError:
            return

    def check(self) -> None:
        """Raise OSError unless a file can be stored."""
        if self._is_local:
            Path(self._top).mkdir(parents=True, exist_ok=True)
            check_folder(Path(self._top))
        else:
            self._ask("pipe_file", self._path(PROBE), PROBE_BYTES, most=PROBE_SECONDS)

    def _ask(
        self, method: str, *of: Any, n_bytes: int = 0, most: float | None = None, **options: Any
    ) -> Any:
        """What the store's client answers, before the deadline if the client can be cut off."""
        if self._fs.async_impl:
            options["timeout"] = min(self._seconds, most or self._seconds) + n_bytes / LEAST_RATE
        try:
            return getattr(self._fs, method)(*of, **options)
        except (FileNotFoundError, MemoryError):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                raise
            # Without its text, which may name buckets and jobs.
            what = f"the store does not serve ({type(error).__name__})"
            raise StorageError(errno.EIO, what) from None

    def _path(self, name: str) -> str:
        # Names are checked where they come in; this is the last place where a trick could end.
        assert all(part not in ("", ".", "..") for part in name.rstrip("/").split("/"))
        return f"{self._top.rstrip('/')}/{name.rstrip('/')}"
