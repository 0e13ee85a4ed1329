"""The ends of a column: where they are capped, and who alone owns a printed bound (spec §12).

The greatest value of a column often belongs to one person, and a class that prints it shows where
that person is. So by default nothing is printed beyond the k-th person from either end. A bound
between the ends can still be the value of one person only: how many records that touches is
measured.
"""

import math

import numpy as np

from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.client.release.cells import WITH_ENDS
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.ranges import Ends, Range

NOTHING: Ends = (math.inf, -math.inf)
"""Every value lies beyond both ends, so nothing is said about any class."""
BLOCK = 1 << 20
"""Records that are looked up together, since that takes as much memory again."""


def capped_ends(values: Floats, people: Ints | None, k: int) -> Ends:
    """Return the k-th least and the k-th greatest value, counted by persons.

    At least k persons have a value that is at most the first, and at least k have one that is at
    least the second. Where this cannot be, because fewer than k persons have a value or the first
    would be greater than the second, it is `NOTHING`.

    Args:
        values: Of every genuine record; NaN where it has none.
        people: The person of each record; None if each record is a person.
        k: How many persons must reach an end.
    """
    is_there = ~np.isnan(values)
    low = high = values[is_there]
    if people is not None:
        low, high = _extremes(low, people[is_there])
    if low.size < k:
        return NOTHING
    least = float(np.partition(low, k - 1)[k - 1])
    most = float(np.partition(high, high.size - k)[high.size - k])
    return (least, most) if least <= most else NOTHING


def _extremes(values: Floats, people: Ints) -> tuple[Floats, Floats]:
    """The least and the greatest value of each person who has one."""
    n_people = int(people.max(initial=-1)) + 1
    low, high = np.full(n_people, math.inf), np.full(n_people, -math.inf)
    np.minimum.at(low, people, values)
    np.maximum.at(high, people, values)
    has_value = low <= high
    return low[has_value], high[has_value]


def bound_owners(
    values: Floats, people: Ints | None, grouped: Grouped, found: Range
) -> tuple[Ints, Ints]:
    """Return the rows of the records that alone own a bound of their class in a column.

    A record owns a bound if it has this value and nobody else in the table has it.

    Args:
        values: Of every genuine record; NaN where it has none.
        people: The person of each record; None if each record is a person.
        grouped: The records of each class.
        found: What is published of the column.

    Returns:
        The owners of the exact bounds, and those of the bounds that are printed as they are.
    """
    laid, first = values[grouped.order], grouped.start[:-1]
    class_of = np.repeat(np.arange(first.size), grouped.count)
    is_bound = laid == np.fmin.reduceat(laid, first)[class_of]
    is_bound |= laid == np.fmax.reduceat(laid, first)[class_of]
    at = np.flatnonzero(is_bound)
    at = at[_is_sole(laid[at], values, people)]
    value, of = laid[at], class_of[at]
    is_printed = (value == found.low[of]) & ~found.is_below[of]
    is_printed |= (value == found.high[of]) & ~found.is_above[of]
    if found.form.representation not in WITH_ENDS:
        # A mean or a midpoint is a bound only where the class has one value.
        is_printed &= found.low[of] == found.high[of]
    return grouped.order[at], grouped.order[at[is_printed]]


def _is_sole(asked: Floats, values: Floats, people: Ints | None) -> Flags:
    """Which of the values asked for belong to exactly one person in the table."""
    distinct, place = np.unique(asked, return_inverse=True)
    if not distinct.size:
        return np.zeros(0, np.bool_)
    # The least and the greatest number of a person who has each value.
    low, high = np.full(distinct.size, np.iinfo(np.int64).max), np.full(distinct.size, -1)
    for begin in range(0, values.size, BLOCK):
        block = values[begin : begin + BLOCK]
        at = np.minimum(np.searchsorted(distinct, block), distinct.size - 1)
        is_asked = distinct[at] == block
        rows = begin + np.flatnonzero(is_asked)
        owners = rows if people is None else people[rows]
        np.minimum.at(low, at[is_asked], owners)
        np.maximum.at(high, at[is_asked], owners)
    is_sole: Flags = low == high
    return is_sole[place]
