"""Compiled loops that find the candidates at nodes larger than a block (see `blocks`).

The blocks under such a node are sorted. A few values cut the column into slices of about the
same size, and where they cut each block is looked up once. Sums of that say in which slice a
node's median lies, and only what the node has in that slice is gathered to select from.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from verix.protocol.audit import MANY, Spans, by_bracket, select
from verix.protocol.sorting import BLOCK

__all__ = ["Found", "Sorted", "find_large", "slices_of"]

Floats = npt.NDArray[np.float64]
Entries = npt.NDArray[np.uint16]
Rows = npt.NDArray[np.int64]

# So many slices, found from so many values.
SLICES, SAMPLE = 64, 4096


class Found(NamedTuple):
    """A column's candidate at every node: what lies left of the median."""

    threshold: Floats
    n_left: Rows
    positive_left: Rows


class Sorted(NamedTuple):
    """A column sorted block by block."""

    order: Entries
    """Numbers of a block's records in the order of their values, labels in the low bit"""
    edge: Rows
    """Where each block begins, and where the last ends"""
    spare: Floats
    """Room to select from, and as much again"""


def slices_of(value: Floats) -> Floats:
    """Values that cut a column into slices of about the same size."""
    sample = np.sort(value[:: max(1, value.size // SAMPLE)])
    return sample[np.arange(1, SLICES) * sample.size // SLICES]


@numba.njit(cache=True, nogil=True)
def find_large(
    first_block: Rows, grouped: Floats, laid: Sorted, slices: Floats, spans: Spans, found: Found
) -> None:
    """The candidates at the nodes that are larger than a block, given the first block of each."""
    order, edge = laid.order, laid.edge
    cut, n_before = _cut(grouped, order, edge, slices)
    for node in range(spans.lo.size):
        if spans.hi[node] - spans.lo[node] > BLOCK and not spans.stops[node]:
            first = last = first_block[node]
            while edge[last] < spans.hi[node]:
                last += 1
            half = (spans.hi[node] - spans.lo[node] + 1) // 2
            slice_ = SLICES - 1
            while n_before[last, slice_] - n_before[first, slice_] >= half:
                slice_ -= 1
            wanted = half - (n_before[last, slice_] - n_before[first, slice_])
            threshold = _selected(grouped, laid, (first, last), cut[:, slice_:], wanted)
            n_left, positive_left = 0, 0
            for block in range(first, last):
                lo, hi = edge[block], edge[block + 1]
                n_upto = _n_upto(
                    grouped[lo:hi], order[lo:hi], cut[block, slice_ : slice_ + 2], threshold
                )
                n_left += n_upto
                positive_left += _n_positive(order[lo : lo + n_upto])
            found.threshold[node] = threshold
            found.n_left[node], found.positive_left[node] = n_left, positive_left


@numba.njit(cache=True, nogil=True)
def _cut(grouped: Floats, order: Entries, edge: Rows, slices: Floats) -> tuple[Rows, Rows]:
    """How many records of each block lie before each slice, and those of all blocks before."""
    n_blocks = edge.size - 1
    cut = np.zeros((n_blocks, SLICES + 1), np.int64)
    n_before = np.zeros((n_blocks + 1, SLICES), np.int64)
    for block in range(n_blocks):
        lo, hi = edge[block], edge[block + 1]
        values, numbers = grouped[lo:hi], order[lo:hi]
        cut[block, SLICES] = hi - lo
        for slice_ in range(1, SLICES):
            low, high = cut[block, slice_ - 1], hi - lo
            while low < high:
                middle = (low + high) >> 1
                if values[numbers[middle] >> np.uint16(1)] < slices[slice_ - 1]:
                    low = middle + 1
                else:
                    high = middle
            cut[block, slice_] = low
        for slice_ in range(SLICES):
            n_before[block + 1, slice_] = n_before[block, slice_] + cut[block, slice_]
    return cut, n_before


@numba.njit(cache=True, nogil=True)
def _selected(
    grouped: Floats, laid: Sorted, blocks: tuple[int, int], cut: Rows, wanted: int
) -> float:
    """The value wanted, counted from 1 in order, of what some blocks have between two cuts."""
    order, edge, room = laid.order, laid.edge, laid.spare
    n, one = 0, np.uint16(1)
    low, high = np.inf, -np.inf
    for block in range(blocks[0], blocks[1]):
        lo, begin, end = edge[block], cut[block, 0], cut[block, 1]
        if begin < end:
            low = min(low, grouped[lo + (order[lo + begin] >> one)])
            high = max(high, grouped[lo + (order[lo + end - 1] >> one)])
    if low == high:
        return float(low)
    for block in range(blocks[0], blocks[1]):
        lo = edge[block]
        for i in range(lo + cut[block, 0], lo + cut[block, 1]):
            room[n] = grouped[lo + (order[i] >> one)]
            n += 1
    if n >= MANY:
        found = by_bracket(room[:n], wanted - 1, room[n:])
        if not np.isnan(found):
            return found
    return select(room[:n], wanted - 1)


@numba.njit(cache=True, nogil=True)
def _n_upto(values: Floats, order: Entries, between: Rows, value: float) -> int:
    """How many of a block's records are not above a value that lies between two cuts."""
    low, high = between[0], between[1]
    while low < high:
        middle = (low + high) >> 1
        if values[order[middle] >> np.uint16(1)] <= value:
            low = middle + 1
        else:
            high = middle
    return int(low)


@numba.njit(cache=True, nogil=True)
def _n_positive(order: Entries) -> int:
    """How many of these records are positive."""
    n = np.uint32(0)
    for i in range(order.size):
        n += np.uint32(order[i] & np.uint16(1))
    return int(np.int64(n))
