"""Compiled loops that check a tree against the rule: the fast twin of `rules.best_split`.

Records are first laid out leaf by leaf, so that those of every node are consecutive: leaves
are numbered from left to right, and a node's leaves are consecutive.
"""

from typing import NamedTuple

import numba
import numpy as np

from verix_anon.arrays import Bytes, Flags, Floats, Ids, Ints, Numbers
from verix_anon.kernels.medians import lower_median
from verix_anon.kernels.trees import gather

# Compiled in (`make stamps`): medians 72a09f4b, trees 2492ddf6.
__all__ = [
    "Best",
    "Candidate",
    "Spans",
    "best_split",
    "candidate",
    "divide",
    "examine_some",
    "score",
]


class Candidate(NamedTuple):
    """What the rule says of one column at one node; `threshold` means nothing if not valid."""

    is_valid: bool
    threshold: float
    n_left: int
    positive_left: int


@numba.njit(cache=True, nogil=True)
def candidate(
    values: Floats,
    target: Bytes,
    min_leaf: int,
    scratch: Floats,
) -> Candidate:
    """The rule's candidate of one column at a node with these values and labels."""
    n = values.size
    threshold = lower_median(values, scratch)
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
    values: Floats,
    rows: Numbers,
    target: Bytes,
    columns: tuple[int, int],
    min_leaf: int,
    room: Floats,
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
def divide(values: Floats, rows: Numbers, threshold: float) -> tuple[Numbers, Numbers]:
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

    column: Ids
    """-1 where no candidate is valid"""
    threshold: Floats
    score: Floats


class Spans(NamedTuple):
    """Nodes in preorder: their records, where the right child's begin, and their positives."""

    lo: Ints
    middle: Ints
    """-1 at a leaf"""
    hi: Ints
    positive: Ints
    stops: Flags
    """Where the rule stops whatever the columns say"""
    min_leaf: int


@numba.njit(cache=True, nogil=True)
def examine_some(
    column: int,
    grouped: Floats,
    target: Bytes,
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
