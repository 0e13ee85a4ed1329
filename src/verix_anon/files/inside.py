"""Names that somebody gave, held within one folder: nothing outside it is ever opened by them."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from verix_anon.errors import TableError
from verix_anon.files.tables.endings import TAKEN

__all__ = ["clean_name", "inside", "is_text", "tables_in"]

MOST_LISTED = 500
DEEPEST = 2
"""Tables are listed so many folders below."""
LONGEST = 120
"""Bytes of a name: file systems count these, and there are longer names made of it."""
DOUBTFUL = re.compile(r"[^\w.,()+ -]")


def inside(folder: Path, given: str) -> Path:
    """The file or folder that a relative path names, which lies in the folder once links are gone.

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
    """Whether a name can be shown: one that is no UTF-8 is only bytes."""
    return name.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in name)


def tables_in(folder: Path) -> list[str]:
    """Paths, from the folder, of the files in it that may be tables, by the endings of names."""
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
        # What is sent and what comes back hold tables too, which are nobody's to prepare.
        if entry.name not in ("submission", "delivery"):
            yield from _files(Path(entry.path), deep - 1)


def clean_name(given: str) -> str:
    """A name for a file that somebody else named: one part, visible, without odd characters."""
    last = re.split(r"[/\\]", given)[-1]
    cleaned = DOUBTFUL.sub("_", last).strip(" .-")
    stem, dot, ending = cleaned.partition(".")
    room = LONGEST - len((dot + ending).encode())
    if room < 1:
        raise TableError("the name of the file is too long")
    return (stem.encode()[:room].decode("utf-8", "ignore") or "table") + dot + ending
