"""What each class holds of a quasi-identifier: its range, its categories, its mean (spec §12).

Values that are not there are NaN, and count for nothing but that they are missing.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.client.release.grouping import Grouped, expand
from verix_anon.client.release.representation import (
    AUTO,
    BY_NAME,
    ColumnForm,
    Period,
    Presentation,
    Representation,
    covering,
    date_bins,
    period_of,
    widened,
)
from verix_anon.client.table.encode import PER_DAY
from verix_anon.client.table.hierarchies import PREFIX
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column

EXACT = 2**53
Ends = tuple[float, float]
"""The least and the greatest value that may be printed of a column."""
OPEN: Ends = (-math.inf, math.inf)
DATE_WIDTHS = {"1m": 30, "1q": 91, "1y": 365, "2y": 731, "5y": 1826, "10y": 3652, "20y": 7305}
"""Usual widths of bins of dates, with their days."""
FEWEST, MOST = 3, 40
"""The usual numbers of bins."""
OFTEN = 0.25
"""The share of the records whose cells may span several of the bins that are chosen."""


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The categories that occur in each class: `position[start[c]:start[c + 1]]`, in order."""

    position: Ints
    start: Ints
    records: Ints
    """How many records of the class have each."""

    @property
    def occurring(self) -> Ints:
        """The categories that occur in the table, in order."""
        return np.flatnonzero(np.bincount(self.position))

    @classmethod
    def of(cls, laid: Floats, grouped: Grouped) -> "Sets":
        """From every record's position, laid out class by class."""
        is_there = ~np.isnan(laid)
        n_classes = grouped.count.size
        positions = laid[is_there].astype(np.int64)
        width = int(positions.max()) + 1
        keys = np.repeat(np.arange(n_classes), grouped.count)[is_there] * width + positions
        keys.sort()
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        found = keys[first]
        start = np.searchsorted(found, np.arange(n_classes + 1) * width)
        return cls(found % width, start, np.diff(first, append=keys.size))

    def widened(self, group_of: Ints) -> tuple["Sets", Ints]:
        """With all categories of the table that are in a group with one of the class's.

        Also returns how many groups each class has. `group_of` is the group of each category.
        """
        occurring = self.occurring
        members = Grouped.by(group_of[occurring], int(group_of.max()) + 1)
        class_of = np.repeat(np.arange(self.start.size - 1), np.diff(self.start))
        n_groups = members.count.size
        of, group = np.divmod(np.unique(class_of * n_groups + group_of[self.position]), n_groups)
        owner, place = expand(members.start[group], members.start[group + 1])
        keys = of[owner] * group_of.size + occurring[members.order[place]]
        keys.sort()
        start = np.searchsorted(keys, np.arange(self.start.size) * group_of.size)
        widened = Sets(keys % group_of.size, start, np.zeros(keys.size, np.int64))
        return widened, np.bincount(of, minlength=self.start.size - 1)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Range:
    """One quasi-identifier: what each class publishes of it."""

    column: Column
    source: pa.DataType
    """The type of the owner's column."""
    low: Floats
    """0 where no record of the class has a value, like `high` and `mean`."""
    high: Floats
    is_below: Flags
    """Where values lie below the lower cap, which is then `low`."""
    is_above: Flags
    is_any: Flags
    """Where nothing may be said: `low`, `high` and `mean` are 0, and both ends are open."""
    sets: Sets | None
    """The sets of a categorical column; None for other columns."""
    mean: Floats
    """Empty unless means are published."""
    period: Ints
    """For dates, the period by which each class is published."""
    form: ColumnForm
    missing: Ints
    """How many records of the class have no value."""
    records: Ints
    """How many records the class has."""
    stays_whole: bool
    """Whether bounds of whole numbers are whole."""
    is_spanning: Flags
    """Where a class spans several common bins; nowhere if the column has none."""

    @property
    def is_empty(self) -> Flags:
        """Where no record of the class has a value."""
        return np.equal(self.missing, self.records)

    @property
    def is_unsaid(self) -> Flags:
        """Where there is no value to print."""
        return self.is_empty | self.is_any

    def part(self, begin: int, end: int) -> "Range":
        """Some classes of a column of numbers or dates."""
        assert self.sets is None
        marks = ("is_below", "is_above", "is_any", "is_spanning")
        by_class = ("low", "high", *marks, "period", "missing", "records")
        return replace(self, **{name: getattr(self, name)[begin:end] for name in by_class})


