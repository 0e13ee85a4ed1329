"""Grow the tree of a million records by the rules of spec §4, written from the text alone."""

import numpy as np
import numpy.typing as npt

from verix_anon.conform.independent import Leaf, Split, Work

Rows = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


def grow(job: Work, rows: list[int], depth: int) -> Leaf | Split:
    """Give the tree that `independent.grow` gives."""
    columns = [np.array(column.values) for column in job.quasi]
    return _Growing(job, columns, np.array(job.target) == 1).node(np.array(rows), depth)


class _Growing:
    def __init__(self, job: Work, columns: list[Values], positive: npt.NDArray[np.bool_]) -> None:
        self.job, self.columns, self.positive = job, columns, positive

    def node(self, rows: Rows, depth: int) -> Leaf | Split:
        if self.is_final(rows, depth):
            return Leaf(rows.tolist())
        best, split = -1.0, None
        for j in range(len(self.columns)):
            offer = self.offer(rows, j)
            # Equal scores: the first in contract order.
            if offer is not None and offer[0] > best:
                best, split = offer[0], (j, offer[1])
        if split is None:
            return Leaf(rows.tolist())
        column, threshold = split
        goes_left = self.columns[column][rows] <= threshold
        left = self.node(rows[goes_left], depth + 1)
        return Split(column, threshold, left, self.node(rows[~goes_left], depth + 1))

    def is_final(self, rows: Rows, depth: int) -> bool:
        if rows.size < 2 * self.job.min_leaf or depth >= self.job.max_depth:
            return True
        if self.job.rule == "importance-spread":
            return False
        return int(self.positive[rows].sum()) in (0, rows.size)

    def offer(self, rows: Rows, column: int) -> tuple[float, float] | None:
        """Score and threshold of a column's candidate, if it has one."""
        values = self.columns[column][rows]
        middle = (rows.size + 1) // 2 - 1
        median = float(np.partition(values, middle)[middle])
        thresholds = [median]
        if self.job.rule == "importance-spread":
            below = values[values < median]
            thresholds += [float(below.max())] if below.size else []
        for threshold in thresholds:
            goes_left = values <= threshold
            nl = int(goes_left.sum())
            if min(nl, rows.size - nl) >= self.job.min_leaf:
                return self.score(rows, column, goes_left), threshold
        return None

    def score(self, rows: Rows, column: int, goes_left: npt.NDArray[np.bool_]) -> float:
        if self.job.rule == "importance-spread":
            values = self.columns[column][rows]
            # At most 2^52, so that binary64 has every one of them exactly.
            return float(self.job.quasi[column].weight * int(values.max() - values.min()))
        positive = self.positive[rows]
        l, nl = float((positive & goes_left).sum()), float(goes_left.sum())  # noqa: E741
        r, nr = float(positive.sum()) - l, float(rows.size) - nl
        return l * l / nl + r * r / nr
