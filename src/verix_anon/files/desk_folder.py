"""The folder that the desk works in: what it lists, opens, receives and packs.

A browser's names are resolved within the folder, so they never open anything outside it.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from verix_anon.errors import TableError
from verix_anon.files.atomic_write import Aside, begun
from verix_anon.files.job_folder import DELIVERY, SUBMISSION
from verix_anon.files.store import reason
from verix_anon.files.tables.file_kinds import TAKEN, not_taken

MOST_LISTED = 500
DEEPEST = 2
"""Tables are listed so many folders below."""
LONGEST = 120
"""Bytes of a name: file systems count these, and there are longer names made of it."""
LEFT_FREE = 512 << 20
"""Bytes of the disk that stay free, for the work that follows."""
LOOK_EVERY = 64 << 20
"""Look at the free space each time that so many bytes came; others fill the disk too."""
PIECE = 1 << 20
DOUBTFUL = re.compile(r"[^\w.,()+ -]")
DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE)
"""Names that Windows gives to devices, whatever ending follows"""


def inside(folder: Path, given: str) -> Path:
    """Return the file or folder that a relative path names, if it lies in the folder without links.

    Raises:
        TableError: It lies elsewhere, or there is none.
    """
    home = folder.resolve()
    try:
        found = (home / given).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        raise TableError(f"there is no {given!r} in {home}") from None
    if found == home or not found.is_relative_to(home):
        raise TableError(f"{given!r} does not lie in {home}")
    return found


def is_text(name: str) -> bool:
    """Whether a name can be shown: one that is not UTF-8 is only bytes."""
    return name.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in name)


def tables_in(folder: Path) -> list[str]:
    """Return the paths, from the folder, of files whose endings are those of tables."""
    home = folder.resolve()
    found = []
    for path in _files(home, DEEPEST):
        if path.name.lower().endswith(TAKEN):
            found.append(path.relative_to(home).as_posix())
        if len(found) == MOST_LISTED:
            break
    return sorted(found)


def _files(folder: Path, deep: int) -> Iterator[Path]:
    """The files in a folder and below; links are not followed, and hidden ones are left out."""
    inner = []
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return  # It is another's, or went away.
    for entry in entries:
        if entry.name.startswith(".") or not is_text(entry.name):
            continue
        if entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        elif deep and entry.is_dir(follow_symlinks=False):
            inner.append(entry)
    for entry in inner:
        # What is sent and what comes back hold tables too, which are no one's to prepare.
        if entry.name not in (SUBMISSION, DELIVERY):
            yield from _files(Path(entry.path), deep - 1)


def clean_name(given: str) -> str:
    """Return a name for a file that somebody else named: one part, visible, no odd characters."""
    last = re.split(r"[/\\]", given)[-1]
    cleaned = DOUBTFUL.sub("_", last).strip(" .-")
    if DEVICE.fullmatch(cleaned):
        cleaned = f"table-{cleaned}"
    stem, dot, ending = cleaned.partition(".")
    room = LONGEST - len((dot + ending).encode())
    if room < 1:
        raise TableError("the name of the file is too long")
    return (stem.encode()[:room].decode("utf-8", "ignore") or "table") + dot + ending


class Receiving:
    """A file that is handed over piece by piece; it has its name once all of it is here."""

    def __init__(self, aside: Aside, file: IO[bytes]) -> None:
        self._aside, self._file = aside, file
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

    def done(self) -> None:
        """All is here: it takes its name."""
        self._file.close()
        self._aside.take_name()


@contextmanager
def receiving(folder: Path, name: str, size: int | None) -> Iterator[Receiving]:
    """Receive a file into a folder, under its name or one like it; it never replaces another.

    Raises:
        TableError: Files of this kind are not read, or there is no room for it.
    """
    cleaned = clean_name(name)
    if not cleaned.lower().endswith(TAKEN):
        raise not_taken(cleaned)
    check_room(folder, size or 0)
    place = begun(_free(folder / cleaned), overwrite=False, folder=False, private=True)
    with place as aside, aside.path.open("wb") as file:
        yield Receiving(aside, file)


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


class _Passed:
    """A file that holds what is written until it is taken."""

    def __init__(self) -> None:
        self.held = bytearray()

    def write(self, data: bytes, /) -> int:
        self.held += data
        return len(data)

    def flush(self) -> None:
        """There is nothing below."""

    def close(self) -> None:
        """What is left is still to be taken."""

    def taken(self) -> bytes:
        found = bytes(self.held)
        self.held.clear()
        return found


def zipped(folder: Path) -> Iterator[bytes]:
    """Yield a zip file of a folder, piece by piece. It skips links and does not compress."""
    passed = _Passed()
    with ZipFile(passed, "w", ZIP_STORED) as out:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            inner = f"{folder.name}/{path.relative_to(folder).as_posix()}"
            # A zip file knows no time before 1980, which files have that were unpacked somewhere.
            name = ZipInfo.from_file(path, inner, strict_timestamps=False)
            with path.open("rb") as file, out.open(name, "w", force_zip64=True) as entry:
                while data := file.read(PIECE):
                    entry.write(data)
                    yield passed.taken()
    yield passed.taken()
