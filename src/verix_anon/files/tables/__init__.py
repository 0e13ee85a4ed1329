"""Read and write owners' tables, at a path or a URL, by the endings of their names (spec §2.6)."""

import codecs
import csv
import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, cast

import pyarrow as pa

from verix_anon.errors import TableError
from verix_anon.files.optional_packages import need
from verix_anon.files.store import FilePath, is_url, path_text
from verix_anon.files.table_form import NULL_TOKENS, Question, Read, Reading
from verix_anon.files.tables import file_kinds
from verix_anon.files.tables.arrow_files import Stored
from verix_anon.files.tables.sql_tables import is_database, read_database
from verix_anon.files.tables.subprocess_reader import read_apart
from verix_anon.files.tables.table_sources import (
    ARROW_ERRORS,
    opened,
    reason,
    shown_url,
    without_secrets,
)
from verix_anon.files.tables.table_writer import (
    Parts,
    TextForm,
    check_table_name,
    table_aside,
    write_table,
)
from verix_anon.files.tables.text_loading import RowEnds, wide_encoding
from verix_anon.files.tables.text_table import read_text_table

__all__ = [
    "NULL_TOKENS",
    "Parts",
    "Question",
    "Read",
    "Reading",
    "Stored",
    "TextForm",
    "cell_text",
    "check_table_name",
    "read_beginning",
    "read_table",
    "read_table_as",
    "shown_url",
    "table_aside",
    "write_table",
]

TEXT_BYTES = 1 << 17
"""How much of a text table `read_beginning` reads; it takes the rows that end in it."""
WHOLE_BYTES = 1 << 21
"""How large a file of another kind may be; it is read as a whole, or not at all."""
APART = (
    (file_kinds.IPC_SUFFIXES, "ipc", "", ""),
    (file_kinds.SHEET_SUFFIXES, "sheet", "python_calamine", "excel"),
    (file_kinds.STATISTICS_SUFFIXES, "statistics", "pyreadstat", "statistics"),
)
"""What a separate process reads: endings, reader, the package it needs, and that one's extra."""


def read_table(path: FilePath, reading: Reading | None = None) -> pa.Table:
    """Read a table: text, Parquet, Arrow, a spreadsheet, SPSS, Stata, SAS, or from a database.

    A column of text is a whole number, a number, a date or a time if every value is, and text
    otherwise. `reading` says what the file itself does not say.

    Raises:
        TableError: There is no such file, it cannot be read as its name says, or it can be read
            in more than one way; the message says what to give then.

    Examples:
        >>> table = verix_anon.read_table("people.csv")
        >>> table.num_rows
        600
    """
    return read_table_as(path, reading).settled().table


def read_table_as(path: FilePath, reading: Reading | None = None, *, whole: bool = True) -> Read:
    """Read a table, and say how; if the file leaves something open, ask and do not guess.

    Without `whole`, the table of a Parquet file is `Stored`: each column is read when it is asked
    for, which takes less memory.

    Raises:
        TableError: There is no such file, or it cannot be read as its name says.

    Examples:
        >>> read = verix_anon.read_table_as("people.csv")
        >>> read.reading.delimiter
        ','
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
    if lower.endswith(file_kinds.TAKEN) and not is_url(name):
        file_kinds.check_content(name)
    if lower.endswith(file_kinds.TEXT_SUFFIXES):
        return read_text_table(name, reading)
    if lower.endswith(file_kinds.PARQUET_SUFFIXES):
        with _named(name):
            stored = Stored(name)
        return Read(stored.table() if whole else stored, reading)
    for suffixes, reader, package, extra in APART:
        if lower.endswith(suffixes):
            if package:
                need(package, extra, f"reading {shown_url(name)}")
            with _local(name) as path, _named(name):
                return read_apart(reader, path, reading)
    if not is_url(name) and Path(name).is_dir():
        raise TableError(f"{name} is a folder, not a table")
    raise file_kinds.not_taken(shown_url(name))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Put the file's name in front of a reader's error."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{shown_url(name)} {error}") from None


@contextmanager
def _local(name: str) -> Iterator[str]:
    """Give the file's path; a file behind a URL is downloaded, and deleted after the block."""
    if not is_url(name):
        with opened(name):
            yield name
        return
    ending = PurePosixPath(name).suffix
    with opened(name) as file, tempfile.NamedTemporaryFile(suffix=ending) as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        yield copy.name


