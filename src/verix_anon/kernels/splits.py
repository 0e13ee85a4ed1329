"""Compiled loops that check a tree against `variance-reduction`: twins of `rules.best_split`.

Records are first laid out leaf by leaf. Leaves are numbered from left to right, so the records of
every node are consecutive.
"""

from typing import NamedTuple

import numba
import numpy as np

from verix_anon.arrays import Bytes, Flags, Floats, Ids, Ints, Shorts
from verix_anon.kernels.medians import lower_median
from verix_anon.kernels.radix import BLOCK, sort_block

# Compiled in (`make stamps`): medians d4cace7a, radix 37b707da.


class Candidate(NamedTuple):
    """The rule's candidate for a column at a node. Ignore `threshold` if it is not valid."""

    is_valid: bool
    threshold: float
    n_left: int
    positive_left: int


@numba.njit(cache=True, nogil=True)
def candidate(values: Floats, target: Bytes, min_leaf: int, buffer: Floats) -> Candidate:
    """`rules.VarianceReduction.candidate` of one column at a node with these values and labels."""
    n = values.size
    threshold = lower_median(values, buffer)
    n_left, positive_left = 0, 0
    for i in range(n):
        goes_left = values[i] <= threshold
        n_left += goes_left
        positive_left += goes_left & target[i]
    return Candidate(
        n_left >= min_leaf and n - n_left >= min_leaf, threshold, n_left, positive_left
    )


@numba.njit(cache=True, nogil=True)
def score(n: int, positive: int, n_left: int, positive_left: int) -> float:
    """Score a candidate as `rules.score` does."""
    nl, l = np.float64(n_left), np.float64(positive_left)  # noqa: E741
    nr, r = np.float64(n - n_left), np.float64(positive - positive_left)
    return np.float64(l * l / nl + r * r / nr)


class Best(NamedTuple):
    """The best candidate so far at each examined node."""

    column: Ids
    """-1 where no candidate is valid"""
    threshold: Floats
    score: Floats


class Spans(NamedTuple):
    """Nodes in preorder: their records, where the right child starts, and their positives."""

    lo: Ints
    middle: Ints
    """-1 at a leaf"""
    hi: Ints
    positive: Ints
    stops: Flags
    """Where the rule stops, whatever the columns hold"""
    min_leaf: int


@numba.njit(cache=True, nogil=True)
def examine_some(
    column: int, grouped: Floats, target: Bytes, spans: Spans, best: Best, buffer: Floats
) -> None:
    """Let one column compete at some nodes; call it for columns in contract order.

    The column's values lie leaf by leaf. The buffer holds one more than there are values.
    """
    for node in range(spans.lo.size):
        lo, hi = spans.lo[node], spans.hi[node]
        if not spans.stops[node]:
            found = candidate(grouped[lo:hi], target[lo:hi], spans.min_leaf, buffer)
            _compete(column, node, found, spans, best)


@numba.njit(cache=True, nogil=True)
def examine_all(
    column: int, grouped: Floats, target: Bytes, spans: Spans, best: Best, buffer: Floats
) -> None:
    """Do the same as `examine_some` for all nodes in preorder, at little more than one sort.

    A block, a subtree of up to BLOCK records, is sorted once. Each split then passes its records on
    in that order, from one of two arrays to the other.
    """
    words = np.empty((2, BLOCK), np.uint32)
    order = np.empty((2, BLOCK), np.uint16)
    # Which of the two arrays holds the node that begins at an offset of the block.
    held_by = np.zeros(BLOCK, np.uint8)
    base, end, values = 0, 0, grouped
    for node in range(spans.lo.size):
        lo, hi, middle = spans.lo[node], spans.hi[node], spans.middle[node]
        if _is_closed(spans.middle, spans.stops, node):
            continue
        if hi - lo > BLOCK:
            if not spans.stops[node]:
                found = candidate(grouped[lo:hi], target[lo:hi], spans.min_leaf, buffer)
                _compete(column, node, found, spans, best)
            continue
        if hi > end:
            base, end, values = lo, hi, grouped[lo:hi]
            sort_block(values, target[lo:hi], words, order[0])
            held_by[0] = 0
        holder = held_by[lo - base]
        if not spans.stops[node]:
            own = order[holder, lo - base : hi - base]
            _compete(column, node, _of_sorted(own, values, spans.min_leaf), spans, best)
        # Half of all splits have two leaves at which the rule stops. If the left child is a leaf,
        # the
        # right child is the next node.
        if middle >= 0 and not (
            _is_closed(spans.middle, spans.stops, node + 1)
            and _is_closed(spans.middle, spans.stops, node + 2)
        ):
            _hand_down(order[holder], order[1 - holder], (lo - base, middle - base, hi - base))
            held_by[lo - base] = held_by[middle - base] = 1 - holder


@numba.njit(cache=True, nogil=True)
def _is_closed(middle: Ints, stops: Flags, node: int) -> bool:
    """Whether a node is a leaf at which the rule stops, whatever the columns hold."""
    return bool(middle[node] < 0 and stops[node])


@numba.njit(cache=True, nogil=True)
def _of_sorted(order: Shorts, values: Floats, min_leaf: int) -> Candidate:
    """Return the candidate at a node whose records, with labels in the low bit, are sorted.

    The node holds at least 2 min_leaf records, so the left side is never too small.
    """
    one = np.uint16(1)
    last, beyond = (order.size + 1) // 2 - 1, order.size - min_leaf
    threshold = values[order[last] >> one]
    if values[order[beyond] >> one] == threshold:
        return Candidate(False, threshold, 0, 0)
    # Usually the next value is greater.
    if values[order[last + 1] >> one] != threshold:
        beyond = last + 1
    while beyond - last > 1:
        between = (last + beyond) // 2
        if values[order[between] >> one] == threshold:
            last = between
        else:
            beyond = between
    positive_left = np.uint32(0)
    for i in range(beyond):
        positive_left += np.uint32(order[i] & one)
    return Candidate(True, threshold, beyond, int(np.int64(positive_left)))


@numba.njit(cache=True, nogil=True)
def _hand_down(order: Shorts, other: Shorts, span: tuple[int, int, int]) -> None:
    """Copy a node's records to the other array, those before the middle first, in their order.

    One of two cursors moves. This avoids a branch that is mispredicted half the time.
    """
    lo, middle, hi = span
    edge = np.uint16(2 * middle)
    left, right = np.uint64(lo), np.uint64(middle)
    for i in range(np.uint64(lo), np.uint64(hi)):
        goes_left = order[i] < edge
        other[left if goes_left else right] = order[i]
        left += np.uint64(goes_left)
        right += np.uint64(1) - np.uint64(goes_left)


@numba.njit(cache=True, nogil=True)
def _compete(column: int, node: int, found: Candidate, spans: Spans, best: Best) -> None:
    if found.is_valid:
        n = spans.hi[node] - spans.lo[node]
        value = score(n, spans.positive[node], found.n_left, found.positive_left)
        if value > best.score[node]:
            best.column[node] = column
            best.threshold[node], best.score[node] = found.threshold, value
