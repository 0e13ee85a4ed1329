"""What each class holds of a quasi-identifier: its range, its categories, its mean (spec §12).

Values that are not there are NaN, and count for nothing but that they are missing.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.representation import (
    BY_NAME,
    ColumnForm,
    Period,
    Presentation,
    Representation,
    covering,
    widened,
)
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column

EXACT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The categories that occur in each class: `position[start[c]:start[c + 1]]`, in order."""

    position: Ints
    start: Ints
    records: Ints
    """How many records of the class have each."""

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
    sets: Sets | None
    """Of a categorical column."""
    mean: Floats
    """Empty unless means are published."""
    period: Ints
    """Of dates, the period by which each class is published."""
    form: ColumnForm
    missing: Ints
    """How many records of the class have no value."""
    records: Ints
    """How many records the class has."""
    stays_whole: bool
    """Whether bounds of whole numbers are whole."""

    @property
    def is_empty(self) -> Flags:
        """Where no record of the class has a value."""
        return np.equal(self.missing, self.records)

    def part(self, begin: int, end: int) -> "Range":
        """Some classes of a column of numbers or dates."""
        assert self.sets is None
        by_class = ("low", "high", "is_below", "is_above", "period", "missing", "records")
        return replace(self, **{name: getattr(self, name)[begin:end] for name in by_class})


def range_of(
    column: Column,
    values: Floats,
    source: pa.DataType,
    grouped: Grouped,
    wanted: Presentation,
    form: ColumnForm,
) -> Range:
    """The range of every class, from its genuine records, of one quasi-identifier."""
    laid = values[grouped.order]
    found = _Laid(column, laid, grouped, form).range(source, wanted)
    if form.representation is Representation.MEAN:
        capped = np.clip(laid, *wanted.caps(column.name))
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

    def range(self, source: pa.DataType, wanted: Presentation) -> Range:
        """What each class publishes of it, but for a mean."""
        column, grouped = self.column, self.grouped
        first = grouped.start[:-1]
        missing = self._missing(first)
        is_empty = missing == grouped.count
        low = np.where(is_empty, 0.0, np.fmin.reduceat(self.values, first))
        high = np.where(is_empty, 0.0, np.fmax.reduceat(self.values, first))
        low, high, period = self._rounded(low, high, wanted.round_to.get(column.name))
        least, most = wanted.caps(column.name)
        return Range(
            column=column,
            source=source,
            low=np.clip(low, least, most),
            high=np.clip(high, least, most),
            is_below=(low < least) & ~is_empty,
            is_above=(high > most) & ~is_empty,
            sets=None if column.categories is None else Sets.of(self.values, grouped),
            mean=np.empty(0),
            period=period,
            form=self.form,
            missing=missing,
            records=grouped.count,
            stays_whole=wanted.is_whole(column.name),
        )

    def _missing(self, first: Ints) -> Ints:
        """How many values of each class are not there."""
        is_missing = np.isnan(self.values)
        if not is_missing.any():
            return np.broadcast_to(np.int64(0), first.size)
        return np.add.reduceat(is_missing.astype(np.int64), first)

    def _rounded(
        self, low: Floats, high: Floats, step: float | str | None
    ) -> tuple[Floats, Floats, Ints]:
        """Bounds widened to multiples of the step, or to periods, and which."""
        column, unit = self.column, self.column.unit
        # Read-only, and of no size: there are many classes, and most columns have no periods.
        period: Ints = np.broadcast_to(np.int64(Period.DAY), low.size)
        if unit is not None and isinstance(step, str):
            period = np.full(low.size, int(BY_NAME[step]))
        elif step is not None:
            low, high = _multiple_below(low, float(step)), -_multiple_below(-high, float(step))
            high = high + 0.0
            if unit is not None and max(-low.min(), high.max()) > EXACT:
                raise TableError(f"the step for column {column.name!r} leads beyond all dates")
        elif unit is not None and self._is_named:
            period = covering(unit, low, high)
        for each in map(Period, np.unique(period[period != Period.DAY]).tolist()):
            assert unit is not None
            is_such = period == each
            low[is_such], high[is_such] = widened(unit, low[is_such], high[is_such], each)
        return low, high, period

    @property
    def _is_named(self) -> bool:
        """Whether dates are published by the hierarchy of periods."""
        return (
            self.form.hierarchy is not None and self.form.representation is Representation.INTERVAL
        )


def _multiple_below(values: Floats, step: float) -> Floats:
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
    """Of the values that are there; 0 where there is none."""
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
