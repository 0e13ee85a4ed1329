"""A table or a query of a database, named by a URL: SQLite, and PostgreSQL with the extra `sql`.

Nothing is written there, and no password of the URL is shown: not in an error either.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from sys import getsizeof
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import pyarrow as pa

from verix_anon.errors import TableError
from verix_anon.files.extras import need
from verix_anon.files.tables.cells import column_of
from verix_anon.files.tables.opening import check_names, reason
from verix_anon.files.tables.reading import Read, Reading
from verix_anon.files.tables.urls import shown_url, without_secrets

__all__ = ["is_database", "read_database"]

SQLITE, POSTGRESQL = ("sqlite",), ("postgresql", "postgres")
LARGEST_ROW, ROWS = 1 << 24, 100
USUAL, TIMES = 1 << 30, 64
"""Rows may take so many bytes of memory, and so many times the file's size beyond."""
EXAMPLE = "sqlite:///people.db?table=people"
UNORDERED = (
    "the query has no ORDER BY: release needs the same rows in the same order again, so give it one"
)


def is_database(name: str) -> bool:
    """Whether a name is the URL of a database."""
    return name.partition("://")[0].lower() in (*SQLITE, *POSTGRESQL) and "://" in name


def read_database(name: str, reading: Reading) -> Read:
    """Read the table or the query's answer, in a transaction that cannot write."""
    place, _, parameters = name.partition("?")
    given = dict(parse_qsl(parameters, keep_blank_values=True))
    table = given.pop("table", None)
    if (table is None) == (reading.query is None):
        raise TableError(
            f"{shown_url(name)}: name one table of the database, as in {EXAMPLE}, or give a query"
            " (--query, or Reading(query=...))"
        )
    scheme = name.partition("://")[0].lower()
    try:
        if scheme in SQLITE:
            found, notes = _read_sqlite(place, table, reading)
        else:
            from verix_anon.files.tables.postgresql import read_postgresql

            need("adbc_driver_postgresql", "sql", "a table of PostgreSQL")
            rest = f"?{urlencode(given)}" if given else ""
            found, notes = read_postgresql(place + rest, table, reading.query), []
    except TableError as error:
        raise TableError(f"{shown_url(name)} {without_secrets(str(error), name)}") from None
    ordered = reading.query is None or "order by" in " ".join(reading.query.lower().split())
    return Read(found, reading, (*notes, *([] if ordered else [UNORDERED])))


def _read_sqlite(place: str, table: str | None, reading: Reading) -> tuple[pa.Table, list[str]]:
    path = Path(unquote(place.partition("://")[2]).removeprefix("/"))
    if not path.is_file():
        raise TableError("names a file that is not there; an absolute path has four slashes")
    query = reading.query or f"SELECT * FROM {quoted(table or '')}"  # noqa: S608, it is quoted
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            base.execute("PRAGMA query_only = ON")
            # ATTACH and VACUUM INTO would make a file of their own all the same.
            base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_ROW)
            answer = base.execute(query)
            if answer.description is None:
                raise TableError("gave no table: the query is no SELECT")
            names = [column[0] for column in answer.description]
            check_names(names)
            rows = _within(answer, path.stat().st_size)
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        raise TableError(f"cannot be read ({reason(error)})") from None
    columns: dict[str, pa.Array] = {}
    notes = []
    for j, name in enumerate(names):
        columns[name], note = column_of(name, [row[j] for row in rows], range(1, len(rows) + 1))
        notes += [note] if note else []
    return pa.table(columns), notes


def _within(answer: sqlite3.Cursor, size: int) -> list[tuple[Any, ...]]:
    """All rows; a view may have rows without end, in a file of a few bytes."""
    rows: list[tuple[Any, ...]] = []
    held = 0
    while part := answer.fetchmany(ROWS):
        rows += part
        held += sum(sum(map(getsizeof, row)) for row in part)
        if held > USUAL + TIMES * size:
            raise TableError(
                f"takes more than {held / 1e9:.1f} GB to read, far more than its size makes likely;"
                " ask for less of it (--query)"
            )
    return rows


def quoted(name: str) -> str:
    """A name as SQL writes one."""
    return '"' + name.replace('"', '""') + '"'
