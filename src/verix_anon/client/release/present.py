"""From classes to published columns (spec §12).

What is published of a quasi-identifier are intervals, bounds, midpoints or means of a class's
own records; since each bound is a real person's value there are two remedies, in this order:

- Rounding widens a class outwards to multiples of a step.
- Top-coding puts a cap in place of what lies beyond it. As an interval `50..>=80` reads
  from 50 to 80 or more, `<=20..70` from 20 or less to 70, and `>=80` 80 or more; bounds and
  midpoints take the cap for the value; a mean is of the values so capped.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.client.given import check_fields
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.privacy import distinct
from verix_anon.client.table.encode import decode
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column
from verix_anon.protocol.generalize import NUMPY_UNITS

__all__ = [
    "Presentation",
    "Range",
    "Representation",
    "ranges",
    "represent",
]

Caps = tuple[float | None, float | None]

EXACT = 2**53
USUAL = (1e-4, 1e10)
"""Between these neither Arrow nor Python writes an exponent."""
MOST_TEXT = 1 << 30
"""Bytes that one column of sets of categories may take."""


class Representation(StrEnum):
    """How a quasi-identifier is published."""

    INTERVAL = "interval"
    BOUNDS = "bounds"
    MIDPOINT = "midpoint"
    MEAN = "mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """How quasi-identifiers are published; dates count in the column's unit, from 1970."""

    representation: Representation | str = Representation.INTERVAL
    round_to: Mapping[str, float] = field(default_factory=dict)
    """Bounds are rounded outwards to multiples of this."""
    top_code: Mapping[str, Caps] = field(default_factory=dict)
    """The lowest and the highest value that is published."""

    def __post_init__(self) -> None:
        check_fields(self)

    def check(self, quasi: Sequence[Column], ordered: Collection[str]) -> None:
        """Raise TableError unless it fits the columns; `ordered` have an order of the owner's."""
        self._check_bounds(quasi, ordered)
        for name, step in self.round_to.items():
            column = _ordered(quasi, name, "rounded")
            if not (math.isfinite(step) and step > 0):
                raise TableError(f"the step for column {name!r} must be greater than 0, not {step}")
            _check_whole(column, step)
            if self.representation == Representation.MEAN:
                raise TableError(f"column {name!r}: bounds are rounded, and a mean is none")
        for name, (low, high) in self.top_code.items():
            column = _ordered(quasi, name, "top-coded")
            given = [cap for cap in (low, high) if cap is not None]
            if not given or not all(math.isfinite(cap) for cap in given):
                raise TableError(f"column {name!r} needs a lowest or a highest value to cap at")
            if low is not None and high is not None and not low < high:
                raise TableError(f"column {name!r}: the lower cap must be below the upper one")
            for cap in given:
                _check_whole(column, cap)

    def _check_bounds(self, quasi: Sequence[Column], ordered: Collection[str]) -> None:
        if self.representation != Representation.BOUNDS:
            return
        for column in quasi:
            if column.categories is not None and column.name not in ordered:
                raise TableError(
                    f"column {column.name!r} has categories without an order of yours, so that it"
                    " has no bounds; publish intervals, or prepare with an order for it"
                )

    def caps(self, name: str) -> tuple[float, float]:
        """The lowest and the highest value that is published of a column."""
        low, high = self.top_code.get(name, (None, None))
        return -math.inf if low is None else low, math.inf if high is None else high

    def is_whole(self, name: str) -> bool:
        """Whether whole bounds stay whole."""
        chosen = (self.round_to.get(name), *self.top_code.get(name, ()))
        return all(value is None or float(value).is_integer() for value in chosen)


def _ordered(quasi: Sequence[Column], name: str, what: str) -> Column:
    column = next((c for c in quasi if c.name == name), None)
    if column is None or column.categories is not None:
        kind = "not a quasi-identifier" if column is None else "categorical"
        raise TableError(f"column {name!r} is {kind}; only numbers and dates can be {what}")
    return column


def _check_whole(column: Column, value: float) -> None:
    if column.unit is not None and not float(value).is_integer():
        raise TableError(f"column {column.name!r} is a date: use whole numbers of {column.unit}")


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The categories that occur in each class: `position[start[c]:start[c + 1]]`, in order."""

    position: Ints
    start: Ints

    @classmethod
    def of(cls, laid: Ints, grouped: Grouped) -> "Sets":
        """From every record's position, laid out class by class."""
        width, n_classes = int(laid.max()) + 1, grouped.count.size
        keys = distinct(np.repeat(np.arange(n_classes), grouped.count) * width + laid)
        start = np.searchsorted(keys, np.arange(n_classes + 1) * width)
        return cls(keys % width, start)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Range:
    """One quasi-identifier: what each class publishes of it."""

    column: Column
    source: pa.DataType
    """The type of the owner's column."""
    low: Floats
    high: Floats
    is_below: Flags
    """Where values lie below the lower cap, which is then `low`."""
    is_above: Flags
    sets: Sets | None
    """Of a categorical column."""
    mean: Floats
    """Empty unless means are published."""
    stays_whole: bool
    """Whether bounds of whole numbers are whole."""


