"""The owner's tables, at a path or an fsspec URL, by the endings of their names (spec §2)."""

import csv
import os
import zlib

import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.errors import TableError
from verix_anon.files.store import path_text
from verix_anon.files.tables.opening import opened, reason
from verix_anon.files.tables.reading import NULL_TOKENS, Question, Read, Reading
from verix_anon.files.tables.text import read_text_table
from verix_anon.files.tables.writing import (
    ARROW_ERRORS,
    PARQUET_SUFFIXES,
    check_table_name,
    table_aside,
    write_table,
)

__all__ = [
    "NULL_TOKENS",
    "Question",
    "Read",
    "Reading",
    "check_table_name",
    "read_table",
    "read_table_as",
    "table_aside",
    "write_table",
]

TEXT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def read_table(path: str | os.PathLike[str], reading: Reading | None = None) -> pa.Table:
    """Read a CSV or Parquet file.

    A CSV column is a whole number, a number, a date or a time if every value is, and text
    otherwise. `reading` says what the file itself does not.

    Raises:
        TableError: There is no such file, it cannot be read as its name says, or it can be read
            in more than one way; the message says what to give then.
    """
    return read_table_as(path, reading).settled().table


def read_table_as(path: str | os.PathLike[str], reading: Reading | None = None) -> Read:
    """Read a file, and say how; what cannot be told from it is asked, not guessed.

    Raises:
        TableError: There is no such file, or it cannot be read as its name says.
    """
    name, reading = path_text(path), reading or Reading()
    lower = name.lower()
    try:
        if lower.endswith(PARQUET_SUFFIXES):
            with opened(name) as file:
                # pq.read_table would import what reads folders of files, and pandas with it.
                return Read(pq.ParquetFile(file).read(), reading)
        if lower.endswith(TEXT_SUFFIXES):
            return read_text_table(name, reading)
    except FileNotFoundError:
        raise TableError(f"there is no file {name}") from None
    except (*ARROW_ERRORS, csv.Error, EOFError, zlib.error) as error:
        raise TableError(f"{name} cannot be read ({reason(error)})") from None
    raise TableError(
        f"{name}: the name of a table ends in {', '.join(TEXT_SUFFIXES + PARQUET_SUFFIXES)}"
    )
