"""Compiled loops that grow a tree by `variance-reduction`: sort, score, partition and grow.

A column's order holds one 32-bit entry per record, sorted by value:

    low bits of the value's dense rank | number of the record | label

So the positives of a side are a sum over consecutive entries, and most ties are settled without
reading the values. The number takes as many bits as the table needs, and the rank gets the rest. A
node's records are one range of every order. They stay sorted there, because the partition is
stable.
"""

from typing import NamedTuple

import numba
import numpy as np

from verix_anon.arrays import Bytes, Floats, Ids, Ints, Numbers, Words
from verix_anon.kernels.radix import sort_words

# Compiled in (`make stamps`): radix 37b707da.


class Forest(NamedTuple):
    """The orders of some records, numbered from 0, and what splitting them needs."""

    values: Floats
    """(n_quasi, rows of the table)"""
    row: Numbers
    """(n_records,): each record's row in the table"""
    order: Numbers
    """(n_quasi, n_records)"""
    n_ranks: Ints
    """(n_quasi,): how many distinct values each column has in the table"""
    side: Bytes
    """One bit per record: 1 if it goes left at the node that is being split"""
    row_bits: int
    min_leaf: int
    max_depth: int


class Chosen(NamedTuple):
    """A split: its column, where its right side starts, the positives on its left, its score."""

    column: int
    position: int
    positive: np.int64
    score: float


class Grown(NamedTuple):
    """Nodes in preorder from 0, as in a Tree, and the leaves' sizes and bounds."""

    column: Ids
    threshold: Floats
    left: Ids
    right: Ids
    leaf: Ids
    size: Ints
    minimum: Floats
    maximum: Floats


@numba.njit(cache=True, nogil=True)
def sort_column(
    values: Floats, target: Bytes, order: Numbers, row_bits: int, buffer: Words
) -> np.int64:
    """Fill a column's order and return its number of distinct values."""
    word, is_partial = sort_words(values, row_bits, buffer)
    bits = values.view(np.uint64)
    below = np.uint64(row_bits)
    row_mask = (np.uint64(1) << below) - np.uint64(1)
    rank = np.uint32(0)
    one = np.uint32(1)
    for i in range(values.size):
        row = word[i] & row_mask
        if i > 0:
            before = word[i - 1]
            if word[i] >> below != before >> below or (
                is_partial and bits[row] != bits[before & row_mask]
            ):
                rank += one
        entry = (np.uint32(row) << one) | np.uint32(target[row])
        # A shift by 32 is undefined, and it would leave no bits for a rank.
        if row_bits < 31:
            entry |= rank << np.uint32(row_bits + 1)
        order[i] = entry
    return np.int64(rank) + 1


@numba.njit(cache=True, nogil=True)
def _record(forest: Forest, entry: np.uint32) -> np.intp:
    return np.intp((entry >> np.uint32(1)) & np.uint32((1 << forest.row_bits) - 1))


@numba.njit(cache=True, nogil=True)
def _value(forest: Forest, column: int, entry: np.uint32) -> float:
    return np.float64(forest.values[column, forest.row[_record(forest, entry)]])


@numba.njit(cache=True, nogil=True)
def _equal(forest: Forest, column: int, a: np.uint32, b: np.uint32) -> bool:
    """Whether two entries of a column have the same value."""
    if forest.row_bits < 31:
        shift = np.uint32(forest.row_bits + 1)
        if (a >> shift) != (b >> shift):
            return False
        if forest.n_ranks[column] <= 1 << (31 - forest.row_bits):
            return True
    return bool(_value(forest, column, a) == _value(forest, column, b))


