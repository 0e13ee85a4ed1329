"""Compiled loops that find the candidates at nodes larger than a block (see `blocks`).

The blocks under such a node are sorted, and every STRIDE-th record of a block is a mark. The
marks of a node tell its median but for a small part of its records: two values that enclose it
are looked up in each block, and only what lies between them is gathered to select from.
"""

from typing import NamedTuple

import numba
import numpy as np

from verix_anon.arrays import Floats, Ints, Shorts
from verix_anon.kernels.medians import nth
from verix_anon.kernels.radix import BLOCK
from verix_anon.kernels.splits import Spans

# Compiled in (`make stamps`): medians 72a09f4b, radix f15f564a, splits 98c66d81.
__all__ = ["Found", "Sorted", "find_large"]

STRIDE = 64


class Found(NamedTuple):
    """A column's candidate at every node: what lies left of the median."""

    threshold: Floats
    n_left: Ints
    positive_left: Ints


class Sorted(NamedTuple):
    """A column sorted block by block."""

    order: Shorts
    """Numbers of a block's records in the order of their values, labels in the low bit"""
    edge: Ints
    """Where each block begins, and where the last ends"""
    spare: Floats
    """Room to select from, and as much again"""


class Marks(NamedTuple):
    """The values of some records of each block: in the middle of every stride, if it has one."""

    value: Floats
    positive: Ints
    """How many of the block's records before it are positive"""
    edge: Ints
    """Where those of each block begin, and where the last end"""


@numba.njit(cache=True, nogil=True)
def find_large(
    first_block: Ints, grouped: Floats, laid: Sorted, spans: Spans, found: Found
) -> None:
    """The candidates at the nodes that are larger than a block, given the first block of each."""
    edge = laid.edge
    marks = _marks(grouped, laid)
    between = np.empty((edge.size - 1, 2), np.int64)
    for node in range(spans.lo.size):
        if spans.hi[node] - spans.lo[node] > BLOCK and not spans.stops[node]:
            first = last = first_block[node]
            while edge[last] < spans.hi[node]:
                last += 1
            threshold = _median(grouped, laid, marks, (first, last), between)
            n_left, positive_left = 0, 0
            for block in range(first, last):
                lo, hi = edge[block], edge[block + 1]
                values, order = grouped[lo:hi], laid.order[lo:hi]
                n_upto = _count_upto(
                    values, order, (between[block, 0], between[block, 1]), threshold, True
                )
                n_left += n_upto
                # Up to the last mark that is not beyond, then one by one.
                n_marks = marks.edge[block + 1] - marks.edge[block]
                mark = min((n_upto - STRIDE // 2) // STRIDE, n_marks - 1)
                begin = 0
                if mark >= 0:
                    positive_left += marks.positive[marks.edge[block] + mark]
                    begin = STRIDE * mark + STRIDE // 2
                positive_left += _count_positive(order[begin:n_upto])
            found.threshold[node] = threshold
            found.n_left[node], found.positive_left[node] = n_left, positive_left


@numba.njit(cache=True, nogil=True)
def _marks(grouped: Floats, laid: Sorted) -> Marks:
    n_blocks = laid.edge.size - 1
    edge = np.zeros(n_blocks + 1, np.int64)
    for block in range(n_blocks):
        size = laid.edge[block + 1] - laid.edge[block]
        edge[block + 1] = edge[block] + (size + STRIDE // 2 - 1) // STRIDE
    value, positive = np.empty(edge[n_blocks]), np.empty(edge[n_blocks], np.int64)
    for block in range(n_blocks):
        begin, n_positive = laid.edge[block], 0
        for mark in range(edge[block], edge[block + 1]):
            at = laid.edge[block] + STRIDE * (mark - edge[block]) + STRIDE // 2
            n_positive += _count_positive(laid.order[begin:at])
            entry = laid.order[at] >> np.uint16(1)
            value[mark], positive[mark] = grouped[laid.edge[block] + entry], n_positive
            begin = at
    return Marks(value, positive, edge)


@numba.njit(cache=True, nogil=True)
def _median(
    grouped: Floats, laid: Sorted, marks: Marks, blocks: tuple[int, int], between: Ints
) -> float:
    """The lower median of some blocks; `between` is left with places around it in each."""
    first, last = blocks
    edge, room = laid.edge, laid.spare
    wanted = (edge[last] - edge[first] + 1) // 2
    sample = marks.value[marks.edge[first] : marks.edge[last]]
    # In each block a mark may be off by half a stride, to either side.
    reach = int(np.sqrt(last - first)) + 2
    while True:
        low = _nth_or_beyond(sample, sample.size // 2 - reach, room)
        high = _nth_or_beyond(sample, sample.size // 2 + reach, room)
        n_below, n_within = 0, 0
        for block in range(first, last):
            lo, hi = edge[block], edge[block + 1]
            values, order = grouped[lo:hi], laid.order[lo:hi]
            own = marks.value[marks.edge[block] : marks.edge[block + 1]]
            between[block, 0] = _place(values, order, own, low, False)
            between[block, 1] = _place(values, order, own, high, True)
            n_below += between[block, 0]
            n_within += between[block, 1] - between[block, 0]
        if n_below < wanted <= n_below + n_within:
            break
        reach *= 8
    if low == high:
        return low
    n, rest = 0, room[n_within:]
    for block in range(first, last):
        lo = edge[block]
        for i in range(lo + between[block, 0], lo + between[block, 1]):
            room[n] = grouped[lo + (laid.order[i] >> np.uint16(1))]
            n += 1
    return nth(room[:n], wanted - n_below - 1, rest)


@numba.njit(cache=True, nogil=True)
def _nth_or_beyond(values: Floats, position: int, room: Floats) -> float:
    """The value at a position of the sorted values; beyond their ends it is infinite."""
    if position < 0:
        return -np.inf
    if position >= values.size:
        return np.inf
    return nth(values, position, room)


@numba.njit(cache=True, nogil=True)
def _place(values: Floats, order: Shorts, marks: Floats, value: float, is_included: bool) -> int:
    """How many of a block's records are below a value, or not above it, by its marks."""
    low, high = 0, marks.size
    while low < high:
        middle = (low + high) >> 1
        if marks[middle] < value or (is_included and marks[middle] == value):
            low = middle + 1
        else:
            high = middle
    # The last mark that counts, and the first that does not.
    after = STRIDE * (low - 1) + STRIDE // 2 + 1 if low > 0 else 0
    until = STRIDE * low + STRIDE // 2 if low < marks.size else values.size
    return _count_upto(values, order, (after, until), value, is_included)


@numba.njit(cache=True, nogil=True)
def _count_upto(
    values: Floats, order: Shorts, between: tuple[int, int], value: float, is_included: bool
) -> int:
    """How many of a block's records are below a value, or not above it; it is between two."""
    low, high = between
    while low < high:
        middle = (low + high) >> 1
        found = values[order[middle] >> np.uint16(1)]
        if found < value or (is_included and found == value):
            low = middle + 1
        else:
            high = middle
    return int(low)


@numba.njit(cache=True, nogil=True)
def _count_positive(order: Shorts) -> int:
    """How many of these records are positive."""
    n = np.uint32(0)
    for i in range(order.size):
        n += np.uint32(order[i] & np.uint16(1))
    return int(np.int64(n))
