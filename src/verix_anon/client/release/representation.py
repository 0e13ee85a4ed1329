"""How the owner wants quasi-identifiers published, and what that means for each (spec §12).

What is published of a quasi-identifier are intervals, bounds, midpoints, means or shares of a
class's own records. Since each bound is a real person's value there are three remedies:

- The ends of a column are capped at values that k persons reach, unless `exact_ends` is set.
- Rounding widens a class outwards to multiples of a step.
- Top-coding puts a cap in place of what lies beyond it. As an interval `50..>=80` reads
  from 50 to 80 or more, `<=20..70` from 20 or less to 70, and `>=80` 80 or more; bounds and
  midpoints take the cap for the value; a mean is of the values so capped.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt

from verix_anon.arrays import Floats, Ints
from verix_anon.client.arguments import check_fields
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.table.roles import unknown_column
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Unit
from verix_anon.protocol.tree import NUMPY_UNITS

Caps = tuple[float | None, float | None]


class Representation(StrEnum):
    """How a quasi-identifier is published."""

    INTERVAL = "interval"
    BOUNDS = "bounds"
    MIDPOINT = "midpoint"
    MEAN = "mean"
    SHARES = "shares"
    SET = "set"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnForm:
    """How one column is published."""

    representation: Representation
    is_ordered: bool = False
    """Whether its categories have an order of the owner's."""
    hierarchy: Hierarchy | None = None
    is_filled: bool = False
    """For models: dates as numbers, and a class without a value takes the column's mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """How quasi-identifiers are published; dates count in the column's unit, from 1970."""

    representation: Representation | str = Representation.INTERVAL
    """Of all columns that can be published so; others are published as intervals or sets."""
    representations: Mapping[str, Representation | str] = field(default_factory=dict)
    """Of single columns."""
    round_to: Mapping[str, float | str] = field(default_factory=dict)
    """Bounds are rounded outwards to multiples of this; dates to month, quarter or year, too."""
    top_code: Mapping[str, Caps] = field(default_factory=dict)
    """The lowest and the highest value that is published."""
    exact_ends: bool = False
    """Publish the least and the greatest value of a column though fewer than k persons reach it."""

    def __post_init__(self) -> None:
        check_fields(self)

    def chosen(
        self,
        quasi: Sequence[Column],
        ordered: Collection[str],
        hierarchies: Mapping[str, Hierarchy],
    ) -> dict[str, ColumnForm]:
        """The form of each column; `ordered` have categories in an order of the owner's.

        Raises:
            TableError: Something that was asked for does not fit a column.
        """
        names = [column.name for column in quasi]
        for name in self.representations:
            if name not in names:
                raise unknown_column(name, names)
        found = {
            column.name: ColumnForm(
                representation=self._of(column, column.name in ordered),
                is_ordered=column.name in ordered,
                hierarchy=hierarchies.get(column.name),
                is_filled=self._wanted(column) is Representation.MODEL,
            )
            for column in quasi
        }
        self._check_rounding(quasi, found)
        self._check_caps(quasi)
        return found

    def _of(self, column: Column, is_ordered: bool) -> Representation:
        own, wanted = self.representations.get(column.name), self._wanted(column)
        if wanted is Representation.MODEL:
            is_category = column.categories is not None
            return Representation.SHARES if is_category else Representation.MEAN
        problem = _unfit(wanted, column, is_ordered)
        if problem is None:
            return wanted
        # Bounds are asked for by programs that look for their columns.
        if own is None and wanted is not Representation.BOUNDS:
            return Representation.INTERVAL
        raise TableError(f"column {column.name!r} {problem}")

    def _wanted(self, column: Column) -> Representation:
        return Representation(self.representations.get(column.name, self.representation))

    def _check_rounding(self, quasi: Sequence[Column], chosen: Mapping[str, ColumnForm]) -> None:
        for name, step in self.round_to.items():
            column = _numeric(quasi, name, "rounded")
            if chosen[name].representation is Representation.MEAN:
                raise TableError(f"column {name!r}: bounds are rounded, and a mean is none")
            if isinstance(step, str):
                if step not in BY_NAME or column.unit is None:
                    raise TableError(
                        f"column {name!r} cannot be rounded to {step!r}: give a number, or for"
                        f" dates one of {', '.join(BY_NAME)}"
                    )
                continue
            if not (math.isfinite(step) and step > 0):
                raise TableError(f"the step for column {name!r} must be greater than 0, not {step}")
            _check_whole(column, step)

    def _check_caps(self, quasi: Sequence[Column]) -> None:
        for name, (low, high) in self.top_code.items():
            column = _numeric(quasi, name, "top-coded")
            given = [cap for cap in (low, high) if cap is not None]
            if not given or not all(math.isfinite(cap) for cap in given):
                raise TableError(f"column {name!r} needs a lowest or a highest value to cap at")
            if low is not None and high is not None and not low < high:
                raise TableError(f"column {name!r}: the lower cap must be below the upper one")
            for cap in given:
                _check_whole(column, cap)

    def caps(self, name: str) -> tuple[float, float]:
        """The lowest and the highest value that is published of a column."""
        low, high = self.top_code.get(name, (None, None))
        return -math.inf if low is None else low, math.inf if high is None else high

    def is_whole(self, name: str) -> bool:
        """Whether whole bounds stay whole."""
        chosen = (self.round_to.get(name), *self.top_code.get(name, ()))
        return all(
            value is None or (not isinstance(value, str) and float(value).is_integer())
            for value in chosen
        )


def _unfit(wanted: Representation, column: Column, is_ordered: bool) -> str | None:
    """Why a column cannot be published so; None if it can."""
    is_category = column.categories is not None
    match wanted:
        case Representation.BOUNDS | Representation.MIDPOINT if is_category and not is_ordered:
            what = "bounds" if wanted is Representation.BOUNDS else "midpoint"
            return (
                f"has categories without an order of yours, so that it has no {what};"
                " publish intervals, or prepare with an order for it"
            )
        case Representation.MEAN if is_category:
            return "has categories, which have no mean; publish intervals or shares of it"
        case Representation.SET if not is_category:
            return "has no categories; publish intervals of it"
        case Representation.SHARES if not is_category:
            return "has no categories of which a class could have shares; publish its mean"
    return None


def _numeric(quasi: Sequence[Column], name: str, what: str) -> Column:
    column = next((c for c in quasi if c.name == name), None)
    if column is None or column.categories is not None:
        kind = "not a quasi-identifier" if column is None else "categorical"
        raise TableError(f"column {name!r} is {kind}; only numbers and dates can be {what}")
    return column


def _check_whole(column: Column, value: float) -> None:
    if column.unit is not None and not float(value).is_integer():
        raise TableError(f"column {column.name!r} is a date: use whole numbers of {column.unit}")


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
