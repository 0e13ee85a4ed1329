"""Read a table or a query of a database by its URL: SQLite, or PostgreSQL with the extra `sql`.

Nothing is written to the database. A password in the URL is never shown, not even in an error.
"""

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from sys import getsizeof
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.errors import TableError
from verix_anon.files.optional_packages import need
from verix_anon.files.table_form import Read, Reading
from verix_anon.files.tables.cell_values import column_of
from verix_anon.files.tables.table_sources import check_names, reason, shown_url, without_secrets

SQLITE, POSTGRESQL = ("sqlite",), ("postgresql", "postgres")
LARGEST_ROW, ROWS = 1 << 24, 100
USUAL, TIMES = 1 << 30, 64
"""Rows may take `USUAL` bytes of memory, plus `TIMES` times the size of the file."""
EXAMPLE = "sqlite:///people.db?table=people"
UNORDERED = (
    "the query has no ORDER BY: release needs the same rows in the same order again, so give it one"
)
MOST_DIGITS = 76
# In the driver, infinity overflows its integers and becomes a date before these.
FIRST_DAY, FIRST_MOMENT = -3_000_000, -300_000_000_000_000_000
PRIMARY_KEY = """
SELECT a.attname FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = {}::regclass AND i.indisprimary ORDER BY array_position(i.indkey, a.attnum)
"""
HAS_ROWS_OF_ITS_OWN = "SELECT relkind IN ('r', 'm') FROM pg_class WHERE oid = {}::regclass"


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
            need("adbc_driver_postgresql", "sql", "a table of PostgreSQL")
            rest = f"?{urlencode(given)}" if given else ""
            found, notes = _read_postgresql(place + rest, table, reading.query), []
    except TableError as error:
        raise TableError(f"{shown_url(name)} {without_secrets(str(error), name)}") from None
    ordered = reading.query is None or "order by" in " ".join(reading.query.lower().split())
    return Read(found, reading, (*notes, *([] if ordered else [UNORDERED])))


def _read_sqlite(place: str, table: str | None, reading: Reading) -> tuple[pa.Table, list[str]]:
    path = Path(unquote(place.partition("://")[2]).removeprefix("/"))
    if not path.is_file():
        raise TableError("names a file that is not there; an absolute path has four slashes")
    query = reading.query or f"SELECT * FROM {_quoted(table or '')}"  # noqa: S608, it is quoted
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            base.execute("PRAGMA query_only = ON")
            # Without this limit, ATTACH and VACUUM INTO could still make a new file.
            base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_ROW)
            answer = base.execute(query)
            if answer.description is None:
                raise TableError("gave no table: the query is not a SELECT")
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
    """Fetch all rows within a limit: a view in a small file may have endless rows."""
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


def _read_postgresql(url: str, table: str | None, query: str | None) -> pa.Table:
    """Read a table in the order of its primary key, or a query in its own order."""
    import adbc_driver_postgresql.dbapi as driver

    try:
        with closing(driver.connect(url)) as connection, closing(connection.cursor()) as cursor:
            # The driver has begun a transaction; closing the connection rolls it back.
            cursor.execute("SET TRANSACTION READ ONLY")
            if query:
                return _answer(cursor, f"({query.rstrip().rstrip(';')}\n)", "")
            named = ".".join(_quoted(part) for part in (table or "").split(".", 1))
            return _answer(cursor, named, _order(cursor, named))
    except driver.Error as error:
        raise TableError(f"cannot be read ({reason(error)})") from None


def _quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _rows(cursor: Any, query: str) -> list[Any]:
    cursor.execute(query)
    return cursor.fetch_arrow_table().columns[0].to_pylist()  # type: ignore[no-any-return]


def _order(cursor: Any, named: str) -> str:
    """Order by the primary key, or else by place: that stays until something is written."""
    literal = "'" + named.replace("'", "''") + "'"
    key = _rows(cursor, PRIMARY_KEY.format(literal))
    if not key and _rows(cursor, HAS_ROWS_OF_ITS_OWN.format(literal)) == [True]:
        return " ORDER BY ctid"
    return f" ORDER BY {', '.join(map(_quoted, key))}" if key else ""


def _answer(cursor: Any, source: str, order: str) -> pa.Table:
    cursor.execute(f"SELECT * FROM {source} AS source LIMIT 0")  # noqa: S608, the owner's own
    schema = cursor.fetch_arrow_table().schema
    check_names(schema.names)
    if not schema.names:
        raise TableError("gave no table: the query is not a SELECT")
    kinds = [(field.metadata or {}).get(b"POSTGRESQL:type", b"").decode() for field in schema]
    listed = ", ".join(map(_selected, schema, kinds))
    cursor.execute(f"SELECT {listed} FROM {source} AS source{order}")  # noqa: S608
    found = cursor.fetch_arrow_table()
    arrays = [column.combine_chunks() for column in found.columns]
    return pa.table(list(map(_column, schema.names, kinds, arrays)), schema.names)


def _selected(field: pa.Field, kind: str) -> str:
    """Select as text what has no Arrow type; money as a number, as the driver gives cents."""
    name = _quoted(field.name)
    if kind == "money":
        return f"{name}::numeric AS {name}"
    is_known = not isinstance(field.type, pa.BaseExtensionType) and kind != "bpchar"
    return name if is_known else f"{name}::text AS {name}"


def _column(name: str, kind: str, array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if kind in ("numeric", "money"):
        return _decimals(name, array)
    is_day = pa.types.is_date32(array.type)
    if is_day or pa.types.is_timestamp(array.type):
        first, width = (FIRST_DAY, pa.int32()) if is_day else (FIRST_MOMENT, pa.int64())
        least = pc.min(array.cast(width)).as_py()
        if least is not None and least < first:
            raise TableError(
                f"has infinity as a date in column {name!r}, which is not a date; leave these"
                f" rows out, or make them missing: NULLIF({name}, 'infinity')"
            )
    return array


def _decimals(name: str, array: pa.Array) -> pa.Array:
    """Return exact numbers: whole numbers if all values are whole, else decimals."""
    texts = array.to_pylist()
    values = [None if text is None or text.lower() == "nan" else Decimal(text) for text in texts]
    present = [value for value in values if value is not None]
    if any(value.is_infinite() for value in present):
        raise TableError(f"has an infinite number in column {name!r}; leave these rows out")
    scale = max((max(0, -int(value.as_tuple().exponent)) for value in present), default=0)
    digits = max((value.adjusted() + 1 for value in present if value), default=1)
    if scale == 0 and all(-(2**63) <= value < 2**63 for value in present):
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    precision = max(digits, 1) + scale
    if precision > MOST_DIGITS:
        raise TableError(
            f"has numbers of {precision} digits in column {name!r}, and {MOST_DIGITS} can be held;"
            " round them in a query"
        )
    kind = pa.decimal128 if precision <= 38 else pa.decimal256
    return pa.array(values, kind(precision, scale))
