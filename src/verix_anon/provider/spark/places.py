"""Where tasks put files, in a folder that all of them see or behind a URL: whole, or not at all.

A name says what the file holds. So a task that is run again, or twice at once, puts the same bytes
under the same name. Nothing here knows Spark.
"""

import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from verix_anon.files.store import is_url

__all__ = ["STAGING", "Place"]

STAGING = ".staging"
"""What is there while a job runs, and no longer."""


class Place(NamedTuple):
    """A folder or a URL."""

    path: str

    @contextmanager
    def new(self, name: str) -> Iterator[Path]:
        """A file to fill, which then is there under a name."""
        if is_url(self.path):
            with tempfile.TemporaryDirectory(prefix="verix-spark-") as folder:
                yield Path(folder) / "file"
                fs, top = self._store()
                fs.put_file(str(Path(folder) / "file"), f"{top}/{name}")
            return
        target, aside = Path(self.path) / name, Path(self.path) / STAGING / secrets.token_hex(8)
        for needed in (target.parent, aside.parent):
            needed.mkdir(exist_ok=True)
        try:
            yield aside
            aside.replace(target)
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
        """Delete all below a name; that there is nothing is no error."""
        if not is_url(self.path):
            shutil.rmtree(Path(self.path) / name, ignore_errors=True)
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
