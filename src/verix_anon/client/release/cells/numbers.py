"""Numbers and dates as cells: `lo..hi`, or the period that holds a class."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Floats, Ints
from verix_anon.client.release.cells.plain import joined
from verix_anon.client.release.periods import Period, starts
from verix_anon.client.release.ranges import EXACT, Range
from verix_anon.protocol.contract import Column
from verix_anon.protocol.generalize import NUMPY_UNITS

__all__ = ["spans"]

PART = 1 << 17
"""Classes that are written out together."""
USUAL = (1e-4, 1e10)
"""Between these neither Arrow nor Python writes an exponent."""


def spans(found: Range) -> pa.Array:
    """Text `lo..hi` with the marks of top-coding; whole numbers and periods by themselves."""
    # Some at a time: what a text is put together from takes several times its room.
    n = found.low.size
    parts = [_spans(found.part(at, at + PART)) for at in range(0, n, PART)]
    return pa.concat_arrays(parts)


def _spans(found: Range) -> pa.Array:
    low, high = _ends(found, found.low), _ends(found, found.high)
    is_one = found.low == found.high
    # 1.5 by itself is a date to some spreadsheets.
    is_short = is_one & (found.low >= 0) & (found.low == np.floor(found.low))
    is_short &= found.column.unit is None
    is_named = pc.and_(pa.array(is_short | (found.period != Period.DAY)), pc.equal(low, high))
    low = pc.if_else(pa.array(found.is_below), joined("<=", low, ""), low)
    high = pc.if_else(pa.array(found.is_above), joined(">=", high, ""), high)
    both = joined(low, high, "..")
    both = pc.if_else(is_named, low, both)
    both = pc.if_else(pa.array(is_one & found.is_below), low, both)
    return pc.if_else(pa.array(is_one & found.is_above), high, both)


def _ends(found: Range, values: Floats) -> pa.Array:
    texts = _texts(found.column, values)
    # A minus at the beginning makes a formula of a cell.
    is_negative = pc.starts_with(texts, "-")
    texts = pc.if_else(is_negative, joined("(", joined(texts, ")", ""), ""), texts)
    if found.column.unit is not None:
        for period in np.unique(found.period[found.period != Period.DAY]):
            is_such = found.period == period
            named = _names(found.column, values[is_such], Period(int(period)))
            texts = pc.replace_with_mask(texts, pa.array(is_such), named)
    return texts


def _names(column: Column, values: Floats, period: Period) -> pa.Array:
    """Periods by name, as SDMX writes them: `1958-M09`, `1958-Q3`, `1958`."""
    assert column.unit is not None
    months: Ints = starts(column.unit, values, period).astype("M8[M]").astype(np.int64)
    year, month = months // 12 + 1970, months % 12
    match period:
        case Period.MONTH:
            texts = [f"{y:04d}-M{m + 1:02d}" for y, m in zip(year, month, strict=True)]
        case Period.QUARTER:
            texts = [f"{y:04d}-Q{m // 3 + 1}" for y, m in zip(year, month, strict=True)]
        case _:
            texts = [f"{y:04d}" for y in year]
    return pa.array([f"({t})" if t[0] == "-" else t for t in texts], pa.large_string())


def _texts(column: Column, values: Floats) -> pa.Array:
    """`show_value` of many numbers or dates at once: a call for each would take seconds."""
    if column.unit is not None:
        moments = values.astype(np.int64).astype(f"M8[{NUMPY_UNITS[column.unit]}]")
        return pa.array(np.datetime_as_string(moments).tolist(), pa.large_string())
    size = np.abs(values)
    is_whole = (values == np.floor(values)) & (size <= EXACT)
    texts = pa.array(np.where(is_whole, values, 0.0).astype(np.int64)).cast(pa.large_string())
    # Here Arrow writes what repr does, in a seventh of the time.
    is_usual = ~is_whole & (size >= USUAL[0]) & (size < USUAL[1])
    if is_usual.any():
        usual = pa.array(values[is_usual]).cast(pa.large_string())
        texts = pc.replace_with_mask(texts, pa.array(is_usual), usual)
    is_other = ~(is_whole | is_usual)
    if is_other.any():
        others = pa.array(list(map(repr, values[is_other].tolist())), pa.large_string())
        texts = pc.replace_with_mask(texts, pa.array(is_other), others)
    return texts
