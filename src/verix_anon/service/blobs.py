"""The files of jobs, on this disk or in S3, by an fsspec URL.

An upload lies under `jobs/ID/upload/`, a delivery under `jobs/ID/attempt-FENCE/`. A tenant can see
a file only when a row of the database names it, so files left behind by a writer stay invisible.

Every error of a cloud's client becomes a `StorageError` here, so that callers need to know only one
error. A store in a cloud that does not answer before the deadline raises it too.
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
"""Bytes read at once for a download; each piece from a cloud is a separate request."""
SHORT = "a file is shorter than its row says"
JOBS = "jobs"
PROBE = "reachable"
PROBE_BYTES = bytes(4096)
PROBE_SECONDS = 5.0
LEAST_RATE = 1 << 20
"""Bytes a second: a large file gets more time than the deadline at this rate."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def check_folder(folder: Path) -> None:
    """Raise OSError unless a new file can be stored; a kept probe file would have its room."""
    with TemporaryFile(dir=folder) as file:
        file.write(PROBE_BYTES)


class StorageError(OSError):
    """The store cannot be reached, refuses, or does not answer in time; try again later."""


def job(job_id: str) -> str:
    """Return the prefix of all files of a job."""
    return f"{JOBS}/{job_id}"


def uploads(job_id: str) -> str:
    """Return the prefix of all files that were uploaded for a job."""
    return f"{JOBS}/{job_id}/upload"


def upload(job_id: str, name: str) -> str:
    """Return the name of an uploaded file."""
    return f"{uploads(job_id)}/{name}"


def attempt(job_id: str, fence: int, name: str = "") -> str:
    """Return the name of a file that an attempt made, or the prefix of all of them."""
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
    """A store of whole files: a file gets its name only when it is complete."""

    def __init__(self, url: str, *, seconds: float = 30.0) -> None:
        self._seconds = seconds
        try:
            # Other processes write there too, so a cached listing would be wrong.
            self._fs, self._top = url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise ProviderError(f"the blobs cannot be opened ({error})") from None
        protocol = self._fs.protocol
        self._is_local = "file" in (protocol if isinstance(protocol, tuple) else (protocol,))

    def put(self, name: str, source: Path) -> None:
        """Store a file under a name; OSError if there is no room, and then nothing is stored."""
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
        """Fetch a file of so many bytes to this disk; FileNotFoundError if it does not exist."""
        target.parent.mkdir(parents=True, exist_ok=True)
        self._ask("get_file", self._path(name), str(target), n_bytes=n_bytes)

    def pieces(self, name: str, start: int, end: int) -> Iterator[bytes]:
        """Return bytes `start` to `end` of a file; FileNotFoundError at once if there is none."""
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
        """Return every job that has files here, with the fences of its attempts; 0: its upload."""
        top, found = self._path(JOBS), dict[str, set[int]]()
        for path in self._ask("find", top, withdirs=True):
            job, _, rest = str(path)[len(top) + 1 :].partition("/")
            fence = rest.partition("/")[0].replace("upload", "0").removeprefix("attempt-")
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
        """Return the answer of the store's client, with a deadline if the client supports one."""
        if self._fs.async_impl:
            options["timeout"] = min(self._seconds, most or self._seconds) + n_bytes / LEAST_RATE
        try:
            return getattr(self._fs, method)(*of, **options)
        except (FileNotFoundError, MemoryError):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                raise
            # Without the error's text, which may name buckets and jobs.
            what = f"the store does not serve ({type(error).__name__})"
            raise StorageError(errno.EIO, what) from None

    def _path(self, name: str) -> str:
        # Names are checked where they come in. This is the last place to stop a harmful one.
        assert all(part not in ("", ".", "..") for part in name.rstrip("/").split("/"))
        return f"{self._top.rstrip('/')}/{name.rstrip('/')}"