def read_beginning(path: Path, reading: Reading, most: int) -> Read | None:
    """Read the first rows as `read_table_as` would, or return None if the file is too large.

    Raises:
        TableError: There is no such file, or it cannot be read as its name says.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        # Opening a pipe would wait until something is written to it.
        raise TableError(f"{path.name} is not a file")
    lower = path.name.lower()
    if lower.endswith(file_kinds.TEXT_SUFFIXES):
        read = _beginning_of_text(path, reading)
    elif lower.endswith(file_kinds.PARQUET_SUFFIXES):
        read = read_table_as(path, reading, whole=False)
        return replace(read, table=read.table.first(most))
    elif path.is_file() and path.stat().st_size > WHOLE_BYTES:
        return None
    else:
        read = read_table_as(path, reading)
    return replace(read, table=read.table.slice(0, most))


def _beginning_of_text(path: Path, reading: Reading) -> Read:
    """Read a copy of the first rows, under the same name."""
    try:
        file_kinds.check_content(str(path))
        head = _head(path)
    except (OSError, EOFError) as error:
        raise TableError(f"{path.name} cannot be read ({reason(error)})") from None
    is_all = len(head) <= TEXT_BYTES
    wide, given = None, reading
    if not is_all:
        head = head[:TEXT_BYTES]
        encoding = wide_encoding(head) if reading.encoding is None else reading.encoding
        if encoding and ("16" in encoding or "32" in encoding):
            # A letter has more than one byte, so the bytes cannot be cut just anywhere.
            wide, head = encoding, _in_utf8(head, encoding)
        # The lines below the last row are not among the first ones.
        given = replace(reading, footer=0, encoding=None if wide else reading.encoding)
        rows = RowEnds(path.name, head, given)
        rows.feed(head)
        # Cut after the last whole row. If there is none, keep everything: reading it says why.
        head = head[: len(head) - rows.since] or head
    with tempfile.TemporaryDirectory() as folder:
        name = path.name.removesuffix(".gz").removesuffix(".GZ")
        (Path(folder) / name).write_bytes(head)
        try:
            read = read_table_as(Path(folder) / name, given)
        except TableError as error:
            raise TableError(str(error).replace(f"{folder}/", "")) from None
    said = read.reading if is_all else replace(read.reading, footer=reading.footer)
    return replace(read, reading=replace(said, encoding=wide or said.encoding))


def _head(path: Path) -> bytes:
    """Return the first bytes, unpacked, and one more if the file goes on."""
    with path.open("rb") as file:
        packed = path.name.lower().endswith(".gz")
        plain = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file
        return plain.read(TEXT_BYTES + 1)


def _in_utf8(head: bytes, encoding: str) -> bytes:
    try:
        return codecs.getincrementaldecoder(encoding)("replace").decode(head).encode()
    except LookupError:
        raise TableError(f"encoding: there is none called {encoding[:40]!r}") from None


MOST_ROWS = 20
MOST_COLUMNS = 100
LONGEST_CELL = 200


@dataclass(frozen=True, slots=True)
class FirstRows:
    """What people see of a table: names, types and cells; a missing cell is None."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    rows: tuple[tuple[str | None, ...], ...]
    n_columns: int
    """The number of all columns; not all may be shown."""
    said: str
    """How the table was read, in one line."""
    notes: tuple[str, ...]
    questions: tuple[Question, ...]


def first_rows(path: Path, reading: Reading) -> FirstRows | None:
    """Return the first rows of a table, or None if that would mean reading a large file.

    Raises:
        TableError: There is no such file, or it cannot be read in this way.
    """
    read = read_beginning(path, reading, MOST_ROWS)
    if read is None:
        return None
    table = read.table.select(range(min(MOST_COLUMNS, read.table.num_columns)))
    columns = [
        [cell_text(value, LONGEST_CELL) if value.is_valid else None for value in column]
        for column in table.columns
    ]
    return FirstRows(
        names=tuple(table.column_names),
        types=tuple(table.schema.types),
        rows=tuple(zip(*columns, strict=True)),
        n_columns=read.table.num_columns,
        said=read.reading.said(),
        notes=read.notes,
        questions=read.questions,
    )


def cell_text(value: pa.Scalar, longest: int) -> str:
    """Write a value as Python does; else as Arrow does; else as a replacement character."""
    for read in (value.as_py, lambda: value.cast(pa.string()).as_py()):
        try:
            text = str(read())
        except (pa.ArrowException, OverflowError, ValueError):
            continue  # Bytes that are not UTF-8, or a day that Python's calendar lacks.
        return text[:longest] + "\N{HORIZONTAL ELLIPSIS}" * (len(text) > longest)
    return "\N{REPLACEMENT CHARACTER}"
