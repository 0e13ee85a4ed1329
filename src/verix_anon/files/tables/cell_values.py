"""Turn columns of cells, as programs store them, into one type each, and write plain types."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.errors import TableError

EXACT = 2**53
LAST = dt.datetime(9999, 12, 31)
WORDS = {
    bool: "yes or no",
    int: "numbers",
    float: "numbers",
    str: "text",
    bytes: "bytes",
    dt.date: "dates",
    dt.datetime: "dates",
    dt.time: "times of day",
    dt.timedelta: "durations",
}
TYPES: dict[frozenset[type], pa.DataType] = {
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({str}): pa.string(),
    frozenset({bytes}): pa.binary(),
    frozenset({dt.date}): pa.date32(),
    frozenset({dt.datetime}): pa.timestamp("us"),
    frozenset({dt.date, dt.datetime}): pa.timestamp("us"),
    frozenset({dt.time}): pa.time64("us"),
    frozenset({dt.timedelta}): pa.duration("us"),
}


def column_of(name: str, cells: Sequence[Any], rows: Sequence[int]) -> tuple[pa.Array, str | None]:
    """The column, and what is to be said of it; None is a missing cell.

    Floats that are all whole are whole numbers. A column of several kinds is text, with a
    sentence that names the first that is not like the rest, by its number in `rows`.
    """
    kinds = frozenset({type(cell) for cell in cells} - {type(None)})
    if not kinds:
        return pa.nulls(len(cells), pa.string()), None
    if kinds <= {int, float}:
        return _numbers(cells), None
    if kinds in TYPES:
        if kinds == {dt.date, dt.datetime}:
            midnight = dt.time()
            cells = [dt.datetime.combine(c, midnight) if type(c) is dt.date else c for c in cells]
        return pa.array(cells, TYPES[kinds]), None
    return pa.array(map(_text, cells), pa.string()), _mixed(name, cells, rows)


def _numbers(cells: Sequence[Any]) -> pa.Array:
    present = [cell for cell in cells if cell is not None]
    if all(isinstance(c, int) or (c.is_integer() and abs(c) <= EXACT) for c in present):
        whole = [None if cell is None else int(cell) for cell in cells]
        if all(-(2**63) <= cell < 2**63 for cell in whole if cell is not None):
            return pa.array(whole, pa.int64())
        return pa.array([None if cell is None else str(cell) for cell in whole], pa.string())
    return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())


def _text(cell: Any) -> str | None:
    """A cell among others of another kind, as it would be typed."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bytes):
        return cell.hex()
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= EXACT:
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, dt.date | dt.time) else str(cell)


def _mixed(name: str, cells: Sequence[Any], rows: Sequence[int]) -> str:
    words = [None if cell is None else WORDS[type(cell)] for cell in cells]
    kinds = sorted({word for word in words if word is not None})
    rare = min(kinds, key=words.count)
    at = words.index(rare)
    lost = ""
    if kinds == ["numbers", "text"] and any(
        isinstance(cell, str) and cell[:1] == "0" and cell.isdecimal() for cell in cells
    ):
        lost = "; a code that was typed as a number has lost its leading zeros"
    return (
        f"column {name!r} mixes {' and '.join(kinds)}, such as {_text(cells[at])!r} in row"
        f" {rows[at]}: all of it is read as text{lost}"
    )


def plain_values(name: str, column: pa.ChunkedArray, first: dt.datetime) -> pa.ChunkedArray:
    """The column in a type that every program has; what a type cannot hold exactly is text.

    Dates before `first` and whole numbers beyond 2^53 are such, and times finer than a
    millisecond.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain_values(name, column.cast(kind.storage_type), first)
    if pa.types.is_dictionary(kind):
        return plain_values(name, column.cast(kind.value_type), first)
    if pa.types.is_integer(kind):
        return column.cast(pa.int64()) if _lies(column, -EXACT, EXACT) else _texts(column)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _floats(name, column)
    if pa.types.is_date(kind):
        days = column.cast(pa.date32())
        return days if _lies(days, first.date(), LAST.date()) else _texts(days)
    if pa.types.is_timestamp(kind):
        try:
            # Milliseconds without a zone, in UTC.
            moments = column.cast(pa.timestamp("ms", tz=kind.tz)).cast(pa.int64())
            moments = moments.cast(pa.timestamp("ms"))
        except pa.ArrowInvalid:
            return _texts(column)
        return moments if _lies(moments, first, LAST) else _texts(column)
    return column if pa.types.is_boolean(kind) else _texts(column)


def _floats(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_decimal(column.type):
        # Arrow's own conversion of decimals is not always to the nearest float.
        column = column.cast(pa.string())
    values = column.cast(pa.float64())
    values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    if pc.any(pc.is_inf(values)).as_py():
        raise TableError(f"column {name!r} has an infinite value, which such a file cannot hold")
    return values


def _lies(column: pa.ChunkedArray, least: object, most: object) -> bool:
    kind = column.type if not pa.types.is_integer(column.type) else pa.int64()
    if pa.types.is_uint64(column.type) and not pc.all(pc.less_equal(column, EXACT)).as_py():
        return False
    outside = pc.or_(
        pc.less(column.cast(kind), pa.scalar(least, kind)),
        pc.greater(column.cast(kind), pa.scalar(most, kind)),
    )
    return not pc.any(outside).as_py()


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.large_string())])
