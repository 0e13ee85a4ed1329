"""From a leaf to what is published of it: midpoints for models, words for people (spec §5)."""

import math

import numpy as np

from verix_anon.arrays import Floats
from verix_anon.protocol.contract import EXACT, Column, Unit
from verix_anon.protocol.tree import Leaves

__all__ = ["NUMPY_UNITS", "midpoints", "show_value"]

NUMPY_UNITS = {
    Unit.DAY: "D",
    Unit.SECOND: "s",
    Unit.MILLISECOND: "ms",
    Unit.MICROSECOND: "us",
}


def midpoints(leaves: Leaves) -> Floats:
    """The middle of each leaf's bounds, halved before adding so that nothing overflows."""
    return leaves.minimum / 2 + leaves.maximum / 2


def show_value(column: Column, value: float) -> str:
    """One value as people write it: a date, a whole number without a point, a label, a place.

    A value between two, such as a midpoint, is shown as the date or label below it; one that
    the column cannot have, such as a provider may send, as the bare number.
    """
    if column.size is not None and 0 <= value < column.size:
        return f"place {math.floor(value) + 1} of {column.size}"
    if column.categories is not None and 0 <= value < len(column.categories):
        return column.categories[math.floor(value)]
    if column.unit is not None and abs(value) <= EXACT:
        return str(np.int64(math.floor(value)).astype(f"M8[{NUMPY_UNITS[column.unit]}]"))
    # Past 2**53 a float no longer names one integer, so its own notation is the honest one.
    return str(int(value)) if abs(value) <= EXACT and value == int(value) else repr(value)
