"""A table's file, at a path or an fsspec URL, and what went wrong with it in a line."""

from pathlib import Path
from typing import IO

from verix_anon.errors import TableError
from verix_anon.files.store import filesystem, is_url

__all__ = ["opened", "reason"]


def reason(error: Exception) -> str:
    """An error's own words, in one line."""
    return " ".join(str(error).split())[:300]


def opened(name: str) -> IO[bytes]:
    """The file to read from."""
    if is_url(name):
        fs, inner = filesystem(name)
        return fs.open(inner, "rb")  # type: ignore[no-any-return]
    if Path(name).is_dir():
        raise TableError(f"{name} is a folder, not a table")
    return Path(name).open("rb")
