"""Grow the tree of a million records by the rules of spec §4, written from the text alone."""

import numpy as np
import numpy.typing as npt

from tools.kit.independent import Leaf, Split, Work

Rows = npt.NDArray[np.int64]


def grow(job: Work, rows: list[int], depth: int) -> Leaf | Split:
    """Give the tree that `independent.grow` gives."""
    columns = [np.array(column.values) for column in job.quasi]
    is_positive = np.array(job.target) == 1
    by_spread = job.rule == "importance-spread"

    def node(rows: Rows, depth: int) -> Leaf | Split:
        if rows.size < 2 * job.min_leaf or depth >= job.max_depth:
            return Leaf(rows.tolist())
        if not by_spread and int(is_positive[rows].sum()) in (0, rows.size):
            return Leaf(rows.tolist())
        best, split = -1.0, None
        for j in range(len(columns)):
            found = offer(rows, j)
            # Equal scores: the first in contract order.
            if found is not None and found[0] > best:
                best, split = found[0], (j, found[1])
        if split is None:
            return Leaf(rows.tolist())
        column, threshold = split
        goes_left = columns[column][rows] <= threshold
        left = node(rows[goes_left], depth + 1)
        return Split(column, threshold, left, node(rows[~goes_left], depth + 1))

    def offer(rows: Rows, column: int) -> tuple[float, float] | None:
        """Score and threshold of a column's candidate, if it has one."""
        values = columns[column][rows]
        middle = (rows.size + 1) // 2 - 1
        median = float(np.partition(values, middle)[middle])
        below = values[values < median]
        for threshold in [median, float(below.max())] if by_spread and below.size else [median]:
            goes_left = values <= threshold
            nl = int(goes_left.sum())
            if min(nl, rows.size - nl) < job.min_leaf:
                continue
            if by_spread:
                # At most 2^52, so that binary64 has every one of them exactly.
                return float(job.quasi[column].weight * int(np.ptp(values))), threshold
            l, r = (float(is_positive[rows][side].sum()) for side in (goes_left, ~goes_left))  # noqa: E741
            return l * l / float(nl) + r * r / float(rows.size - nl), threshold
        return None

    return node(np.array(rows), depth)
