"""A table or a query of PostgreSQL, as columns of Arrow; the driver is the extra `sql`.

Errors begin with what is wrong; the caller puts the URL before, and sees that no password is in
what the driver says.
"""

from contextlib import closing
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.errors import TableError
from verix_anon.files.tables.opening import check_names, reason

__all__ = ["read_postgresql"]

MOST_DIGITS = 76
# The driver carries infinity past the end of its integers, to before the first year there is.
FIRST_DAY, FIRST_MOMENT = -3_000_000, -300_000_000_000_000_000
PRIMARY_KEY = """
SELECT a.attname FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = {}::regclass AND i.indisprimary ORDER BY array_position(i.indkey, a.attnum)
"""
HAS_ROWS_OF_ITS_OWN = "SELECT relkind IN ('r', 'm') FROM pg_class WHERE oid = {}::regclass"


def read_postgresql(url: str, table: str | None, query: str | None) -> pa.Table:
    """Read a table in the order of its primary key, or a query in the order it has."""
    import adbc_driver_postgresql.dbapi as driver

    try:
        with (
            closing(driver.connect(url)) as connection,
            closing(connection.cursor()) as cursor,
        ):
            # The driver has begun a transaction; it ends with the connection, undone.
            cursor.execute("SET TRANSACTION READ ONLY")
            source = f"({query.rstrip().rstrip(';')}\n)" if query else _named(table or "")
            order = "" if query else _order(cursor, _named(table or ""))
            return _answer(cursor, source, order)
    except driver.Error as error:
        raise TableError(f"cannot be read ({reason(error)})") from None


def _named(table: str) -> str:
    return ".".join(_quoted(part) for part in table.split(".", 1))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _rows(cursor: Any, query: str) -> list[Any]:
    cursor.execute(query)
    return cursor.fetch_arrow_table().columns[0].to_pylist()  # type: ignore[no-any-return]


def _order(cursor: Any, named: str) -> str:
    """By the primary key; else as the rows lie, which stays while nothing is written."""
    key = _rows(cursor, PRIMARY_KEY.format(_literal(named)))
    if not key and _rows(cursor, HAS_ROWS_OF_ITS_OWN.format(_literal(named))) == [True]:
        return " ORDER BY ctid"
    return f" ORDER BY {', '.join(map(_quoted, key))}" if key else ""


def _answer(cursor: Any, source: str, order: str) -> pa.Table:
    cursor.execute(f"SELECT * FROM {source} AS source LIMIT 0")  # noqa: S608, the owner's own
    schema = cursor.fetch_arrow_table().schema
    check_names(schema.names)
    if not schema.names:
        raise TableError("gave no table: the query is no SELECT")
    listed = ", ".join(map(_selected, schema))
    cursor.execute(f"SELECT {listed} FROM {source} AS source{order}")  # noqa: S608
    found = cursor.fetch_arrow_table()
    columns = [
        _column(field.name, _kind(field), found.column(i).combine_chunks())
        for i, field in enumerate(schema)
    ]
    return pa.table(columns, schema.names)


def _kind(field: pa.Field) -> str:
    kind: bytes = (field.metadata or {}).get(b"POSTGRESQL:type", b"")
    return kind.decode()


def _selected(field: pa.Field) -> str:
    """What has no type of Arrow, as text; money as a number, for the driver gives cents."""
    name, kind = _quoted(field.name), _kind(field)
    if kind == "money":
        return f"{name}::numeric AS {name}"
    is_known = not isinstance(field.type, pa.BaseExtensionType) and kind != "bpchar"
    return name if is_known else f"{name}::text AS {name}"


def _column(name: str, kind: str, array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if kind in ("numeric", "money"):
        return _decimals(name, array)
    first = FIRST_DAY if pa.types.is_date32(array.type) else FIRST_MOMENT
    if pa.types.is_date32(array.type) or pa.types.is_timestamp(array.type):
        width = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
        least = pc.min(array.cast(width)).as_py()
        if least is not None and least < first:
            raise TableError(
                f"has infinity as a date in column {name!r}, which is no date; leave these rows"
                f" out, or make them missing: NULLIF({name}, 'infinity')"
            )
    return array


def _decimals(name: str, array: pa.Array) -> pa.Array:
    """Exact, whatever their digits: whole numbers where all are, else decimals."""
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
