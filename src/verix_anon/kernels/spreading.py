"""Compiled loops that grow a tree by `importance-spread`: the twins of `rules.ImportanceSpread`.

All positions of one record lie together. So one pass finds the spread of every column, and a split
moves each record once. A node is a range of records.
"""

import numba
import numpy as np

from verix_anon.arrays import Floats, Ids, Ints, Numbers
from verix_anon.kernels.growing import Grown
from verix_anon.kernels.medians import nth

# Compiled in (`make stamps`): growing 708ea02d, medians d4cace7a.


@numba.njit(cache=True, nogil=True)
def _extent(records: Ids, low: Ids, high: Ids) -> None:
    """Fill `low` and `high` with the least and the greatest position of each column."""
    for j in range(low.size):
        low[j] = high[j] = records[0, j]
    for i in range(1, len(records)):
        for j in range(low.size):
            low[j] = min(low[j], records[i, j])
            high[j] = max(high[j], records[i, j])


@numba.njit(cache=True, nogil=True)
def _threshold(records: Ids, column: int, min_leaf: int, buffer: Floats) -> int:
    """Return where `rules.threshold` splits a column, or -1; the buffer is (2, n + 1)."""
    n = len(records)
    values = buffer[0, :n]
    for i in range(n):
        values[i] = records[i, column]
    median = nth(values, (n + 1) // 2 - 1, buffer[1])
    n_left, n_below, below = 0, 0, -1.0
    for i in range(n):
        n_left += int(values[i] <= median)
        n_below += int(values[i] < median)
        below = max(below, values[i] if values[i] < median else -1.0)
    # Half of the records are left of a lower median, or right of the value below it.
    if n - n_left >= min_leaf:
        return int(median)
    return int(below) if n_below >= min_leaf else -1


@numba.njit(cache=True, nogil=True)
def _best(
    records: Ids, extent: tuple[Ids, Ids], weights: Ints, min_leaf: int, buffer: Floats
) -> tuple[int, int]:
    """`rules.best_split`: the column with the greatest score that offers a threshold, and both."""
    low, high = extent
    n_quasi = weights.size
    score = np.empty(n_quasi, np.int64)
    for j in range(n_quasi):
        score[j] = weights[j] * (np.int64(high[j]) - np.int64(low[j]))
    while True:
        # Not a plain 0: numba would compile `_threshold` a second time for the literal.
        best: int = np.int64(0)  # type: ignore[assignment]
        for j in range(1, n_quasi):
            # Strictly greater, so the first in contract order wins among equals.
            if score[j] > score[best]:
                best = j
        # A column with one position offers nothing.
        if score[best] <= 0:
            return -1, -1
        found = _threshold(records, best, min_leaf, buffer)
        if found >= 0:
            return best, found
        score[best] = 0


@numba.njit(cache=True, nogil=True)
def _divide(records: Ids, rows: Numbers, column: int, threshold: int) -> int:
    """Move the left side's records before the right side's; return where the right begins."""
    i, j = 0, len(records) - 1
    while True:
        while i <= j and records[i, column] <= threshold:
            i += 1
        while i <= j and records[j, column] > threshold:
            j -= 1
        if i > j:
            return i
        for k in range(records.shape[1]):
            records[i, k], records[j, k] = records[j, k], records[i, k]
        rows[i], rows[j] = rows[j], rows[i]
        i += 1
        j -= 1


@numba.njit(cache=True, nogil=True)
def split(records: Ids, rows: Numbers, weights: Ints, min_leaf: int) -> tuple[int, int, int]:
    """Split a node: return its column, threshold, and how many go left; column -1 for a leaf."""
    n, n_quasi = records.shape
    extent = (np.empty(n_quasi, np.int32), np.empty(n_quasi, np.int32))
    _extent(records, extent[0], extent[1])
    column, threshold = _best(records, extent, weights, min_leaf, np.empty((2, n + 1)))
    if column < 0:
        return -1, -1, 0
    return column, threshold, _divide(records, rows, column, threshold)


@numba.njit(cache=True, nogil=True)
def _put(waiting: Ints, at: int, span: tuple[int, int], depth: int, parent: int) -> None:
    # Do not assign the whole row: compiling that takes seconds.
    waiting[at, 0], waiting[at, 1] = span
    waiting[at, 2], waiting[at, 3] = depth, parent


@numba.njit(cache=True, nogil=True)
def grow(
    records: Ids, rows: Numbers, weights: Ints, min_leaf: int, depths: tuple[int, int]
) -> Grown:
    """`rules.grow` by `rules.ImportanceSpread`; reorders records and rows leaf by leaf.

    `depths` says how deep the first node lies, and how deep a node may lie.
    """
    n, n_quasi = records.shape
    most = 2 * max(1, n // min_leaf) - 1
    column, leaf = np.full(most, -1, np.int32), np.full(most, -1, np.int32)
    left, right = np.full(most, -1, np.int32), np.full(most, -1, np.int32)
    threshold = np.zeros(most)
    size = np.empty((most + 1) // 2, np.int64)
    minimum, maximum = np.empty((size.size, n_quasi)), np.empty((size.size, n_quasi))
    low, high = np.empty(n_quasi, np.int32), np.empty(n_quasi, np.int32)
    buffer = np.empty((2, n + 1))
    # A waiting node has its range, its depth, and the node whose right child it is, or -1.
    waiting = np.empty((depths[1] - depths[0] + 2, 4), np.int64)
    _put(waiting, 0, (0, n), depths[0], -1)
    n_waiting, n_nodes, n_leaves = 1, 0, 0
    while n_waiting:
        n_waiting -= 1
        lo, hi = waiting[n_waiting, 0], waiting[n_waiting, 1]
        depth, parent = waiting[n_waiting, 2], waiting[n_waiting, 3]
        node, n_nodes = n_nodes, n_nodes + 1
        if parent >= 0:
            right[parent] = node
        part = records[lo:hi]
        _extent(part, low, high)
        best, at = -1, -1
        if hi - lo >= 2 * min_leaf and depth < depths[1]:
            best, at = _best(part, (low, high), weights, min_leaf, buffer)
        if best < 0:
            leaf[node], size[n_leaves] = n_leaves, hi - lo
            for j in range(n_quasi):
                minimum[n_leaves, j], maximum[n_leaves, j] = low[j], high[j]
            n_leaves += 1
            continue
        middle = lo + _divide(part, rows[lo:hi], best, at)
        column[node], threshold[node], left[node] = best, at, node + 1
        _put(waiting, n_waiting, (middle, hi), depth + 1, node)
        _put(waiting, n_waiting + 1, (lo, middle), depth + 1, -1)
        n_waiting += 2
    return Grown(
        column[:n_nodes],
        threshold[:n_nodes],
        left[:n_nodes],
        right[:n_nodes],
        leaf[:n_nodes],
        size[:n_leaves],
        minimum[:n_leaves],
        maximum[:n_leaves],
    )
