"""The order of published rows: random, or the table's own with a measure of its cost (spec §12).

Where rows are sorted by a column, the cells above and below a row bound its value: it is no less
than the greatest low end above it, and no more than the least high end below it. Such running
bounds undo much of a release, so rows are shuffled unless the owner asks for their order.
"""

import os
from array import array
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Flags, Floats, Ids, Ints
from verix_anon.client.release.cells import IN_WORDS, WITH_ENDS
from verix_anon.client.release.classes import Classes
from verix_anon.client.release.ranges import Range
from verix_anon.client.release.representation import Presentation
from verix_anon.translation import share

SAMPLE = 100_000
"""Rows by which a column is judged to be sorted or not."""
NEARLY = 0.8
"""From this agreement on a column counts as sorted; 1 is fully sorted, 0 is random."""


def random_order(n_rows: int) -> Ids:
    """All rows in an order from the operating system's randomness, each order as likely."""
    keys = np.frombuffer(os.urandom(8 * n_rows), np.uint64)
    return np.argsort(keys).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Sorted:
    """What the order of the rows gives away of a column that they are nearly sorted by."""

    column: str
    exact_by_cells: float
    """The share of values that the cells alone tell exactly."""
    exact: float
    """The share that cells and order tell exactly."""
    below_k: float
    """The share of records that fewer than k rows can be, to an intruder who knows their class and
    their value."""


def warning(classes: Classes, wanted: Presentation) -> str:
    """Warn an owner who keeps the order of the rows."""
    found = [s for j in range(len(classes.source.quasi)) if (s := _measured(classes, wanted, j))]
    said = "The rows stand in the order of the table (--keep-order)"
    if not found:
        return (
            f"{said}. They are not sorted by a quasi-identifier whose ranges are published. But"
            " people who know the order, such as by name or by date of entry, know whose row is"
            " whose. Without --keep-order the rows are published in random order."
        )
    worst, k = max(found, key=lambda s: (s.below_k, s.exact)), classes.conditions.k_agreed
    return (
        f"{said} and are nearly sorted by {worst.column!r}. With the order, {share(worst.exact)} of"
        f" its values can be told exactly; from the cells alone, {share(worst.exact_by_cells)}. For"
        f" {share(worst.below_k)} of the records fewer than {k} rows come into question. Without"
        " --keep-order the rows are published in random order."
    )


def _measured(classes: Classes, wanted: Presentation, j: int) -> Sorted | None:
    """Run the attack on one column; None if it is dropped or the rows are not sorted by it."""
    source, column = classes.source, classes.source.quasi[j]
    form = source.forms[column.name]
    is_range = column.categories is None or (form.is_ordered and form.hierarchy is None)
    is_shown = form.representation in (*IN_WORDS, *WITH_ENDS) and column.name not in wanted.drop
    if not (is_range and is_shown):
        return None
    values = source.of_quasi(j)
    sign = _direction(values)
    if sign == 0:
        return None
    found = classes.range_of(j, values, classes.grouped, wanted)
    low, high = (ends[classes.of_row] for ends in _ends(found))
    is_known = (found.missing == 0)[classes.of_row]
    exact_by_cells = float((is_known & (low == high)).mean())
    if sign < 0:
        values, low, high = -values, -high, -low
    low, high = _tightened(values, low, high)
    n_left = _candidates(classes.of_row, values, low, high)
    return Sorted(
        column.name,
        exact_by_cells,
        exact=float((is_known & (low == high)).mean()),
        below_k=float((n_left < classes.conditions.k_agreed).mean()),
    )


def _direction(values: Floats) -> int:
    """1 if the rows are nearly sorted by these values, -1 if they are from top to bottom, else 0.

    Compared are the places of values with those that they would have if they were sorted.
    """
    step = -(-values.size // SAMPLE)
    some = values[::step]
    rank = np.unique(some[~np.isnan(some)], return_inverse=True)[1].astype(np.float64)
    place = np.arange(rank.size) - (rank.size - 1) / 2
    most, agreement = place @ np.sort(rank), place @ rank
    # A column of one value is not sorted: it has no order to give away.
    return int(np.sign(agreement)) if most > 0 and abs(agreement) >= NEARLY * most else 0


def _ends(found: Range) -> tuple[Floats, Floats]:
    """Return the least and the greatest value that each class's cell allows."""
    low = np.where(found.is_below | found.is_empty, -np.inf, found.low)
    return low, np.where(found.is_above | found.is_empty, np.inf, found.high)


def _tightened(values: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends of each row's cell, drawn in by the cells of the rows above and below it.

    Rows that are out of order stay as they are, and say nothing about others.
    """
    rows = np.flatnonzero(_in_order(values))
    low, high = low.copy(), high.copy()
    low[rows] = np.maximum.accumulate(low[rows])
    high[rows] = np.minimum.accumulate(high[rows][::-1])[::-1]
    return low, high


def _in_order(values: Floats) -> Flags:
    """A longest choice of rows whose values never fall."""
    # The least value with which a choice of each length can end, and its row; before each row, the
    # row that its choice had last.
    least, last = array("d"), array("q")
    before = np.full(values.size, -1)
    for row, value in enumerate(values.data):
        if value != value:
            continue
        at = len(least) if not least or value >= least[-1] else bisect_right(least, value)
        if at == len(least):
            least.append(value)
            last.append(row)
        else:
            least[at], last[at] = value, row
        before[row] = last[at - 1] if at else -1
    chosen = np.zeros(values.size, np.bool_)
    row = last[-1] if last else -1
    while row >= 0:
        chosen[row] = True
        row = before[row]
    return chosen


def _candidates(of_row: Ids, values: Floats, low: Floats, high: Floats) -> Ints:
    """How many rows of each record's class can have its value; all rows if it has none."""
    n_rows = values.size
    codes = np.unique(np.concatenate([low, high, values]), return_inverse=True)[1]
    keys = codes + np.tile(of_row.astype(np.int64), 3) * (int(codes.max()) + 1)
    low_keys, high_keys, own = np.sort(keys[:n_rows]), np.sort(keys[n_rows:-n_rows]), keys[-n_rows:]
    n_left = np.searchsorted(low_keys, own, "right") - np.searchsorted(high_keys, own, "left")
    return np.where(np.isnan(values), n_rows, n_left)
