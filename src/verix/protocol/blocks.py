"""Compiled loops that hold every node of a tree to the rule, with little more than a sort.

Records lie leaf by leaf, so a node's records are consecutive (see `audit`). In each column,
subtrees of up to BLOCK records are sorted once; these are the blocks.

    a node larger than a block   its median is selected across the sorted blocks under it
    a node within a block        has its part of the block's order, partitioned on the way down
    a subtree of up to SMALL     keeps its order; each node is a set of bits in it
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from verix.protocol.audit import MANY, Best, Spans, by_bracket, score, select
from verix.protocol.bits import count_bits, first_bits, within
from verix.protocol.sorting import BLOCK, sort_block
from verix.protocol.tree import Tree

__all__ = ["BLOCK", "examine_all", "may_be_left_out", "room_for"]

Floats = npt.NDArray[np.float64]
Entries = npt.NDArray[np.uint16]
Flags = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]

# A record's number within a small subtree takes a byte.
SMALL = 256
# For medians across blocks the column is cut into so many slices, found from so many values.
SLICES, SAMPLE = 64, 4096


class Found(NamedTuple):
    """A column's candidate at every node: what lies left of the median."""

    threshold: Floats
    n_left: Rows
    positive_left: Rows


class Sorted(NamedTuple):
    """A column sorted block by block."""

    value: Floats
    positives: Entries
    """How many of a block's records up to this one are positive"""
    edge: Rows
    """Where each block begins, and where the last ends"""
    spare: Floats
    """Room to select from, and as much again"""


def room_for(n: int) -> Sorted:
    """What `examine_all` needs for a column of n records; from numpy, for its huge pages."""
    return Sorted(np.empty(n), np.empty(n, np.uint16), np.empty(0, np.int64), np.empty(2 * n + 1))


def examine_all(
    column: int,
    grouped: Floats,
    target: Labels,
    spans: Spans,
    best: Best,
    room: Sorted | None = None,
) -> None:
    """Let one column compete at the nodes, given in preorder; call in contract order.

    All nodes must be there, but for those that `may_be_left_out`.
    """
    n_nodes = spans.lo.size
    found = Found(np.empty(n_nodes), np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64))
    room = room or room_for(grouped.size)
    first_block, edge = _find(grouped, target, spans, found, room)
    if edge.size > 2:
        laid = room._replace(edge=edge)
        _find_large(first_block, laid, _slices(laid.value), spans, found)
    _compete(column, found, spans, best)


def may_be_left_out(tree: Tree, n_records: Rows, stops: Flags) -> Flags:
    """Leaves at which the rule stops whatever the columns say, unless they are blocks themselves.

    `n_records` and `stops` are those of all nodes. What lies under a node larger than a block
    is kept, so that blocks end where such nodes do.
    """
    n_of_parent = np.full(tree.n_nodes, BLOCK + 1)
    inner = np.flatnonzero(tree.column >= 0)
    for child in (tree.left, tree.right):
        n_of_parent[child[inner]] = n_records[inner]
    return stops & (tree.column < 0) & (n_of_parent <= BLOCK)


