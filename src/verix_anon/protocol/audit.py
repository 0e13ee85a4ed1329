"""Compiled loops that check a tree against the rule: the fast twin of `rules.best_split`.

Records are first laid out leaf by leaf, so that those of every node are consecutive: leaves
are numbered from left to right, and a node's leaves are consecutive.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from verix_anon.protocol.bits import prefetch
from verix_anon.protocol.kernels import AHEAD, Nodes

# Compiled in (`make stamps`): bits 27534896, kernels 65feeece.
__all__ = [
    "Best",
    "Candidate",
    "Spans",
    "best_split",
    "by_bracket",
    "candidate",
    "divide",
    "examine_some",
    "first_misrouted",
    "gather",
    "leaf_bounds",
    "node_spans",
    "nth",
    "score",
    "select",
]


# Up to so many values, counting pairs is the fastest way to a median; from so many on, a
# sample narrows it down.
FEW, MANY = 48, 512
# Has nothing in common with a power of two, and is about 0.618 of one.
JUMP = 40_503


class Candidate(NamedTuple):
    """What the rule says of one column at one node; `threshold` means nothing if not valid."""

    is_valid: bool
    threshold: float
    n_left: int
    positive_left: int


@numba.njit(cache=True, nogil=True)
def gather(
    values: npt.NDArray[np.float64],
    rows: npt.NDArray[np.uint32],
    out: npt.NDArray[np.float64],
) -> None:
    """One column's values in the order of `rows`."""
    n = rows.size
    for i in range(n):
        prefetch(values, int(rows[min(i + AHEAD, n - 1)]))
        out[i] = values[rows[i]]


@numba.njit(cache=True, nogil=True)
def leaf_bounds(
    grouped: npt.NDArray[np.float64],
    start: npt.NDArray[np.int64],
    minimum: npt.NDArray[np.float64],
    maximum: npt.NDArray[np.float64],
) -> None:
    """The least and greatest value of each leaf in one column laid out leaf by leaf."""
    for leaf in range(start.size - 1):
        low, high = np.inf, -np.inf
        for i in range(start[leaf], start[leaf + 1]):
            low, high = min(low, grouped[i]), max(high, grouped[i])
        minimum[leaf], maximum[leaf] = low, high