def ranges(
    quasi: Sequence[Column],
    values: Floats,
    sources: Mapping[str, pa.DataType],
    grouped: Grouped,
    chosen: Presentation,
) -> list[Range]:
    """The range of every class, from its genuine records, for each quasi-identifier."""
    found = []
    for column, of_row in zip(quasi, values, strict=True):
        sorted_values = of_row[grouped.order]
        low = np.minimum.reduceat(sorted_values, grouped.start[:-1])
        high = np.maximum.reduceat(sorted_values, grouped.start[:-1])
        if column.name in chosen.round_to:
            step = float(chosen.round_to[column.name])
            low, high = _multiple_below(low, step), -_multiple_below(-high, step) + 0.0
            if column.unit is not None and max(-low.min(), high.max()) > EXACT:
                raise TableError(f"the step for column {column.name!r} leads beyond all dates")
        least, most = chosen.caps(column.name)
        mean = np.empty(0)
        if chosen.representation == Representation.MEAN:
            mean = _means(np.clip(sorted_values, least, most), grouped)
        found.append(
            Range(
                column=column,
                source=sources[column.name],
                low=np.clip(low, least, most),
                high=np.clip(high, least, most),
                is_below=low < least,
                is_above=high > most,
                sets=_sets(column, sorted_values, grouped),
                mean=mean,
                stays_whole=chosen.is_whole(column.name),
            )
        )
    return found


def _sets(column: Column, laid: Floats, grouped: Grouped) -> Sets | None:
    return None if column.categories is None else Sets.of(laid.astype(np.int64), grouped)


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


def _means(sorted_values: Floats, grouped: Grouped) -> Floats:
    first = grouped.start[:-1]
    with np.errstate(over="ignore"):
        mean = np.add.reduceat(sorted_values, first) / grouped.count
    if not np.isfinite(mean).all():
        # The sum is too large for a float: divide first, which is a little less exact.
        mean = np.add.reduceat(sorted_values / np.repeat(grouped.count, grouped.count), first)
    # Rounding must not carry a mean out of its class.
    low, high = np.minimum.reduceat(sorted_values, first), np.maximum.reduceat(sorted_values, first)
    return np.clip(mean, low, high)


def represent(found: Range, representation: Representation, records: Ints) -> dict[str, pa.Array]:
    """The published columns, by name, with one value per class.

    Middles and means of dates are rounded down to the column's unit; those of a categorical
    are the category at the position rounded down. `records` is how many each class holds.
    """
    name = found.column.name
    match representation:
        case Representation.INTERVAL:
            return {name: _intervals(found, records)}
        case Representation.BOUNDS:
            return {
                f"{name}_min": _bound(found, found.low),
                f"{name}_max": _bound(found, found.high),
            }
        case Representation.MIDPOINT:
            # Halved before adding, so that nothing overflows.
            return {name: _user_values(found, found.low / 2 + found.high / 2)}
        case Representation.MEAN:
            return {name: _user_values(found, found.mean)}


def _bound(found: Range, values: Floats) -> pa.Array:
    is_number = found.column.categories is None and found.column.unit is None
    is_whole = is_number and pa.types.is_integer(found.source) and found.stays_whole
    if is_whole and np.abs(values).max() < 2**63:
        return pa.array(values.astype(np.int64))
    return _user_values(found, values)


def _user_values(found: Range, values: Floats) -> pa.Array:
    """Numbers, dates or labels, in the type of the owner's column where that is possible."""
    column = found.column
    if column.categories is None and column.unit is None:
        return pa.array(values)
    array = decode(column, np.floor(values))
    plain = found.source.value_type if pa.types.is_dictionary(found.source) else found.source
    try:
        return array.cast(plain)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return array


def _intervals(found: Range, records: Ints) -> pa.Array:
    """Text `lo..hi` with the marks of top-coding, or `{a, b}` for categories."""
    if found.sets is not None:
        return _category_sets(found.column, found.sets, records)
    low, high = _texts(found.column, found.low), _texts(found.column, found.high)
    low = pc.if_else(pa.array(found.is_below), _joined("<=", low, ""), low)
    high = pc.if_else(pa.array(found.is_above), _joined(">=", high, ""), high)
    both = _joined(low, high, "..")
    is_one = found.low == found.high
    both = pc.if_else(pa.array(is_one & found.is_below), low, both)
    return pc.if_else(pa.array(is_one & found.is_above), high, both)


def _joined(first: pa.Array | str, second: pa.Array | str, between: str) -> pa.Array:
    parts = (
        pa.scalar(part, pa.large_string()) if isinstance(part, str) else part
        for part in (first, second, between)
    )
    return pc.binary_join_element_wise(*parts)


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


def _category_sets(column: Column, sets: Sets, records: Ints) -> pa.Array:
    """One text per class, if the rows can bear it."""
    labels = pa.array(column.categories, pa.large_string())
    n_bytes = pc.binary_length(labels).to_numpy()[sets.position] + 2
    total = int(records @ np.add.reduceat(n_bytes, sets.start[:-1]))
    if total > MOST_TEXT:
        raise TableError(
            f"column {column.name!r} would take {total / 1e9:.0f} GB as sets of categories;"
            " group its categories first"
        )
    lists = pa.LargeListArray.from_arrays(
        pa.array(sets.start), labels.take(pa.array(sets.position))
    )
    return _joined(
        "{", _joined(pc.binary_join(lists, pa.scalar(", ", pa.large_string())), "}", ""), ""
    )
