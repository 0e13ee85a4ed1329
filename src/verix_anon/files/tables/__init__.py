"""The owner's tables, at a path or a URL, by the endings of their names (spec §2.6)."""

import csv
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pyarrow as pa

from verix_anon.errors import TableError
from verix_anon.files.extras import need
from verix_anon.files.store import is_url, path_text
from verix_anon.files.tables.apart import read_apart
from verix_anon.files.tables.arrow import Stored
from verix_anon.files.tables.content import check_content
from verix_anon.files.tables.database import is_database, read_database
from verix_anon.files.tables.endings import (
    IPC_SUFFIXES,
    PARQUET_SUFFIXES,
    SHEET_SUFFIXES,
    STATISTICS_SUFFIXES,
    TAKEN,
    TEXT_SUFFIXES,
    not_taken,
)
from verix_anon.files.tables.opening import ARROW_ERRORS, opened, reason
from verix_anon.files.tables.reading import NULL_TOKENS, Question, Read, Reading
from verix_anon.files.tables.sheets.packed import check_packed
from verix_anon.files.tables.text import read_text_table
from verix_anon.files.tables.urls import shown_url, without_secrets
from verix_anon.files.tables.writing import Parts, check_table_name, table_aside, write_table

__all__ = [
    "NULL_TOKENS",
    "Parts",
    "Question",
    "Read",
    "Reading",
    "Stored",
    "check_table_name",
    "read_table",
    "read_table_as",
    "shown_url",
    "table_aside",
    "write_table",
]


def read_table(path: str | os.PathLike[str], reading: Reading | None = None) -> pa.Table:
    """Read a table: text, Parquet, Arrow, a spreadsheet, SPSS, Stata, SAS, or of a database.

    A column of text is a whole number, a number, a date or a time if every value is, and text
    otherwise. `reading` says what the file itself does not.

    Raises:
        TableError: There is no such file, it cannot be read as its name says, or it can be read
            in more than one way; the message says what to give then.
    """
    return read_table_as(path, reading).settled().table


def read_table_as(
    path: str | os.PathLike[str], reading: Reading | None = None, *, whole: bool = True
) -> Read:
    """Read a table, and say how; what cannot be told from it is asked, not guessed.

    Unless the `whole` is wanted, that of a Parquet file is `Stored`: its columns are read as they
    are asked for, which takes less memory.

    Raises:
        TableError: There is no such file, or it cannot be read as its name says.
    """
    name, reading = path_text(path), reading or Reading()
    shown = shown_url(name)
    if is_database(name):
        return read_database(name, reading)
    try:
        return _read_file(name, reading, whole)
    except FileNotFoundError:
        raise TableError(f"there is no file {shown}") from None
    except (*ARROW_ERRORS, csv.Error, EOFError, zlib.error) as error:
        said = without_secrets(f"cannot be read ({reason(error)})", name)
        raise TableError(f"{shown} {said}") from None


def _read_file(name: str, reading: Reading, whole: bool) -> Read:
    lower = name.lower()
    if lower.endswith(TAKEN) and not is_url(name):
        check_content(name)
    if lower.endswith(TEXT_SUFFIXES):
        return read_text_table(name, reading)
    if lower.endswith(PARQUET_SUFFIXES):
        with _named(name):
            stored = Stored(name)
        return Read(stored.table() if whole else stored, reading)
    if lower.endswith(IPC_SUFFIXES):
        with _local(name) as path, _named(name):
            return read_apart("ipc", path, Path(path).stat().st_size, reading)
    if lower.endswith(SHEET_SUFFIXES):
        need("python_calamine", "excel", f"reading {shown_url(name)}")
        with _local(name) as path, _named(name):
            return _read_sheet(path, reading)
    if lower.endswith(STATISTICS_SUFFIXES):
        need("pyreadstat", "statistics", f"reading {shown_url(name)}")
        with _local(name) as path, _named(name):
            return read_apart("statistics", path, Path(path).stat().st_size, reading)
    if not is_url(name) and Path(name).is_dir():
        raise TableError(f"{name} is a folder, not a table")
    raise not_taken(shown_url(name))


def _read_sheet(path: str, reading: Reading) -> Read:
    size = Path(path).stat().st_size
    with Path(path).open("rb") as file:
        if file.read(2) != b"PK":
            return read_apart("sheet", path, size, reading)
        found = check_packed(file, size)
    read = read_apart("sheet", path, found.size, reading)
    return replace(read, notes=(*read.notes, *found.notes()))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """What a reader says of its file begins with the name."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{shown_url(name)} {error}") from None


@contextmanager
def _local(name: str) -> Iterator[str]:
    """The file's path; what lies behind a URL is fetched, for as long as it is read."""
    if not is_url(name):
        with opened(name):
            yield name
        return
    ending = PurePosixPath(name).suffix
    with opened(name) as file, tempfile.NamedTemporaryFile(suffix=ending) as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        yield copy.name
