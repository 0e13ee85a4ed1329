"""Compiled loops over records laid out leaf by leaf, so that those of a node are consecutive.

Leaves are numbered from left to right, and a node's leaves are consecutive.
"""

import numba
import numpy as np

from verix_anon.arrays import Floats, Ids, Ints, Numbers
from verix_anon.kernels.bits import prefetch

# Compiled in (`make stamps`): bits ef802541.
__all__ = [
    "first_misrouted",
    "gather",
    "group_rows",
    "leaf_bounds",
    "node_spans",
]

AHEAD = 64
"""Where reads go all over the memory, each is asked for so many before it is needed."""


@numba.njit(cache=True, nogil=True)
def group_rows(leaf: Ids, n_leaves: int) -> tuple[Ints, Ints]:
    """Positions grouped by leaf, in ascending order within each, and where each leaf starts.

    Leaf numbers must lie in 0 .. n_leaves - 1.
    """
    start = np.zeros(n_leaves + 1, np.int64)
    for number in leaf:
        start[number + 1] += 1
    for number in range(n_leaves):
        start[number + 1] += start[number]
    cursor = start[:-1].copy()
    grouped = np.empty(leaf.size, np.int64)
    for position in range(leaf.size):
        number = leaf[position]
        grouped[cursor[number]] = position
        cursor[number] += 1
    return grouped, start


@numba.njit(cache=True, nogil=True)
def gather(
    values: Floats,
    rows: Numbers,
    out: Floats,
) -> None:
    """One column's values in the order of `rows`."""
    n = rows.size
    for i in range(n):
        prefetch(values, int(rows[min(i + AHEAD, n - 1)]))
        out[i] = values[rows[i]]


@numba.njit(cache=True, nogil=True)
def leaf_bounds(
    grouped: Floats,
    start: Ints,
    minimum: Floats,
    maximum: Floats,
) -> None:
    """The least and greatest value of each leaf in one column laid out leaf by leaf."""
    for leaf in range(start.size - 1):
        low, high = np.inf, -np.inf
        for i in range(start[leaf], start[leaf + 1]):
            low, high = min(low, grouped[i]), max(high, grouped[i])
        minimum[leaf], maximum[leaf] = low, high


@numba.njit(cache=True, nogil=True)
def node_spans(right: Ids, leaf: Ids, start: Ints) -> Ints:
    """Where each node's records begin and end, (n_nodes, 2), for nodes in preorder."""
    span = np.empty((leaf.size, 2), np.int64)
    for node in range(leaf.size - 1, -1, -1):
        if leaf[node] >= 0:
            span[node, 0] = start[leaf[node]]
            span[node, 1] = start[leaf[node] + 1]
        else:
            span[node, 0] = span[node + 1, 0]
            span[node, 1] = span[right[node], 1]
    return span


@numba.njit(cache=True, nogil=True)
def first_misrouted(
    splits: tuple[Ids, Floats, Ids],
    leaf_span: Ints,
    column: int,
    minimum: Floats,
    maximum: Floats,
) -> tuple[int, int]:
    """The first (node, leaf) where a record of the leaf would not get past the node, or (-1, -1).

    Of the nodes that split this column, whose bounds are those observed in each leaf; `splits`
    holds the column, threshold and right child of every node in preorder. A record
    reaches its leaf if and only if it takes the right side at each split above; and all
    records of a leaf do if the leaf's observed bounds do. So no record is routed at all.
    """
    columns, thresholds, rights = splits
    for node in range(columns.size):
        if columns[node] != column:
            continue
        left, right = node + 1, rights[node]
        for leaf in range(leaf_span[left, 0], leaf_span[left, 1]):
            if not maximum[leaf] <= thresholds[node]:
                return node, leaf
        for leaf in range(leaf_span[right, 0], leaf_span[right, 1]):
            if not minimum[leaf] > thresholds[node]:
                return node, leaf
    return -1, -1
