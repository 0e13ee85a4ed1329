"""Compiled loops that find the rule's split of one node, whose records lie anywhere in the table.

`prepare` follows the paths of its witnesses with them. `verify` does not load this module: it lays
the records of each node side by side (see `trees`) and examines all nodes together.
"""

import numba
import numpy as np

from verix_anon.arrays import Bytes, Floats, Ints, Numbers
from verix_anon.kernels.offers import offer
from verix_anon.kernels.splits import Candidate, candidate, score

# Compiled in (`make stamps`): offers 2f9db238, splits 85dd4800.


@numba.njit(cache=True, nogil=True)
def best_split(
    values: Floats,
    rows: Numbers,
    target: Bytes,
    columns: tuple[int, int],
    min_leaf: int,
    buffer: Floats,
) -> tuple[int, Candidate, float]:
    """`rules.best_split` of these rows among some columns: the column, the candidate, the score.

    `target` holds all labels. The buffer is (2, n + 1) or more. Column -1: none is valid.
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
        for i in range(n):
            buffer[0, i] = values[column, rows[i]]
        found = candidate(buffer[0, :n], label, min_leaf, buffer[1])
        if found.is_valid:
            value = score(n, positive, found.n_left, found.positive_left)
            # Strictly greater, so the first in contract order wins among equals.
            if value > best_score:
                best, chosen, best_score = column, found, value
    return best, chosen, best_score


@numba.njit(cache=True, nogil=True)
def best_offer(
    values: Floats,
    rows: Numbers,
    weights: Ints,
    columns: tuple[int, int],
    min_leaf: int,
    buffer: Floats,
) -> tuple[int, Candidate, float]:
    """`rules.best_split` of these rows among some columns: the column, the candidate, the score.

    The buffer is (2, n + 1) or more. Column -1 means that none offers a split.
    """
    n = rows.size
    score = np.zeros(columns[1])
    for column in range(columns[0], columns[1]):
        low, high = np.inf, -np.inf
        for i in range(n):
            value = values[column, rows[i]]
            low, high = min(low, value), max(high, value)
        score[column] = weights[column] * (high - low)
    while True:
        # The first among equals.
        best = int(np.argmax(score))
        if score[best] <= 0:
            return -1, Candidate(False, 0.0, 0, 0), -1.0
        for i in range(n):
            buffer[0, i] = values[best, rows[i]]
        found = offer(buffer[0, :n], min_leaf, buffer[1])
        if not np.isnan(found):
            return best, Candidate(True, found, 0, 0), float(score[best])
        score[best] = 0.0
