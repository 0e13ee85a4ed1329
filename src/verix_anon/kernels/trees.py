"""Compiled loops that lay records out leaf by leaf, so that those of a node are consecutive.

Leaves are numbered from left to right, so a node's leaves are consecutive too.
"""

import numba
import numpy as np

from verix_anon.arrays import Floats, Ids, Ints, Numbers, Numeric


@numba.njit(cache=True, nogil=True)
def group_rows(leaf: Ids, n_leaves: int) -> tuple[Numbers, Ints]:
    """Return positions grouped by leaf, ascending within each, and where each leaf starts.

    Leaf numbers must lie in 0 .. n_leaves - 1.
    """
    start = np.zeros(n_leaves + 1, np.int64)
    for number in leaf:
        start[number + 1] += 1
    for number in range(n_leaves):
        start[number + 1] += start[number]
    cursor = start[:-1].copy()
    grouped = np.empty(leaf.size, np.uint32)
    for position in range(leaf.size):
        number = leaf[position]
        grouped[cursor[number]] = position
        cursor[number] += 1
    return grouped, start


@numba.njit(cache=True, nogil=True)
def gather(values: Numeric, rows: Numbers, out: Numeric) -> None:
    """Copy one column's values in the order of `rows`; numpy takes twice as long."""
    for i in range(rows.size):
        out[i] = values[rows[i]]


@numba.njit(cache=True, nogil=True)
def gather_some(values: Numeric, rows: Numbers, spans: Ints, out: Numeric) -> None:
    """Do the same for the positions in some spans, (n, 2), and leave the others alone."""
    for span in range(len(spans)):
        for i in range(spans[span, 0], spans[span, 1]):
            out[i] = values[rows[i]]


@numba.njit(cache=True, nogil=True)
def leaf_bounds(grouped: Floats, start: Ints) -> tuple[Floats, Floats]:
    """Return `rules.bounds` of each leaf for one column that is laid out leaf by leaf."""
    minimum, maximum = np.empty(start.size - 1), np.empty(start.size - 1)
    for leaf in range(start.size - 1):
        low, high = np.inf, -np.inf
        for i in range(start[leaf], start[leaf + 1]):
            low, high = min(low, grouped[i]), max(high, grouped[i])
        minimum[leaf], maximum[leaf] = low, high
    return minimum, maximum
