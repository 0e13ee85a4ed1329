"""A table that somebody hands over piece by piece: beside its name until all of it is here."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from verix_anon.errors import TableError
from verix_anon.files.aside import Aside, begun
from verix_anon.files.inside import clean_name
from verix_anon.files.store import reason
from verix_anon.files.tables.endings import TAKEN, not_taken

__all__ = ["Receiving", "receiving"]

LEFT_FREE = 512 << 20
"""Bytes of the disk that are not taken, for there is work to be done with the table."""
LOOK_EVERY = 64 << 20
"""Others fill the disk, too."""


class Receiving:
    """A file that grows."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._file = aside.path.open("wb")
        self._looked = self.size = 0

    @property
    def name(self) -> str:
        """What it will be called."""
        return self._aside.target.name

    def write(self, data: bytes) -> None:
        """Append to it."""
        self.size += len(data)
        if self.size - self._looked > LOOK_EVERY:
            self._looked = self.size
            check_room(self._aside.path.parent, 0)
        try:
            self._file.write(data)
        except OSError as error:
            raise TableError(f"{self.name} cannot be written ({reason(error)})") from None

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()

    def done(self) -> None:
        """All is here: it takes its name."""
        self.close()
        self._aside.take_name()


@contextmanager
def receiving(folder: Path, name: str, size: int | None) -> Iterator[Receiving]:
    """A file in a folder, under its name or one like it, which never replaces another.

    Raises:
        TableError: It is none of the kinds that are read, or there is no room for it.
    """
    cleaned = clean_name(name)
    if not cleaned.lower().endswith(TAKEN):
        raise not_taken(cleaned)
    check_room(folder, size or 0)
    with begun(_free(folder / cleaned), overwrite=False, folder=False, private=True) as aside:
        received = Receiving(aside)
        try:
            yield received
        finally:
            received.close()


def check_room(folder: Path, size: int) -> None:
    """Raise unless so many bytes can be put there, and some are left."""
    free = shutil.disk_usage(folder).free
    if size + LEFT_FREE > free:
        raise TableError(f"there is no room for it: {free:,} bytes are free in {folder}")


def _free(path: Path) -> Path:
    stem, dot, ending = path.name.partition(".")
    for i in range(2, 1_000):
        if not path.exists() and not path.is_symlink():
            return path
        path = path.with_name(f"{stem}-{i}{dot}{ending}")
    raise TableError(f"there are too many files called {stem!r}")
