"""What each class holds of a quasi-identifier: its range, its categories, its mean (spec §12).

Values that are not there are NaN, and count for nothing but that they are missing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.present import Presentation
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column

__all__ = ["EXACT", "Range", "Sets", "ranges"]

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


def ranges(
    quasi: Sequence[Column],
    values: Floats,
    sources: Mapping[str, pa.DataType],
    grouped: Grouped,
    wanted: Presentation,
    means: Collection[str],
) -> list[Range]:
    """The range of every class, from its genuine records, for each quasi-identifier.

    `means` names the columns of which means are published.
    """
    found = []
    for column, of_row in zip(quasi, values, strict=True):
        laid = of_row[grouped.order]
        each = _range(column, laid, sources[column.name], grouped, wanted)
        if column.name in means:
            capped = np.clip(laid, *wanted.caps(column.name))
            each = replace(each, mean=_means(capped, grouped, each.missing))
        found.append(each)
    return found


def _range(
    column: Column, laid: Floats, source: pa.DataType, grouped: Grouped, wanted: Presentation
) -> Range:
    first = grouped.start[:-1]
    is_missing = np.isnan(laid)
    missing = np.add.reduceat(is_missing.astype(np.int64), first)
    is_empty = missing == grouped.count
    low = np.where(is_empty, 0.0, np.fmin.reduceat(laid, first))
    high = np.where(is_empty, 0.0, np.fmax.reduceat(laid, first))
    if column.name in wanted.round_to:
        step = float(wanted.round_to[column.name])
        low, high = _multiple_below(low, step), -_multiple_below(-high, step) + 0.0
        if column.unit is not None and max(-low.min(), high.max()) > EXACT:
            raise TableError(f"the step for column {column.name!r} leads beyond all dates")
    least, most = wanted.caps(column.name)
    return Range(
        column=column,
        source=source,
        low=np.clip(low, least, most),
        high=np.clip(high, least, most),
        is_below=(low < least) & ~is_empty,
        is_above=(high > most) & ~is_empty,
        sets=None if column.categories is None else Sets.of(laid, grouped),
        mean=np.empty(0),
        missing=missing,
        records=grouped.count,
        stays_whole=wanted.is_whole(column.name),
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


def _means(laid: Floats, grouped: Grouped, missing: Ints) -> Floats:
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
