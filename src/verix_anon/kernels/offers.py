"""Compiled loops that check a tree against `importance-spread`: twins of `rules.ImportanceSpread`.

Records lie leaf by leaf (see `trees`), and an earlier layer has checked that each is on the right
side of every split. So the spread of a column at a node follows from its leaves. How often one
value occurs tells whether a threshold is the one that the column offers. Only columns that the rule
would prefer to the delivered one need a closer look.
"""

from typing import NamedTuple

import numba
import numpy as np

from verix_anon.arrays import Flags, Floats, Ids, Ints
from verix_anon.kernels.medians import lower_median
from verix_anon.kernels.splits import Best

# Compiled in (`make stamps`): medians d4cace7a, splits 85dd4800.


@numba.njit(cache=True, nogil=True)
def spread(right: Ids, leaf: Ids, minimum: Floats, maximum: Floats) -> Floats:
    """Return one column's least and greatest value at each node, (2, n_nodes)."""
    extent = np.empty((2, leaf.size))
    for node in range(leaf.size - 1, -1, -1):
        if leaf[node] >= 0:
            extent[0, node], extent[1, node] = minimum[leaf[node]], maximum[leaf[node]]
        else:
            extent[0, node] = min(extent[0, node + 1], extent[0, right[node]])
            extent[1, node] = max(extent[1, node + 1], extent[1, right[node]])
    return extent


@numba.njit(cache=True, nogil=True)
def offer(values: Floats, min_leaf: int, buffer: Floats) -> float:
    """Return where the rule splits these values, as `rules.threshold`, or NaN if it does not."""
    n = values.size
    median = lower_median(values, buffer)
    n_left, n_below, below = 0, 0, -np.inf
    for i in range(n):
        n_left += values[i] <= median
        n_below += values[i] < median
        below = max(below, values[i] if values[i] < median else -np.inf)
    if n_left >= min_leaf and n - n_left >= min_leaf:
        return np.float64(median)
    if n_below >= min_leaf and n - n_below >= min_leaf:
        return np.float64(below)
    return np.float64(np.nan)


@numba.njit(cache=True, nogil=True)
def _count(values: Floats, wanted: float) -> int:
    found = 0
    for i in range(values.size):
        found += values[i] == wanted
    return found


@numba.njit(cache=True, nogil=True)
def _is_offered(left: Floats, right: Floats, ends: tuple[float, float], min_leaf: int) -> bool:
    """Whether the greatest value of the left side is the threshold that the column offers.

    `ends` holds that value and the least value of the right side.
    """
    n, n_left = left.size + right.size, left.size
    if n_left < min_leaf or right.size < min_leaf:
        return False
    half = (n + 1) // 2
    if n_left >= half:
        # The value is the lower median if the median is not before its first occurrence.
        return n_left - _count(left, ends[0]) < half
    # The median is on the right side. So it must be the next value, and not be valid itself.
    upto = n_left + _count(right, ends[1])
    return upto >= half and n - upto < min_leaf


class Open(NamedTuple):
    """Nodes that the rule may split, and what was delivered for each."""

    node: Ints
    """Its number in preorder"""
    right: Ints
    """The number of its right child, -1 at a leaf"""
    lo: Ints
    middle: Ints
    """Where the records of the right side begin"""
    hi: Ints
    column: Ids
    threshold: Floats
    min_leaf: int


@numba.njit(cache=True, nogil=True)
def confirm(
    column: int, weight: int, values: Floats, extent: Floats, nodes: Open, best: Best
) -> None:
    """At the nodes that were split by this column, store what it offers as the best so far."""
    buffer = np.empty(values.size + 1)
    for i in range(nodes.node.size):
        if nodes.column[i] != column:
            continue
        node, middle = nodes.node[i], nodes.middle[i]
        left, right = values[nodes.lo[i] : middle], values[middle : nodes.hi[i]]
        ends = (extent[1, node + 1], extent[0, nodes.right[i]])
        found = ends[0]
        if nodes.threshold[i] != found or not _is_offered(left, right, ends, nodes.min_leaf):
            found = offer(values[nodes.lo[i] : nodes.hi[i]], nodes.min_leaf, buffer)
        if not np.isnan(found):
            best.column[i], best.threshold[i] = column, found
            best.score[i] = weight * (extent[1, node] - extent[0, node])


@numba.njit(cache=True, nogil=True)
def outdo(
    column: int, weight: int, values: Floats, extent: Floats, nodes: Open, best: Best
) -> None:
    """Let a column compete where its score is greater, or equal and first in order."""
    buffer = np.empty(values.size + 1)
    for i in range(nodes.node.size):
        node = nodes.node[i]
        # These are whole numbers up to 2^52, so the product is exact.
        score = weight * (extent[1, node] - extent[0, node])
        is_first = score == best.score[i] and column < best.column[i]
        if score > 0 and (score > best.score[i] or is_first):
            found = offer(values[nodes.lo[i] : nodes.hi[i]], nodes.min_leaf, buffer)
            if not np.isnan(found):
                best.column[i], best.threshold[i], best.score[i] = column, found, score


def rivals(column: int, score: Floats, best: Best) -> Flags:
    """Return the nodes at which `outdo` looks at this column, given its scores there."""
    is_first = (score == best.score) & (column < best.column)
    found: Flags = (score > 0) & ((score > best.score) | is_first)
    return found
