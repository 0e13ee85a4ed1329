"""The files of jobs, on this disk or in S3, by an fsspec URL.

An upload lies under `jobs/ID/upload/`, a delivery under `jobs/ID/attempt-FENCE/`. Nothing here is
visible to a tenant until a row of the database says so, whatever a writer left behind.
"""

import contextlib
import os
import shutil
from pathlib import Path
from typing import IO

from fsspec.core import url_to_fs

from verix_anon.errors import ProviderError
from verix_anon.files.atomic_write import sync_folder, write_bytes

PIECE = 1 << 20
JOBS = "jobs"
PROBE = "reachable"


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


class Blobs:
    """A store of whole files: what is under a name was put there complete."""

    def __init__(self, url: str) -> None:
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
            self._fs.put_file(str(source), target)
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

    def get(self, name: str, target: Path) -> None:
        """Fetch a file into one on this disk; FileNotFoundError if there is none."""
        target.parent.mkdir(parents=True, exist_ok=True)
        self._fs.get_file(self._path(name), str(target))

    def open(self, name: str) -> IO[bytes]:
        """A file to read from any place in it; FileNotFoundError if there is none."""
        return self._fs.open(self._path(name), "rb")  # type: ignore[no-any-return]

    def attempts(self) -> dict[str, set[int]]:
        """Every job of which something lies here, and the fences of its attempts."""
        top, found = self._path(JOBS), dict[str, set[int]]()
        for path in self._fs.find(top, withdirs=True):
            job, _, rest = str(path)[len(top) + 1 :].partition("/")
            fence = rest.partition("/")[0].removeprefix("attempt-")
            if job:
                found.setdefault(job, set()).update({int(fence)} if fence.isdecimal() else ())
        return found

    def delete(self, prefix: str) -> None:
        """Delete all files below a name; that there are none is no error."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm(self._path(prefix), recursive=True)

    def check(self) -> None:
        """Raise OSError unless a file can be stored."""
        target = self._path(PROBE)
        if self._is_local:
            Path(self._top).mkdir(parents=True, exist_ok=True)
            write_bytes(Path(target), b"")
        else:
            self._fs.pipe_file(target, b"")

    def _path(self, name: str) -> str:
        # Names are checked where they come in; this is the last place where a trick could end.
        assert all(part not in ("", ".", "..") for part in name.rstrip("/").split("/"))
        return f"{self._top.rstrip('/')}/{name.rstrip('/')}"
