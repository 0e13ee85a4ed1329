"""Compiled loops that hold every node of a tree to the rule, with little more than a sort.

Records lie leaf by leaf, so a node's records are consecutive (see `splits`). In each column,
subtrees of up to BLOCK records are sorted once; these are the blocks.

    a node larger than a block   its median is selected across the sorted blocks (see `across`)
    a node within a block        is a set of bits in the block's order
    a subtree of up to SMALL     has its part of the order; each node is a set of bits in that
"""

import numba
import numpy as np

from verix_anon.arrays import Bytes, Flags, Floats, Ids, Ints, Numbers, Shorts, Words
from verix_anon.kernels.across import Found, Sorted, find_large
from verix_anon.kernels.bits import count_bits, first_bits, odd, within
from verix_anon.kernels.radix import BLOCK, sort_block
from verix_anon.kernels.splits import Best, Spans, score

# Compiled in (`make stamps`): across 1fea51e8, bits ef802541, radix f15f564a, splits 98c66d81.
__all__ = ["BLOCK", "examine_all", "may_be_left_out", "room_for"]


# A subtree of four words of bits.
SMALL, WORD = 256, 64


def room_for(n: int) -> Sorted:
    """What `examine_all` needs for a column of n records; from numpy, for its huge pages."""
    # Entries are read by words of bits, so there is one more behind the last.
    return Sorted(np.empty(n + WORD, np.uint16), np.empty(0, np.int64), np.empty(2 * n + 1))


