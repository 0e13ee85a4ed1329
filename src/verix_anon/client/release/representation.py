"""How the owner wants quasi-identifiers published, and what that means for each (spec §12).

A quasi-identifier is published as intervals, bounds, midpoints, means or shares of a class's own
records. Each bound is a real person's value. There are three remedies for that:

- The ends of a column are capped at values that k persons reach, unless `exact_ends` is set.
- Rounding widens a class outwards to multiples of a step.
- Top-coding replaces each value beyond a cap by the cap. The interval `50..>=80` means from 50 to
  80 or more, `<=20..70` from 20 or less to 70, and `>=80` 80 or more. Bounds and midpoints use the
  cap as the value, and a mean is the mean of the capped values.

Common bins widen every class outwards to boundaries that all classes share, so that people can
count and group. Kept and sensitive columns are rounded, capped and binned too, value by value.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import IntEnum, StrEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from verix_anon.arrays import Floats, Ints
from verix_anon.client.arguments import check_fields
from verix_anon.client.table.encode import PER_DAY
from verix_anon.client.table.hierarchies import PREFIX, Hierarchy
from verix_anon.client.table.roles import unknown_column
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Kind, Unit
from verix_anon.protocol.tree import NUMPY_UNITS

Caps = tuple[float | None, float | None]
AUTO = "auto"
BIN = re.compile(r"(\d+)([dwmqy])")
DAYS = {"d": 1, "w": 7}
MONTHS = {"m": 1, "q": 3, "y": 12}
MONDAY = 3
"""Days from a Monday to 1970-01-01."""
MOST_MONTHS = 1200
"""The most months, days, weeks and so on in one bin."""
EPOCH = 12 * 1970
"""Months from the year 0 to 1970."""


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
    """Whether the owner gave its categories an order."""
    hierarchy: Hierarchy | None = None
    is_filled: bool = False
    """For models: dates as numbers, and a class without a value takes the column's mean."""
    bins: float | str | None = None
    """The width of common bins, or the level of a hierarchy; `auto` if it is still to be chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """How columns are published; dates count in the column's unit, from 1970.

    Rounding, caps, bins and dropping are for kept and sensitive columns too; their dates count in
    days.
    """

    representation: Representation | str = Representation.INTERVAL
    """For all columns that can be published so; the others become intervals or sets."""
    representations: Mapping[str, Representation | str] = field(default_factory=dict)
    """For single columns."""
    round_to: Mapping[str, float | str] = field(default_factory=dict)
    """Round bounds outwards to multiples of this; for dates also to month, quarter or year."""
    top_code: Mapping[str, Caps] = field(default_factory=dict)
    """The lowest and the highest value that is published."""
    bins: Mapping[str, float | str] | str = field(default_factory=dict)
    """Let cells end at boundaries that all classes share: a width, for dates such as `5y`, for
    codes the number of leading characters, for another hierarchy its level; `auto` finds one.
    `auto` alone is for all quasi-identifiers."""
    drop: Sequence[str] = ()
    """Columns that are left out; not the target."""
    suppress: float = 0.0
    """Leave out the records that cost most to keep, at most those of this share of the people."""
    exact_ends: bool = False
    """Publish a column's least and greatest value even if fewer than k persons reach it."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.suppress < 1:
            raise TableError(
                f"suppress is a share of the people, such as 0.02 or 2%, not {self.suppress!r}"
            )

    def chosen(
        self,
        quasi: Sequence[Column],
        ordered: Collection[str],
        hierarchies: Mapping[str, Hierarchy],
        others: Sequence[Column] = (),
    ) -> dict[str, ColumnForm]:
        """Return the form of each quasi-identifier; the owner gave those in `ordered` an order.

        `others` are the kept and sensitive columns that are not published as they are.

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
        self._check_rounding([*quasi, *others], found)
        self._check_caps([*quasi, *others])
        return {column.name: self._with_bins(column, found[column.name]) for column in quasi}

    def form_of(self, column: Column) -> ColumnForm:
        """Return the form of a kept or sensitive column, which is published value by value."""
        form = ColumnForm(representation=Representation.INTERVAL)
        return self._with_bins(column, form)

    def _of(self, column: Column, is_ordered: bool) -> Representation:
        own, wanted = self.representations.get(column.name), self._wanted(column)
        if wanted is Representation.MODEL:
            is_category = column.categories is not None
            return Representation.SHARES if is_category else Representation.MEAN
        problem = _unfit(wanted, column, is_ordered)
        if problem is None:
            return wanted
        # A program that asks for bounds looks for their columns, so refuse.
        if own is None and wanted is not Representation.BOUNDS:
            return Representation.INTERVAL
        raise TableError(f"column {column.name!r} {problem}")

    def _wanted(self, column: Column) -> Representation:
        return Representation(self.representations.get(column.name, self.representation))

    @property
    def _bins(self) -> Mapping[str, float | str]:
        """The bins of each column; empty for a single `auto`, until `beside` knows the columns."""
        return {} if isinstance(self.bins, str) else self.bins

    def remedies(self, name: str) -> dict[str, object]:
        """Return what is done to a kept or sensitive column, for the dictionary."""
        given = {"round": self.round_to, "top_code": self.top_code, "bins": self._bins}
        return {each: by_name[name] for each, by_name in given.items() if name in by_name}

    def beside(self, said: Mapping[str, Any], quasi: Sequence[Column]) -> Self:
        """Return these options with those of [release] in a roles file; these win.

        Raises:
            TableError: The file asks for something that a release cannot do.
        """
        other = remedies_of(said, quasi)
        own = _for_all(self.bins, quasi)
        left = {*self.round_to, *own}
        return replace(
            self,
            round_to={n: v for n, v in other.round_to.items() if n not in left} | {**self.round_to},
            top_code={**other.top_code, **self.top_code},
            bins={n: v for n, v in other._bins.items() if n not in left} | own,
            drop=(*other.drop, *self.drop),
            suppress=self.suppress or other.suppress,
        )

    def check_names(self, roles: Mapping[str, str]) -> None:
        """Raise TableError if a remedy is for a column that cannot have one."""
        for name in (*self.round_to, *self.top_code, *self._bins, *self.drop):
            if name not in roles:
                raise unknown_column(name, list(roles))
            if name in self.drop and name in self.round_to and roles[name] != "quasi":
                raise TableError(f"column {name!r} is dropped; a dropped column cannot be rounded")
            if roles[name] in ("target", "identifier"):
                raise TableError(
                    f"column {name!r} is declared as {roles[name]}; only quasi-identifiers, kept"
                    " and sensitive columns are rounded, top-coded, binned or dropped"
                )

    def _with_bins(self, column: Column, form: ColumnForm) -> ColumnForm:
        """Return the form with the bins that were asked for, as a number or as `5y`."""
        given, name = self._bins.get(column.name), column.name
        is_fit = form.representation not in (Representation.MEAN, Representation.SHARES)
        if given is None or (given == AUTO and (not is_fit or name in self.round_to)):
            return form
        if not is_fit or name in self.round_to:
            what = "it is rounded" if is_fit else f"it is published as {form.representation}"
            raise TableError(f"column {name!r} cannot have bins: {what}")
        codes = column.categories
        if given == AUTO:
            return (
                form if codes is not None and form.hierarchy is None else replace(form, bins=AUTO)
            )
        if codes is not None and form.hierarchy is None and not form.is_ordered:
            # Leading characters can name groups only if the codes are sorted.
            if [*codes] != sorted(codes):
                raise TableError(
                    f"column {name!r} needs a hierarchy to have bins: prepare with one"
                )
            form = replace(form, hierarchy=Hierarchy(kind=PREFIX))
        return replace(form, bins=_bin_width(column, form, given))

    def _check_rounding(self, quasi: Sequence[Column], chosen: Mapping[str, ColumnForm]) -> None:
        for name, step in self.round_to.items():
            column = _numeric(quasi, name, "rounded")
            if name in chosen and chosen[name].representation is Representation.MEAN:
                raise TableError(f"column {name!r}: only bounds can be rounded, not a mean")
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
        """Return the lowest and the highest value that is published of a column."""
        low, high = self.top_code.get(name, (None, None))
        return -math.inf if low is None else low, math.inf if high is None else high

    def is_whole(self, name: str, bins: float | str | None = None) -> bool:
        """Whether whole bounds are still whole after rounding, capping and binning."""
        chosen = (self.round_to.get(name), *self.top_code.get(name, ()), bins)
        return all(
            value is None or (not isinstance(value, str) and float(value).is_integer())
            for value in chosen
        )


def remedies_of(said: Mapping[str, Any], quasi: Sequence[Column]) -> Presentation:
    """Read the options of a command or of [release] in a roles file, for these quasi-identifiers.

    Raises:
        TableError: It says something else.
    """
    units = {c.name: NUMPY_UNITS[c.unit] for c in quasi if c.unit is not None}
    found = {"round_to" if name == "round" else name: value for name, value in said.items()}
    try:
        caps = found.get("top_code", {}).items()
        found["top_code"] = {n: _caps(n, str(text), units.get(n)) for n, text in caps}
        found["bins"] = _for_all(found.get("bins", {}), quasi)
        return Presentation(**found)
    except (AttributeError, TypeError):
        raise TableError(
            "[release] holds tables round, top_code and bins, a list drop and a number suppress"
        ) from None


def _for_all(
    bins: Mapping[str, float | str] | str, quasi: Sequence[Column]
) -> dict[str, float | str]:
    """Return the bins of each column; a single `auto` is for all quasi-identifiers."""
    if not isinstance(bins, str):
        return {**bins}
    if bins != AUTO:
        raise TableError(f"bins are auto, or a width for each column, not {bins!r}")
    return dict.fromkeys((c.name for c in quasi), AUTO)


def _unfit(wanted: Representation, column: Column, is_ordered: bool) -> str | None:
    """Say why a column cannot be published in this way; None if it can."""
    is_category = column.categories is not None
    match wanted:
        case Representation.BOUNDS | Representation.MIDPOINT if is_category and not is_ordered:
            what = "bounds" if wanted is Representation.BOUNDS else "midpoint"
            return (
                f"has categories without an order of yours, so it has no {what};"
                " publish intervals, or prepare with an order for it"
            )
        case Representation.MEAN if is_category:
            return "has categories, which have no mean; publish it as intervals or shares"
        case Representation.SET if not is_category:
            return "has no categories; publish it as intervals"
        case Representation.SHARES if not is_category:
            return "has no categories, so a class has no shares of them; publish its mean"
    return None


def _numeric(quasi: Sequence[Column], name: str, what: str) -> Column:
    column = next((c for c in quasi if c.name == name), None)
    if column is None:
        raise unknown_column(name, [c.name for c in quasi])
    if column.kind is Kind.CATEGORICAL:
        raise TableError(f"column {name!r} is categorical; only numbers and dates can be {what}")
    return column


def _bin_width(column: Column, form: ColumnForm, given: float | str) -> float | str:
    """Read the width of bins: a number, or for dates a text such as `5y`.

    Raises:
        TableError: A column of this kind has no such bins.
    """
    if column.kind is Kind.DATETIME:
        found = BIN.fullmatch(str(given))
        if found is None or not 0 < int(found[1]) <= MOST_MONTHS:
            raise TableError(
                f"column {column.name!r} is a date: its bins are so many d, w, m, q or y, such as"
                f" 5y, not {given}"
            )
        return str(given)
    try:
        width = float(given)
    except ValueError:
        width = math.nan
    if not (math.isfinite(width) and width > 0):
        raise TableError(f"bins of column {column.name!r} need a number above 0, not {given!r}")
    if column.kind is Kind.CATEGORICAL:
        height = form.hierarchy.height if form.hierarchy is not None else 0
        if not width.is_integer() or (height and width > height):
            most = f"a level from 1 to {height}" if height else "a whole number, 1 or more"
            raise TableError(f"bins of column {column.name!r} need {most}, not {given}")
    return width


def _caps(name: str, text: str, unit: str | None) -> Caps:
    """Read caps from LOW:HIGH; either may be left out. Dates count in numpy's `unit`, or days.

    Raises:
        TableError: It says something else.
    """
    low, colon, high = text.partition(":")
    if not colon:
        raise TableError(f"{name}={text} is not of the form COLUMN=LOW:HIGH")
    ends = [_end(name, end, unit) if end else None for end in (low, high)]
    return ends[0], ends[1]


def _end(name: str, text: str, unit: str | None) -> float:
    """Read a number, or a date as the number of units since 1970."""
    try:
        day = np.datetime64(date.fromisoformat(text)).astype(f"M8[{unit or 'D'}]")
        return float(day.astype(np.int64))
    except ValueError:
        if unit is not None:
            raise TableError(
                f"{text!r} for column {name!r} is not a date like 2024-01-31"
            ) from None
    try:
        return float(text)
    except ValueError:
        raise TableError(f"{text!r} for column {name!r} is not a number") from None


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


def starts(unit: Unit, values: Floats, period: int) -> "npt.NDArray[np.datetime64]":
    """Return the first month of each date's period; `period` is its number of months."""
    months = values.astype(np.int64).astype(f"M8[{NUMPY_UNITS[unit]}]").astype("M8[M]")
    count: Ints = months.astype(np.int64) + EPOCH
    return (count // int(period) * int(period) - EPOCH).astype("M8[M]")


def widened(unit: Unit, low: Floats, high: Floats, period: int) -> tuple[Floats, Floats]:
    """The first moment of the period of each `low`, and the last of that of each `high`."""
    kind = f"M8[{NUMPY_UNITS[unit]}]"
    first = starts(unit, low, period).astype(kind).astype(np.int64)
    after = (starts(unit, high, period) + np.timedelta64(int(period), "M")).astype(kind)
    return first.astype(np.float64), (after.astype(np.int64) - 1).astype(np.float64)


def date_bins(unit: Unit, low: Floats, high: Floats, width: str) -> tuple[Floats, Floats]:
    """The first moment of the bin of each `low`, and the last of that of each `high`.

    Bins of months and years count from the year 0, those of days and weeks from a Monday.
    """
    found = BIN.fullmatch(width)
    assert found is not None
    if months := period_of(width)[1]:
        return widened(unit, low, high, months)
    size = int(found[1]) * DAYS[found[2]]
    per = PER_DAY[unit]
    first, last = (np.floor((np.floor(x / per) + MONDAY) / size) * size for x in (low, high))
    return (first - MONDAY) * per, (last + size - MONDAY) * per - 1


def period_of(width: str) -> tuple[Period, int]:
    """Return the period that names bins of dates, and the months of a bin; 0 if days name it."""
    found = BIN.fullmatch(width)
    months = int(found[1]) * MONTHS.get(found[2], 0) if found is not None else 0
    named = next((p for p in (12, 3, 1) if months and months % p == 0), 0)
    return Period(named), months


def covering(unit: Unit, low: Floats, high: Floats) -> Ints:
    """Return the finest period that holds each range; years if none does, DAY for a moment."""
    found = np.full(low.size, int(Period.YEAR))
    for period in (Period.QUARTER, Period.MONTH):
        found[starts(unit, low, period) == starts(unit, high, period)] = int(period)
    found[low == high] = int(Period.DAY)
    return found