@numba.njit(cache=True, nogil=True)
def _split_position(forest: Forest, column: int, lo: int, hi: int) -> int:
    """Return where the right side of `rules.VarianceReduction.candidate` starts, or -1."""
    order = forest.order[column]
    median = lo + (hi - lo + 1) // 2 - 1
    last = hi - forest.min_leaf
    # The right side holds min_leaf records if the first of the last min_leaf lies beyond the
    # median, and only then. The left side always does: it holds half of n >= 2 min_leaf records.
    if _equal(forest, column, order[median], order[last]):
        return -1
    if not _equal(forest, column, order[median], order[median + 1]):
        return median + 1
    inside, outside = median + 1, last
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if _equal(forest, column, order[median], order[middle]):
            inside = middle
        else:
            outside = middle
    return outside


@numba.njit(cache=True, nogil=True)
def _positives(order: Numbers, lo: int, hi: int) -> np.int64:
    total = np.uint32(0)
    for i in range(lo, hi):
        total += order[i] & np.uint32(1)
    return np.int64(total)


@numba.njit(cache=True, nogil=True)
def best_split(forest: Forest, node: tuple[int, int, int], columns: tuple[int, int]) -> Chosen:
    """Return `rules.best_split` of a node (lo, hi, positives) among a range of columns.

    Column -1 means that none of them is valid. The node holds at least 2 min_leaf records.
    """
    lo, hi, positive = node
    best_column, best_position, best_left, best_score = -1, -1, np.int64(-1), -1.0
    for column in range(columns[0], columns[1]):
        position = _split_position(forest, column, lo, hi)
        if position < 0:
            continue
        left = _positives(forest.order[column], lo, position)
        nl, l = np.float64(position - lo), np.float64(left)  # noqa: E741
        nr, r = np.float64(hi - position), np.float64(positive - left)
        # Both quotients are rounded before the sum, so a compiler cannot fuse a multiply-add.
        score = l * l / nl + r * r / nr
        if score > best_score:
            best_column, best_position, best_left, best_score = column, position, left, score
    return Chosen(best_column, best_position, best_left, best_score)


@numba.njit(cache=True, nogil=True)
def mark(forest: Forest, column: int, lo: int, position: int, hi: int) -> None:
    """Store for every row of the node which side it goes to."""
    order = forest.order[column]
    for i in range(lo, position):
        record = _record(forest, order[i])
        forest.side[record >> 3] |= np.uint8(1 << (record & 7))
    for i in range(position, hi):
        record = _record(forest, order[i])
        forest.side[record >> 3] &= ~np.uint8(1 << (record & 7))


@numba.njit(cache=True, nogil=True)
def partition(forest: Forest, buffer: Numbers, lo: int, hi: int, columns: tuple[int, int]) -> None:
    """Move the entries that go left to the front in a range of columns, keeping the order.

    Each entry is written to both places, and only one cursor moves. This avoids a branch that is
    mispredicted half the time, and takes one to two ns per entry (`make bench`).
    """
    one = np.uint64(1)
    three, seven = np.uint32(3), np.uint32(7)
    shift, mask = np.uint32(1), np.uint32((1 << forest.row_bits) - 1)
    for column in range(columns[0], columns[1]):
        order = forest.order[column]
        left, right = np.uint64(lo), np.uint64(0)
        for i in range(np.uint64(lo), np.uint64(hi)):
            entry = order[i]
            record = (entry >> shift) & mask
            goes_left = np.uint64((forest.side[record >> three] >> (record & seven)) & shift)
            order[left] = entry
            buffer[right] = entry
            left += goes_left
            right += one - goes_left
        for i in range(right):
            order[left + i] = buffer[i]


@numba.njit(cache=True, nogil=True)
def threshold_at(forest: Forest, column: int, position: int) -> float:
    """Return the threshold of a split whose right side starts at `position`."""
    return _value(forest, column, forest.order[column, position - 1])