def examine_all(
    column: int,
    grouped: Floats,
    target: Bytes,
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
        find_large(first_block, grouped, laid, spans, found)
    _compete(column, found, spans, best)


def may_be_left_out(right: Ids, n_records: Ints, stops: Flags) -> Flags:
    """Leaves at which the rule stops whatever the columns say, unless they are blocks themselves.

    All are those of all nodes in preorder; `right` is -1 at a leaf. What lies under a node larger
    than a block is kept, so that blocks end where such nodes do.
    """
    n_of_parent = np.full(right.size, BLOCK + 1)
    inner = np.flatnonzero(right >= 0)
    for child in (inner + 1, right[inner]):
        n_of_parent[child] = n_records[inner]
    return stops & (right < 0) & (n_of_parent <= BLOCK)


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
    grouped: Floats, target: Bytes, spans: Spans, found: Found, room: Sorted
) -> tuple[Ints, Ints]:
    """The candidates at all nodes within blocks, the first block of larger ones, and the blocks.

    Arrays are taken out of their tuples at once, and not handed on in them: each time that
    happens, numba counts up and down who holds them, which costs more than a small node.
    """
    los, his, middles, stops = spans.lo, spans.hi, spans.middle, spans.stops
    threshold, n_left, positive_left = found.threshold, found.n_left, found.positive_left
    n_nodes, n = los.size, grouped.size
    edge = np.empty(n_nodes + n // BLOCK + 2, np.int64)
    sorted_ = room.order
    first_block = np.empty(n_nodes, np.int64)
    dealt = np.empty(BLOCK + SMALL, np.uint16)
    words, group = np.empty((2, BLOCK), np.uint32), np.empty((2, BLOCK), np.uint16)
    positive, of_small = np.empty(BLOCK // WORD, np.uint64), np.empty(SMALL // WORD, np.uint64)
    base, end, n_blocks, node = 0, 0, 0, 0
    while node < n_nodes:
        lo, hi = los[node], his[node]
        first_block[node] = n_blocks
        if hi - lo > BLOCK and middles[node] >= 0:
            node += 1
            continue
        if end < hi:
            # A new block; a leaf that is larger than one is several.
            n_blocks = _sort_blocks((lo, hi, n_blocks), grouped, target, words, sorted_, edge)
            base, end = lo, hi
            if hi - lo <= BLOCK:
                _take_labels(sorted_[lo:hi], positive)
                _deal(sorted_[lo:hi], (node, lo), los, his, group, dealt)
        if hi - lo > BLOCK:
            node += 1
            continue
        if hi - lo <= SMALL:
            part = dealt[lo - base : lo - base + SMALL]
            _take_labels(part, of_small)
            while node < n_nodes and his[node] <= hi:
                if not stops[node]:
                    span = (los[node] - base, his[node] - base)
                    threshold[node], n_left[node], positive_left[node] = _of_small(
                        part, of_small, grouped, base, span
                    )
                node += 1
            continue
        if not stops[node]:
            span = (lo - base, hi - base)
            threshold[node], n_left[node], positive_left[node] = _of_part(
                sorted_[base:], positive, grouped, base, span
            )
        node += 1
    edge[n_blocks] = n
    return first_block, edge[: n_blocks + 1]


@numba.njit(cache=True, nogil=True)
def _sort_blocks(
    span: tuple[int, int, int],
    grouped: Floats,
    target: Bytes,
    words: Numbers,
    order: Shorts,
    edge: Ints,
) -> int:
    """Sort the records from span[0] to span[1] as block span[2] and further ones if need be.

    Returns how many blocks there are then.
    """
    base, until, n_blocks = span
    while base < until:
        end = min(until, base + BLOCK)
        sort_block(grouped[base:end], target[base:end], words, order[base:end])
        edge[n_blocks] = base
        n_blocks += 1
        base = end
    return n_blocks


@numba.njit(cache=True, nogil=True)
def _take_labels(order: Shorts, positive: Words) -> None:
    """The labels of an order as bits."""
    for at in range(0, order.size, WORD):
        positive[at >> 6] = odd(order, at)


@numba.njit(cache=True, nogil=True)
def _deal(
    order: Shorts,
    first: tuple[int, int],
    los: Ints,
    his: Ints,
    group: Shorts,
    dealt: Shorts,
) -> None:
    """Bring the records of each small subtree together, at their place, in the order they had.

    The block's nodes are those from first[0] on, its records those from first[1] on. What is
    in no small subtree goes to places of its own.
    """
    node, base = first
    end = base + order.size
    # The group of each record, and where the next record of each group goes.
    group_of, cursor = group[0], group[1]
    at, n_groups = base, 0
    while at < end:
        while node < los.size and los[node] < end and his[node] - los[node] > SMALL:
            node += 1
        lo, hi = end, end
        if node < los.size and los[node] < end:
            lo, hi = los[node], his[node]
        for start, stop in ((at, lo), (lo, hi)):
            if start < stop:
                cursor[n_groups] = start - base
                # Not a slice assignment: that would take two seconds to compile.
                for number in range(np.uint64(start - base), np.uint64(stop - base)):
                    group_of[number] = np.uint16(n_groups)
                n_groups += 1
        at = hi
        while node < los.size and his[node] <= hi:
            node += 1
    for i in range(order.size):
        of = group_of[order[i] >> np.uint16(1)]
        dealt[cursor[of]] = order[i]
        cursor[of] += np.uint16(1)


@numba.njit(cache=True, nogil=True)
def _of_part(
    order: Shorts, positive: Words, grouped: Floats, base: int, span: tuple[int, int]
) -> tuple[float, int, int]:
    """The candidate at the node of records span[0] to span[1] of the block at `base`.

    They are consecutive numbers: comparing 64 entries at a time gives the node's set of bits
    in the order, and counting bits gives median and positives. What stands behind the block's
    order does no harm: the node's own records come first, and no more than those are counted.
    """
    low, last = np.uint16(2 * span[0]), np.uint16(2 * span[1] - 1)
    half = (span[1] - span[0] + 1) // 2
    at, n_left, positive_left = 0, 0, 0
    members = within(order, 0, low, last)
    n_more = count_bits(members)
    while n_left + n_more < half:
        n_left += n_more
        positive_left += count_bits(members & positive[at >> 6])
        at += WORD
        members = within(order, at, low, last)
        n_more = count_bits(members)
    return _within_word(order, positive, grouped, base, span, (at, members, n_left, positive_left))


@numba.njit(cache=True, nogil=True)
def _of_small(
    order: Shorts, positive: Words, grouped: Floats, base: int, span: tuple[int, int]
) -> tuple[float, int, int]:
    """The same for a node of a small subtree, given the order of that.

    Without branches, of which one in two would be mispredicted: all four words, then the one
    that holds the median.
    """
    low, last = np.uint16(2 * span[0]), np.uint16(2 * span[1] - 1)
    half = (span[1] - span[0] + 1) // 2
    a, b = within(order, 0, low, last), within(order, 64, low, last)
    c, d = within(order, 128, low, last), within(order, 192, low, last)
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
    return _within_word(order, positive, grouped, base, span, (at, members, n_left, positive_left))


@numba.njit(cache=True, nogil=True)
def _within_word(
    order: Shorts,
    positive: Words,
    grouped: Floats,
    base: int,
    span: tuple[int, int],
    word: tuple[int, np.uint64, int, int],
) -> tuple[float, int, int]:
    """A node's candidate, given the word that holds its median.

    That is where the word begins, the node's members in it, and how many members and
    positives lie before it. What equals the median follows it, in this word or the next.
    """
    at, members, n_left, positive_left = word
    low, last = np.uint16(2 * span[0]), np.uint16(2 * span[1] - 1)
    n, one = span[1] - span[0], np.uint16(1)
    half = (n + 1) // 2
    upto = first_bits(members, half - n_left)
    positive_left += count_bits(members & upto & positive[at >> 6])
    n_left = half
    threshold = grouped[base + (order[at + count_bits(upto) - 1] >> one)]
    rest = members & ~upto
    while n_left < n:
        if rest == np.uint64(0):
            at += WORD
            rest = within(order, at, low, last)
            continue
        lowest = rest & (~rest + np.uint64(1))
        if grouped[base + (order[at + count_bits(lowest - np.uint64(1))] >> one)] != threshold:
            break
        n_left += 1
        positive_left += count_bits(lowest & positive[at >> 6])
        rest ^= lowest
    return threshold, n_left, positive_left