def range_of(
    column: Column,
    values: Floats,
    source: pa.DataType,
    grouped: Grouped,
    wanted: Presentation,
    form: ColumnForm,
    ends: Ends = OPEN,
) -> Range:
    """The range of every class, from its genuine records, of one quasi-identifier.

    What lies beyond `ends` is capped; what the owner top-codes is capped as the owner says.
    """
    laid = values[grouped.order]

    def with_bins(bins: float | str | None) -> Range:
        return _Laid(column, laid, grouped, replace(form, bins=bins)).range(source, wanted, ends)

    if form.bins == AUTO:
        found = _fewest_spanning(map(with_bins, auto_widths(column, values, form)))
        found = found or with_bins(None)
    else:
        found = with_bins(form.bins)
    if form.representation is Representation.MEAN:
        # Where nothing may be said, all means are 0.
        least, most = np.clip(ends, *wanted.caps(column.name))
        capped = np.clip(laid, least, most) if ends[0] <= ends[1] else 0.0 * laid + 0.0
        found = replace(found, mean=means(capped, grouped, found.missing))
        if form.is_filled:
            found.mean[found.is_empty] = np.nanmean(capped)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Laid:
    """One column's values, class by class."""

    column: Column
    values: Floats
    grouped: Grouped
    form: ColumnForm

    def range(self, source: pa.DataType, wanted: Presentation, ends: Ends) -> Range:
        """Return what each class publishes of the column, without means."""
        column, grouped = self.column, self.grouped
        first = grouped.start[:-1]
        missing = self._missing(first)
        is_empty = missing == grouped.count
        low = np.where(is_empty, 0.0, np.fmin.reduceat(self.values, first))
        high = np.where(is_empty, 0.0, np.fmax.reduceat(self.values, first))
        step = wanted.round_to.get(column.name)
        period = self._periods(low, high, step)
        low, high = self._rounded(low, high, step, period)
        begin, end = (self._around(each, step, period) for each in ends)
        if self.form.bins is not None:
            # The outer bins are open to all if they are to one: no one's cell lies within another.
            begin = begin if (is_empty | (low >= begin[0])).all() else (begin[1], begin[1])
            end = end if (is_empty | (high <= end[1])).all() else (end[0], end[0])
        # Ends that pass each other leave nothing to be said, whatever the owner's caps.
        caps = wanted.caps(column.name) if ends[0] <= ends[1] else OPEN
        capped = _capped(low, high, begin, end, caps)
        sets = None if column.categories is None else Sets.of(self.values, grouped)
        is_spanning: Flags = np.broadcast_to(np.bool_(False), low.size)
        if self.form.bins is not None and sets is None:
            is_spanning = self._spans(capped) & ~is_empty
        elif self.form.bins is not None and sets is not None:
            sets, n_groups = sets.widened(_category_groups(column, self.form))
            # What is taken of a class without a value is put right below.
            low, high = np.take(sets.position, [sets.start[:-1], sets.start[1:] - 1], mode="clip")
            capped, is_spanning = capped._replace(low=low + 0.0, high=high + 0.0), n_groups > 1
        return Range(
            column=column,
            source=source,
            low=np.where(is_empty, 0.0, capped.low),
            high=np.where(is_empty, 0.0, capped.high),
            is_below=capped.is_below & ~is_empty,
            is_above=capped.is_above & ~is_empty,
            is_any=capped.is_any & ~is_empty,
            sets=sets,
            mean=np.empty(0),
            period=period,
            form=self.form,
            missing=missing,
            records=grouped.count,
            stays_whole=wanted.is_whole(column.name, self.form.bins),
            is_spanning=is_spanning,
        )

    def _spans(self, capped: "_Capped") -> Flags:
        """Which classes of numbers or dates reach over more than one bin."""
        _, last = self._snapped(capped.low, capped.low)
        is_open = capped.is_below | capped.is_above
        found: Flags = np.where(is_open, capped.low < capped.high, last < capped.high)
        return found | capped.is_any

    def _snapped(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The begin of the bin of each `low`, and the end of that of each `high`.

        A bin of whole numbers ends with the last of its own; another one where the next begins,
        to which that value belongs.
        """
        unit, width = self.column.unit, self.form.bins
        if unit is not None:
            return date_bins(unit, low, high, str(width))
        step = float(width or 0)
        first = multiple_below(low, step)
        after = multiple_below(multiple_below(high, step) + 1.5 * step, step)
        values = self.values[~np.isnan(self.values)]
        is_whole = step.is_integer() and bool((values == np.floor(values)).all())
        return first, after - 1 if is_whole else after

    def _missing(self, first: Ints) -> Ints:
        """How many values of each class are not there."""
        is_missing = np.isnan(self.values)
        if not is_missing.any():
            return np.broadcast_to(np.int64(0), first.size)
        return np.add.reduceat(is_missing.astype(np.int64), first)

    def _periods(self, low: Floats, high: Floats, step: float | str | None) -> Ints:
        """Return the period by which each class of dates is published."""
        if self.column.unit is not None and self.form.bins is not None:
            return np.full(low.size, int(period_of(str(self.form.bins))[0]))
        if self.column.unit is not None and isinstance(step, str):
            return np.full(low.size, int(BY_NAME[step]))
        form = self.form
        is_named = form.hierarchy is not None and form.representation is Representation.INTERVAL
        if self.column.unit is not None and step is None and is_named:
            return covering(self.column.unit, low, high)
        # Read-only, and of no size: there are many classes, and most columns have no periods.
        return np.broadcast_to(np.int64(Period.DAY), low.size)

    def _rounded(
        self, low: Floats, high: Floats, step: float | str | None, period: Ints
    ) -> tuple[Floats, Floats]:
        """Bounds widened to multiples of the step, to periods, or to bins."""
        column, unit = self.column, self.column.unit
        if self.form.bins is not None:
            return (low, high) if column.categories is not None else self._snapped(low, high)
        if step is not None and not isinstance(step, str):
            low, high = multiple_below(low, float(step)), -multiple_below(-high, float(step))
            high = high + 0.0
            if unit is not None and max(-low.min(), high.max()) > EXACT:
                raise TableError(f"the step for column {column.name!r} leads beyond all dates")
        for each in map(Period, np.unique(period[period != Period.DAY]).tolist()):
            assert unit is not None
            is_such = period == each
            low[is_such], high[is_such] = widened(unit, low[is_such], high[is_such], each)
        return low, high

    def _around(self, end: float, step: float | str | None, period: Ints) -> tuple[Floats, Floats]:
        """Return an end of the column rounded down and up, as each class is rounded."""
        found = np.array([end])
        if math.isinf(end) or (step is None and self.form.bins is None and not period.any()):
            return found, found
        return self._rounded(np.full(period.size, end), np.full(period.size, end), step, period)


def _fewest_spanning(found: Iterable[Range]) -> Range | None:
    """The first in which few enough records span several bins, else the one in which fewest do."""
    best, least = None, math.inf
    for each in found:
        share = float(each.records[each.is_spanning].sum() / each.records.sum())
        if share < least:
            best, least = each, share
        if share <= OFTEN:
            break
    return best


def _category_groups(column: Column, form: ColumnForm) -> Ints:
    """The bin of each category: by leading characters, by a level, or so many neighbours."""
    labels, width = column.categories or (), int(form.bins or 1)
    if form.hierarchy is None:
        return np.arange(len(labels)) // width
    is_prefix = form.hierarchy.kind == PREFIX
    names = [n[:width] if is_prefix else form.hierarchy.levels[n][width - 1] for n in labels]
    return np.unique(names, return_inverse=True)[1]


def auto_widths(column: Column, values: Floats, form: ColumnForm) -> list[float | str]:
    """Widths of bins that people use, from the finest."""
    if column.categories is not None:
        assert form.hierarchy is not None
        if form.hierarchy.kind != PREFIX:
            return [float(level + 1) for level in range(form.hierarchy.height)]
        return [float(n) for n in range(max(map(len, column.categories)) - 1, 0, -1)]
    span = float(np.nanmax(values) - np.nanmin(values))
    if column.unit is not None:
        days = span / PER_DAY[column.unit]
        return [name for name, n in DATE_WIDTHS.items() if FEWEST * n <= days <= MOST * n]
    is_whole = bool((np.floor(values) == values)[~np.isnan(values)].all())
    usual = [digit * 10.0**e for e in range(-300, 300) for digit in (1, 2, 5)]
    steps = [float(f"{step:.0e}") for step in usual if FEWEST * step <= span <= MOST * step]
    return [step for step in steps if step >= 1 or not is_whole]


class _Capped(NamedTuple):
    """Bounds of each class with their ends capped, and the marks of `Range`."""

    low: Floats
    high: Floats
    is_below: Flags
    is_above: Flags
    is_any: Flags


def _capped(
    low: Floats,
    high: Floats,
    begin: tuple[Floats, Floats],
    end: tuple[Floats, Floats],
    caps: tuple[float, float],
) -> _Capped:
    """Cap the ends, each given as it is rounded down and up; the owner's caps come last.

    A class that reaches beyond the outer of the two is capped, at the inner: at least as many
    reach that. A class up to the outer one is not, since rounding already hides who is the last.
    """
    begin_outer, begin_inner = (np.clip(each, *caps) for each in begin)
    end_inner, end_outer = (np.clip(each, *caps) for each in end)
    is_below, is_above = low < begin_outer, high > end_outer
    is_any = is_below & is_above & (begin_inner > end_inner)
    low = np.where(is_below, begin_inner, np.minimum(low, end_inner))
    high = np.where(is_above, end_inner, np.maximum(high, begin_inner))
    return _Capped(
        np.where(is_any, 0.0, low), np.where(is_any, 0.0, high), is_below, is_above, is_any
    )


def multiple_below(values: Floats, step: float) -> Floats:
    """The greatest multiple of the step that is not greater than each value."""
    # 3 * 0.1 is more than 0.3, while 3 / 10 is 0.3: divide where the step is a unit fraction.
    parts = 1 / step
    is_fraction = step < 1 and parts.is_integer()

    def multiple(n: Floats) -> Floats:
        return n / parts if is_fraction else n * step

    with np.errstate(over="ignore", invalid="ignore"):
        n = np.floor(values / step) + 1
        for _ in range(2):
            n = np.where(multiple(n) > values, n - 1, n)
        # Where steps are finer than floats, every float is a multiple.
        return np.where(np.abs(n) < EXACT, multiple(n), values) + 0.0


def means(laid: Floats, grouped: Grouped, missing: Ints) -> Floats:
    """Return the mean of each class's values that are not missing; 0 if all are."""
    first, count = grouped.start[:-1], np.maximum(grouped.count - missing, 1)
    filled = np.nan_to_num(laid, nan=0.0)
    with np.errstate(over="ignore"):
        mean = np.add.reduceat(filled, first) / count
    if not np.isfinite(mean).all():
        # The sum is too large for a float: divide first, which is a little less exact.
        mean = np.add.reduceat(filled / np.repeat(count, grouped.count), first)
    # Rounding must not carry a mean out of its class.
    low, high = np.fmin.reduceat(laid, first), np.fmax.reduceat(laid, first)
    kept: Floats = np.fmin(np.fmax(mean, low), high)
    return kept
