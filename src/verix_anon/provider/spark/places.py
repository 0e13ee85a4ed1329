"""Where tasks put files, in a folder that all of them see or behind a URL: whole, or not at all.

A name says what the file holds. So a task that is run again, or twice at once, puts the same bytes
under the same name. Nothing here knows Spark.
"""

import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from verix_anon.errors import ProviderError
from verix_anon.files.hashed import RECORDS
from verix_anon.files.store import is_url, reason

__all__ = ["STAGING", "Place"]

STAGING = ".staging"
"""What is there while a job runs, and no longer."""


class Place(NamedTuple):
    """A folder or a URL."""

    path: str

    def begin(self) -> None:
        """Make the folders that tasks write to: a late one then makes none of what is done with."""
        if not is_url(self.path):
            for name in (STAGING, RECORDS):
                (Path(self.path) / name).mkdir()

    def check(self) -> None:
        """Raise ProviderError unless a task can write there."""
        try:
            with self.new(f"{STAGING}/{secrets.token_hex(8)}") as path:
                path.touch()
        except OSError as error:
            raise ProviderError(
                f"an executor cannot write to {self.path} ({reason(error)}): it must find it under"
                " that name and, if it is a folder, run as the driver's user"
            ) from None

    @contextmanager
    def new(self, name: str) -> Iterator[Path]:
        """A file to fill, which then is there under a name."""
        if is_url(self.path):
            with tempfile.TemporaryDirectory(prefix="verix-spark-") as folder:
                yield Path(folder) / "file"
                fs, top = self._store()
                fs.put_file(str(Path(folder) / "file"), f"{top}/{name}")
            return
        aside = Path(self.path) / STAGING / secrets.token_hex(8)
        try:
            yield aside
            aside.replace(Path(self.path) / name)
        finally:
            aside.unlink(missing_ok=True)

    def open(self, name: str) -> IO[bytes]:
        """A file that is there."""
        if is_url(self.path):
            fs, top = self._store()
            return fs.open(f"{top}/{name}", "rb")  # type: ignore[no-any-return]
        return (Path(self.path) / name).open("rb")

    def has(self, name: str = "") -> bool:
        """Whether something of a name is there."""
        if is_url(self.path):
            fs, top = self._store()
            return bool(fs.exists(f"{top}/{name}".rstrip("/")))
        return (Path(self.path) / name).exists()

    def delete(self, name: str = "") -> None:
        """Delete all below a name, of a folder one in it; that there is nothing is no error."""
        if not is_url(self.path):
            # By another name, so that a late task puts nothing there meanwhile.
            with suppress(FileNotFoundError):
                gone = (Path(self.path) / name).rename(Path(self.path) / f".{secrets.token_hex(8)}")
                shutil.rmtree(gone, ignore_errors=True)
            return
        fs, top = self._store()
        if fs.exists(f"{top}/{name}".rstrip("/")):
            fs.rm(f"{top}/{name}".rstrip("/"), recursive=True)

    def names(self) -> set[str]:
        """All files behind a URL."""
        fs, top = self._store()
        return {str(path).removeprefix(f"{top}/") for path in fs.find(top)}

    def delete_all(self, names: Collection[str]) -> None:
        """Delete some of the files behind a URL, which are there."""
        fs, top = self._store()
        if names:
            fs.rm([f"{top}/{name}" for name in sorted(names)])

    def _store(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        # Other processes write there too: a listing that was kept would be wrong.
        fs, top = url_to_fs(self.path, use_listings_cache=False)
        return fs, str(top).rstrip("/")
