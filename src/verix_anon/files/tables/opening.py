"""A table's file, at a path or an fsspec URL, and what went wrong with it in a line."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pyarrow as pa

from verix_anon.errors import TableError
from verix_anon.files.store import filesystem, is_url

__all__ = ["ARROW_ERRORS", "MOST_COLUMNS", "check_names", "opened", "reason"]

ARROW_ERRORS = (pa.ArrowException, OSError, ValueError)
MOST_COLUMNS = 1 << 14
"""As many as a sheet of Excel has."""


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


def check_names(names: Sequence[str]) -> None:
    """Raise unless there are not too many columns, each with a name of its own."""
    if len(names) > MOST_COLUMNS:
        raise TableError(
            f"has {len(names):,} columns, and a table may have {MOST_COLUMNS:,}; leave out what is"
            " not needed"
        )
    counts = Counter(names)
    twice = next((name for name, n in counts.items() if n > 1), None)
    if twice is not None:
        raise TableError(f"has the column name {twice!r} twice; rename one of them")
