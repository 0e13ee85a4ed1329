"""Months, quarters and years: what a date is widened to (spec §12)."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from verix_anon.arrays import Floats, Ints
from verix_anon.protocol.contract import Unit
from verix_anon.protocol.generalize import NUMPY_UNITS

__all__ = ["BY_NAME", "Period", "covering", "starts", "widened"]


class Period(IntEnum):
    """From the finest to the coarsest; DAY stands for the column's own unit."""

    DAY = 0
    MONTH = 1
    QUARTER = 3
    YEAR = 12


BY_NAME = {"month": Period.MONTH, "quarter": Period.QUARTER, "year": Period.YEAR}


def starts(unit: Unit, values: Floats, period: Period) -> "npt.NDArray[np.datetime64]":
    """The month in which the period of each date begins."""
    months = values.astype(np.int64).astype(f"M8[{NUMPY_UNITS[unit]}]").astype("M8[M]")
    count: Ints = months.astype(np.int64)
    return (count // int(period) * int(period)).astype("M8[M]")


def widened(unit: Unit, low: Floats, high: Floats, period: Period) -> tuple[Floats, Floats]:
    """The first moment of the period of each `low`, and the last of that of each `high`."""
    kind = f"M8[{NUMPY_UNITS[unit]}]"
    first = starts(unit, low, period).astype(kind).astype(np.int64)
    after = (starts(unit, high, period) + np.timedelta64(int(period), "M")).astype(kind)
    return first.astype(np.float64), (after.astype(np.int64) - 1).astype(np.float64)


def covering(unit: Unit, low: Floats, high: Floats) -> Ints:
    """The finest period that holds each range; years where none does, DAY where it is a moment."""
    found = np.full(low.size, int(Period.YEAR))
    for period in (Period.QUARTER, Period.MONTH):
        found[starts(unit, low, period) == starts(unit, high, period)] = int(period)
    found[low == high] = int(Period.DAY)
    return found