@numba.njit(cache=True, nogil=True)
def localize(forest: Forest, lo: int, order: Numbers, number: Numbers) -> Forest:
    """Return the records of one node, from `lo` on, as their own forest, numbered from 0.

    The rows of a small node are scattered over the whole table, with a cache line each. With new
    numbers their sides fit into the nearest cache. This fills `order`, (n_quasi, n_records). The
    buffer `number` holds one number per record of the given forest; calls for different nodes may
    share it.
    """
    n_quasi, n = order.shape
    row = np.empty(n, np.uint32)
    for i in range(n):
        record = _record(forest, forest.order[0, lo + i])
        number[record] = np.uint32(i)
        row[i] = forest.row[record]
    one = np.uint32(1)
    keep = ~(np.uint32((1 << forest.row_bits) - 1) << one)
    for column in range(n_quasi):
        for i in range(n):
            entry = forest.order[column, lo + i]
            order[column, i] = (entry & keep) | (number[_record(forest, entry)] << one)
    return Forest(
        forest.values,
        row,
        order,
        forest.n_ranks,
        np.empty((n + 7) // 8, np.uint8),
        forest.row_bits,
        forest.min_leaf,
        forest.max_depth,
    )


@numba.njit(cache=True, nogil=True)
def _put(stack: Ints, at: int, node: tuple[int | np.int64, ...]) -> None:
    # Do not assign the whole row: compiling that takes two seconds.
    for i in range(5):
        stack[at, i] = node[i]


@numba.njit(cache=True, nogil=True)
def grow(forest: Forest, positive: int, depth: int, grouped: Numbers) -> Grown:
    """Equals `rules.grow` by `rules.VarianceReduction` of all records, left side first.

    It fills `grouped` with the records' rows in the table, leaf by leaf.
    """
    n_quasi, n = forest.order.shape
    capacity = max(1, 2 * (n // forest.min_leaf) - 1)
    column = np.full(capacity, -1, np.int32)
    threshold = np.zeros(capacity, np.float64)
    left, right = np.full(capacity, -1, np.int32), np.full(capacity, -1, np.int32)
    leaf = np.full(capacity, -1, np.int32)
    size = np.empty((capacity + 1) // 2, np.int64)
    minimum = np.empty((size.size, n_quasi), np.float64)
    maximum = np.empty((size.size, n_quasi), np.float64)
    buffer = np.empty(n, np.uint32)
    # At most one waiting right sibling per level, and the node itself.
    stack = np.empty((forest.max_depth + 2, 5), np.int64)
    _put(stack, 0, (0, n, positive, depth, -1))
    waiting, n_nodes, n_leaves = 1, 0, 0
    while waiting > 0:
        waiting -= 1
        lo, hi, positive = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        depth, parent = stack[waiting, 3], stack[waiting, 4]
        number = n_nodes
        n_nodes += 1
        if parent >= 0:
            right[parent] = number
        best, position, positive_left = -1, -1, np.int64(-1)
        n = hi - lo
        if n >= 2 * forest.min_leaf and 0 < positive < n and depth < forest.max_depth:
            best, position, positive_left, _ = best_split(forest, (lo, hi, positive), (0, n_quasi))
        if best < 0:
            leaf[number] = n_leaves
            size[n_leaves] = n
            for j in range(n_quasi):
                minimum[n_leaves, j] = _value(forest, j, forest.order[j, lo])
                maximum[n_leaves, j] = _value(forest, j, forest.order[j, hi - 1])
            for i in range(lo, hi):
                grouped[i] = forest.row[_record(forest, forest.order[0, i])]
            n_leaves += 1
            continue
        mark(forest, best, lo, position, hi)
        partition(forest, buffer, lo, hi, (0, best))
        partition(forest, buffer, lo, hi, (best + 1, n_quasi))
        column[number] = best
        threshold[number] = threshold_at(forest, best, position)
        left[number] = number + 1
        _put(stack, waiting, (position, hi, positive - positive_left, depth + 1, number))
        _put(stack, waiting + 1, (lo, position, positive_left, depth + 1, -1))
        waiting += 2
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