@numba.njit(cache=True, nogil=True)
def node_spans(
    right: npt.NDArray[np.int32], leaf: npt.NDArray[np.int32], start: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
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
def select(values: npt.NDArray[np.float64], position: int) -> float:
    """The value at a position of the sorted values; reorders them (Hoare's quickselect)."""
    lo, hi = 0, values.size - 1
    while lo < hi:
        a, b, c = values[lo], values[(lo + hi) // 2], values[hi]
        # The median of three as pivot: sorted input is common, and must not be slow.
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = lo, hi
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if position <= j:
            hi = j
        elif position >= i:
            lo = i
        else:
            break
    return np.float64(values[position])


@numba.njit(cache=True, nogil=True)
def _by_rank(values: npt.NDArray[np.float64], position: int) -> float:
    """The value at a position of the sorted values, for few of them: count who is below whom."""
    n = values.size
    for i in range(n):
        value = values[i]
        below, same = 0, 0
        for j in range(n):
            below += values[j] < value
            same += values[j] == value
        if below <= position < below + same:
            return np.float64(value)
    return np.float64(np.nan)


@numba.njit(cache=True, nogil=True)
def by_bracket(
    values: npt.NDArray[np.float64], position: int, scratch: npt.NDArray[np.float64]
) -> float:
    """The value at a position of the sorted values, for many of them.

    A sample brackets it; one pass without branches keeps what lies in the bracket, the same
    is done with what was kept, and few values are left to select from. NaN if the sample was
    misleading, which is one time in hundreds.
    """
    low, high, n_below, n_kept = _narrow(values, position, scratch)
    position -= n_below
    if not 0 <= position < n_kept:
        return np.float64(np.nan)
    if low == high:
        return np.float64(low)
    kept, rest = scratch[:n_kept], scratch[n_kept:]
    if n_kept >= MANY and rest.size > n_kept:
        low, high, n_below, n_again = _narrow(kept, position, rest)
        if n_below <= position < n_below + n_again:
            return select(rest[:n_again], position - n_below)
    return select(kept, position)


@numba.njit(cache=True, nogil=True)
def _narrow(
    values: npt.NDArray[np.float64], position: int, scratch: npt.NDArray[np.float64]
) -> tuple[float, float, int, int]:
    """Two values around a position of the sorted ones, how many lie below, and how many within.

    The latter are left in `scratch`, which has room for one more than there are values.
    """
    n = values.size
    n_sample = int(4.0 * np.sqrt(n))
    step = n // n_sample
    sample = scratch[:n_sample]
    for i in range(n_sample):
        # Not always the same place of a step: values may lie in sorted runs of a few steps.
        sample[i] = values[i * step + i * JUMP % step]
    middle = position * n_sample // n
    # Three standard deviations of the rank of a median.
    reach = int(1.5 * np.sqrt(n_sample)) + 1
    low = select(sample, max(0, middle - reach))
    high = select(sample, min(n_sample - 1, middle + reach))
    n_below, n_kept = 0, np.uint64(0)
    for i in range(n):
        value = values[i]
        n_below += value < low
        scratch[n_kept] = value
        n_kept += np.uint64((value >= low) & (value <= high))
    return low, high, n_below, int(np.int64(n_kept))


@numba.njit(cache=True, nogil=True)
def nth(values: npt.NDArray[np.float64], position: int, scratch: npt.NDArray[np.float64]) -> float:
    """The value at a position of the sorted values; scratch has room for n + 1."""
    n = values.size
    if n >= MANY:
        found = by_bracket(values, position, scratch)
        if not np.isnan(found):
            return found
    for i in range(n):
        scratch[i] = values[i]
    return select(scratch[:n], position)


@numba.njit(cache=True, nogil=True)
def _lower_median(values: npt.NDArray[np.float64], scratch: npt.NDArray[np.float64]) -> float:
    """The value at position ceil(n/2), counted from 1; scratch has room for n + 1."""
    position = (values.size + 1) // 2 - 1
    if values.size <= FEW:
        return _by_rank(values, position)
    return nth(values, position, scratch)


@numba.njit(cache=True, nogil=True)
def candidate(
    values: npt.NDArray[np.float64],
    target: npt.NDArray[np.uint8],
    min_leaf: int,
    scratch: npt.NDArray[np.float64],
) -> Candidate:
    """The rule's candidate of one column at a node with these values and labels."""
    n = values.size
    threshold = _lower_median(values, scratch)
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
    """What orders candidates, as in `rules.score`."""
    nl, l = np.float64(n_left), np.float64(positive_left)  # noqa: E741
    nr, r = np.float64(n - n_left), np.float64(positive - positive_left)
    return np.float64(l * l / nl + r * r / nr)


@numba.njit(cache=True, nogil=True)
def best_split(
    values: npt.NDArray[np.float64],
    rows: npt.NDArray[np.uint32],
    target: npt.NDArray[np.uint8],
    columns: tuple[int, int],
    min_leaf: int,
    room: npt.NDArray[np.float64],
) -> tuple[int, Candidate, float]:
    """The best candidate of a range of columns at the node of these rows: column, itself, score.

    `target` holds all labels; `room` is (2, n + 1) or more. Column -1: none is valid.
    """
    n = rows.size
    label = np.empty(n, np.uint8)
    positive = 0
    for i in range(n):
        label[i] = target[rows[i]]
        positive += label[i]
    best, best_score = -1, -1.0
    chosen = Candidate(False, 0.0, 0, 0)
    for column in range(columns[0], columns[1]):
        gather(values[column], rows, room[0])
        found = candidate(room[0, :n], label, min_leaf, room[1])
        if found.is_valid:
            value = score(n, positive, found.n_left, found.positive_left)
            # Strictly greater: among equals the first in contract order stays.
            if value > best_score:
                best, chosen, best_score = column, found, value
    return best, chosen, best_score


@numba.njit(cache=True, nogil=True)
def divide(
    values: npt.NDArray[np.float64], rows: npt.NDArray[np.uint32], threshold: float
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """The rows with a value up to the threshold, and the others, each in the order they had."""
    left, right = np.empty(rows.size + 1, np.uint32), np.empty(rows.size + 1, np.uint32)
    n_left, n_right = np.uint64(0), np.uint64(0)
    for i in range(rows.size):
        # Both are written every time, and one of the cursors moves: no branch to mispredict.
        goes_left = np.uint64(values[rows[i]] <= threshold)
        left[n_left] = rows[i]
        right[n_right] = rows[i]
        n_left += goes_left
        n_right += np.uint64(1) - goes_left
    return left[:n_left], right[:n_right]


class Best(NamedTuple):
    """The best candidate so far at each examined node."""

    column: npt.NDArray[np.int32]
    """-1 where no candidate is valid"""
    threshold: npt.NDArray[np.float64]
    score: npt.NDArray[np.float64]


class Spans(NamedTuple):
    """Nodes in preorder: their records, where the right child's begin, and their positives."""

    lo: npt.NDArray[np.int64]
    middle: npt.NDArray[np.int64]
    """-1 at a leaf"""
    hi: npt.NDArray[np.int64]
    positive: npt.NDArray[np.int64]
    stops: npt.NDArray[np.bool_]
    """Where the rule stops whatever the columns say"""
    min_leaf: int


@numba.njit(cache=True, nogil=True)
def examine_some(
    column: int,
    grouped: npt.NDArray[np.float64],
    target: npt.NDArray[np.uint8],
    spans: Spans,
    best: Best,
) -> None:
    """Let one column compete at some nodes, each on its own; call in contract order."""
    scratch = np.empty(grouped.size + 1, np.float64)
    for node in range(spans.lo.size):
        lo, hi = spans.lo[node], spans.hi[node]
        if not spans.stops[node]:
            found = candidate(grouped[lo:hi], target[lo:hi], spans.min_leaf, scratch)
            _compete(column, node, found, spans, best)


@numba.njit(cache=True, nogil=True)
def _compete(column: int, node: int, found: Candidate, spans: Spans, best: Best) -> None:
    if found.is_valid:
        n = spans.hi[node] - spans.lo[node]
        value = score(n, spans.positive[node], found.n_left, found.positive_left)
        if value > best.score[node]:
            best.column[node] = column
            best.threshold[node], best.score[node] = found.threshold, value


@numba.njit(cache=True, nogil=True)
def first_misrouted(
    nodes: Nodes,
    leaf_span: npt.NDArray[np.int64],
    column: int,
    minimum: npt.NDArray[np.float64],
    maximum: npt.NDArray[np.float64],
) -> tuple[int, int]:
    """The first (node, leaf) where a record of the leaf would not get past the node, or (-1, -1).

    Of the nodes that split this column, whose bounds are those observed in each leaf. A record
    reaches its leaf if and only if it takes the right side at each split above; and all
    records of a leaf do if the leaf's observed bounds do. So no record is routed at all.
    """
    for node in range(nodes.column.size):
        if nodes.column[node] != column:
            continue
        left, right = node + 1, nodes.right[node]
        for leaf in range(leaf_span[left, 0], leaf_span[left, 1]):
            if not maximum[leaf] <= nodes.threshold[node]:
                return node, leaf
        for leaf in range(leaf_span[right, 0], leaf_span[right, 1]):
            if not minimum[leaf] > nodes.threshold[node]:
                return node, leaf
    return -1, -1
