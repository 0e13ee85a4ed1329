"""Columns as programs other than Arrow's have them: numbers, text, dates and times, yes or no."""

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.errors import TableError

__all__ = ["plain_values"]

EXACT = 2**53
LAST = dt.datetime(9999, 12, 31)


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
        return _moments(column, first)
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


def _moments(column: pa.ChunkedArray, first: dt.datetime) -> pa.ChunkedArray:
    """Milliseconds without a zone, in UTC, or text."""
    try:
        moments = column.cast(pa.timestamp("ms")) if column.type.tz is None else column
        moments = moments.cast(pa.timestamp("ms", tz=column.type.tz)).cast(pa.int64())
        moments = moments.cast(pa.timestamp("ms"))
    except pa.ArrowInvalid:
        return _texts(column)
    return moments if _lies(moments, first, LAST) else _texts(column)


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