def _slices(value: Floats) -> Floats:
    """Values that cut a column into slices of about the same size."""
    # A stride that has nothing in common with the size of a block.
    sample = np.sort(value[:: max(1, value.size // SAMPLE) | 1])
    return sample[np.arange(1, SLICES) * sample.size // SLICES]


@numba.njit(cache=True, nogil=True)
def _compete(column: int, found: Found, spans: Spans, best: Best) -> None:
    for node in range(spans.lo.size):
        n, n_left = spans.hi[node] - spans.lo[node], found.n_left[node]
        # The left side holds at least half, and half of what does not stop is enough.
        if not spans.stops[node] and n - n_left >= spans.min_leaf:
            value = score(n, spans.positive[node], n_left, found.positive_left[node])
            if value > best.score[node]:
                best.column[node], best.score[node] = column, value
                best.threshold[node] = found.threshold[node]


@numba.njit(cache=True, nogil=True)
def _find(
    grouped: Floats, target: Labels, spans: Spans, found: Found, room: Sorted
) -> tuple[Rows, Rows]:
    """The candidates at all nodes within blocks, the first block of each node, and the blocks.

    Arrays are taken out of their tuples at once, and not handed on in them: each time that
    happens, numba counts up and down who holds them, which costs more than a small node.
    """
    los, his, middles, stops = spans.lo, spans.hi, spans.middle, spans.stops
    threshold, n_left, positive_left = found.threshold, found.n_left, found.positive_left
    n_nodes, n = los.size, grouped.size
    edge = np.empty(n_nodes + n // BLOCK + 2, np.int64)
    laid = Sorted(room.value, room.positives, edge, room.spare)
    first_block = np.empty(n_nodes, np.int64)
    order, spare = np.empty(BLOCK, np.uint16), np.empty(BLOCK, np.uint16)
    words = np.empty((2, BLOCK), np.uint32)
    number, label = np.empty(SMALL, np.uint8), np.empty(SMALL, np.uint8)
    positive = np.empty(SMALL // 64, np.uint64)
    base, end, n_blocks, node = 0, 0, 0, 0
    while node < n_nodes:
        lo, hi = los[node], his[node]
        first_block[node] = n_blocks
        if hi - lo > BLOCK and middles[node] >= 0:
            node += 1
            continue
        if end < hi:
            # A new block; a leaf that is larger than one is several.
            n_blocks = _sort_blocks((lo, hi, n_blocks), grouped, target, laid, words, order)
            base, end = lo, hi
        if hi - lo > BLOCK:
            node += 1
            continue
        if hi - lo <= SMALL:
            _take_small(order[lo - base : hi - base], lo - base, number, label, positive)
            while node < n_nodes and his[node] <= hi:
                if not stops[node]:
                    span = (los[node] - lo, his[node] - lo)
                    threshold[node], n_left[node], positive_left[node] = _of_small(
                        number, positive, grouped, lo, span
                    )
                node += 1
            continue
        part = order[lo - base : hi - base]
        if not stops[node]:
            threshold[node], n_left[node], positive_left[node] = _of_part(part, grouped, base)
        if middles[node] >= 0:
            _partition(part, spare, middles[node] - base)
        node += 1
    edge[n_blocks] = n
    return first_block, edge[: n_blocks + 1]


@numba.njit(cache=True, nogil=True)
def _sort_blocks(
    span: tuple[int, int, int],
    grouped: Floats,
    target: Labels,
    laid: Sorted,
    words: npt.NDArray[np.uint32],
    order: Entries,
) -> int:
    """Sort the records from span[0] to span[1] as block span[2] and further ones if need be.

    Returns how many blocks there are then; `order` is that of the last.
    """
    base, until, n_blocks = span
    while base < until:
        end = min(until, base + BLOCK)
        sort_block(grouped[base:end], target[base:end], words, order)
        total = np.uint16(0)
        for i in range(end - base):
            entry = order[i]
            laid.value[base + i] = grouped[base + (entry >> np.uint16(1))]
            total += entry & np.uint16(1)
            laid.positives[base + i] = total
        laid.edge[n_blocks] = base
        n_blocks += 1
        base = end
    return n_blocks


@numba.njit(cache=True, nogil=True)
def _find_large(
    first_block: Rows, laid: Sorted, slices: Floats, spans: Spans, found: Found
) -> None:
    """The candidates at the nodes that are larger than a block.

    A few values cut the column into slices of about the same size. Where they cut each block
    is looked up once; sums of that say in which slice a node's median lies, and only what the
    node has in that slice is gathered to select from.
    """
    cut, n_before = _cut(laid.value, laid.edge, slices)
    for node in range(spans.lo.size):
        if spans.hi[node] - spans.lo[node] > BLOCK and not spans.stops[node]:
            first = last = first_block[node]
            while laid.edge[last] < spans.hi[node]:
                last += 1
            half = (spans.hi[node] - spans.lo[node] + 1) // 2
            slice_ = SLICES - 1
            while n_before[last, slice_] - n_before[first, slice_] >= half:
                slice_ -= 1
            wanted = half - (n_before[last, slice_] - n_before[first, slice_])
            begin, end = cut[first:last, slice_], cut[first:last, slice_ + 1]
            threshold = _selected(laid.value, begin, end, wanted, laid.spare)
            n_left, positive_left = 0, 0
            for block in range(first, last):
                after = _above(laid.value, cut[block, slice_], cut[block, slice_ + 1], threshold)
                n_left += after - laid.edge[block]
                if after > laid.edge[block]:
                    positive_left += laid.positives[after - 1]
            found.threshold[node] = threshold
            found.n_left[node], found.positive_left[node] = n_left, positive_left


@numba.njit(cache=True, nogil=True)
def _cut(value: Floats, edge: Rows, slices: Floats) -> tuple[Rows, Rows]:
    """Where each slice begins in each block, and how many records all blocks before have below."""
    n_blocks = edge.size - 1
    cut = np.empty((n_blocks, SLICES + 1), np.int64)
    n_before = np.zeros((n_blocks + 1, SLICES), np.int64)
    for block in range(n_blocks):
        at = edge[block]
        cut[block, 0], cut[block, SLICES] = at, edge[block + 1]
        for slice_ in range(1, SLICES):
            at = _not_below(value, at, edge[block + 1], slices[slice_ - 1])
            cut[block, slice_] = at
        for slice_ in range(SLICES):
            n_below = cut[block, slice_] - edge[block]
            n_before[block + 1, slice_] = n_before[block, slice_] + n_below
    return cut, n_before


@numba.njit(cache=True, nogil=True)
def _selected(value: Floats, begin: Rows, end: Rows, wanted: int, room: Floats) -> float:
    """The value wanted, counted from 1 in order, of what some blocks have between two places."""
    n = 0
    low, high = np.inf, -np.inf
    for block in range(begin.size):
        if begin[block] < end[block]:
            low, high = min(low, value[begin[block]]), max(high, value[end[block] - 1])
    if low == high:
        return float(low)
    for block in range(begin.size):
        for i in range(begin[block], end[block]):
            room[n] = value[i]
            n += 1
    if n >= MANY:
        found = by_bracket(room[:n], wanted - 1, room[n:])
        if not np.isnan(found):
            return found
    return select(room[:n], wanted - 1)


@numba.njit(cache=True, nogil=True)
def _not_below(values: Floats, low: int, high: int, value: float) -> int:
    """The first of the sorted values from low to high that is not below a value."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(cache=True, nogil=True)
def _above(values: Floats, low: int, high: int, value: float) -> int:
    """The first of the sorted values from low to high that is above a value."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(cache=True, nogil=True)
def _of_part(part: Entries, grouped: Floats, base: int) -> tuple[float, int, int]:
    """The candidate at a node, given the order of its records in the block from `base` on."""
    n = part.size
    one = np.uint16(1)
    threshold = grouped[base + (part[(n + 1) // 2 - 1] >> one)]
    n_left = (n + 1) // 2
    while n_left < n and grouped[base + (part[n_left] >> one)] == threshold:
        n_left += 1
    positive_left = np.uint32(0)
    for i in range(n_left):
        positive_left += np.uint32(part[i] & one)
    return threshold, n_left, int(np.int64(positive_left))


@numba.njit(cache=True, nogil=True)
def _partition(part: Entries, spare: Entries, middle: int) -> None:
    """Put the records below `middle` first, keeping the order on both sides."""
    left, right = np.uint64(0), np.uint64(0)
    border = np.uint32(2 * middle)
    for i in range(part.size):
        entry = part[i]
        goes_left = np.uint64(np.uint32(entry) < border)
        part[left] = entry
        spare[right] = entry
        left += goes_left
        right += np.uint64(1) - goes_left
    for i in range(right):
        part[left + i] = spare[i]


@numba.njit(cache=True, nogil=True)
def _take_small(
    part: Entries,
    offset: int,
    number: npt.NDArray[np.uint8],
    label: npt.NDArray[np.uint8],
    positive: npt.NDArray[np.uint64],
) -> None:
    """The order of a small subtree: its records' numbers in a byte each, its labels as bits."""
    first = np.uint16(offset)
    for i in range(part.size):
        number[i] = np.uint8((part[i] >> np.uint16(1)) - first)
        label[i] = np.uint8(part[i] & np.uint16(1))
    for i in range(part.size, SMALL):
        # Beyond every node's last record: with 256 records there is nothing to fill up.
        number[i], label[i] = np.uint8(255), np.uint8(0)
    for word in range(SMALL // 64):
        positive[word] = within(label, 64 * word, np.uint8(1), np.uint8(1))


@numba.njit(cache=True, nogil=True)
def _of_small(
    number: npt.NDArray[np.uint8],
    positive: npt.NDArray[np.uint64],
    grouped: Floats,
    base: int,
    span: tuple[int, int],
) -> tuple[float, int, int]:
    """The candidate at the node of records span[0] to span[1] of the small subtree at `base`.

    They are consecutive numbers: comparing 64 numbers at a time gives the node's set of bits
    in the order, and counting bits gives median and positives.
    """
    low, last = np.uint8(span[0]), np.uint8(span[1] - 1)
    n = span[1] - span[0]
    half = (n + 1) // 2
    # Without branches, of which one in two would be mispredicted: all four words, then the one
    # that holds the median.
    a, b = within(number, 0, low, last), within(number, 64, low, last)
    c, d = within(number, 128, low, last), within(number, 192, low, last)
    n_a = count_bits(a)
    n_b = n_a + count_bits(b)
    n_c = n_b + count_bits(c)
    in_b, in_c, in_d = n_a < half, n_b < half, n_c < half
    at = 64 * (int(in_b) + int(in_c) + int(in_d))
    members = d if in_d else c if in_c else b if in_b else a
    n_left = n_c if in_d else n_b if in_c else n_a if in_b else 0
    positive_left = (
        int(in_b) * count_bits(a & positive[0])
        + int(in_c) * count_bits(b & positive[1])
        + int(in_d) * count_bits(c & positive[2])
    )
    # The median is the last of the first `half` members, in this word.
    upto = first_bits(members, half - n_left)
    positive_left += count_bits(members & upto & positive[at >> 6])
    n_left = half
    threshold = grouped[base + number[at + count_bits(upto) - 1]]
    rest = members & ~upto
    while n_left < n:
        if rest == np.uint64(0):
            at += 64
            rest = within(number, at, low, last)
            continue
        lowest = rest & (~rest + np.uint64(1))
        if grouped[base + number[at + count_bits(lowest - np.uint64(1))]] != threshold:
            break
        n_left += 1
        positive_left += count_bits(lowest & positive[at >> 6])
        rest ^= lowest
    return threshold, n_left, positive_left
