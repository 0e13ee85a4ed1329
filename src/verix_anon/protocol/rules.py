"""The rule `variance-reduction`: slow, obvious and normative (spec §4, §5).

Every engine must give this tree, bit for bit; the property tests hold them to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "Leaf",
    "Node",
    "Split",
    "best_split",
    "bounds",
    "flatten",
    "grow",
    "lower_median",
    "score",
]


@dataclass(frozen=True, slots=True)
class Split:
    """One candidate: rows with a value <= threshold in that column go left."""

    column: int
    threshold: float
    score: float


@dataclass(frozen=True, slots=True)
class Leaf:
    """A node that was not split, with its rows in ascending order."""

    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A node that was split."""

    column: int
    threshold: float
    left: "Node | Leaf"
    right: "Node | Leaf"


Columns = Sequence[Sequence[float]]


def lower_median(values: Sequence[float]) -> float:
    """The value at position ceil(n/2), counted from 1, of the sorted values."""
    return sorted(values)[(len(values) + 1) // 2 - 1]


def score(n_left: int, positive_left: int, n_right: int, positive_right: int) -> float:
    """What orders candidates: l*l/nl + r*r/nr in binary64, evaluated in this order."""
    nl, l = float(n_left), float(positive_left)  # noqa: E741
    nr, r = float(n_right), float(positive_right)
    return l * l / nl + r * r / nr


def best_split(
    columns: Columns, target: Sequence[int], rows: Sequence[int], *, min_leaf: int
) -> Split | None:
    """The valid candidate with the greatest score, the first among equals, or None."""
    best: Split | None = None
    for index, column in enumerate(columns):
        threshold = lower_median([column[row] for row in rows])
        left = [row for row in rows if column[row] <= threshold]
        right = [row for row in rows if column[row] > threshold]
        if len(left) < min_leaf or len(right) < min_leaf:
            continue
        value = score(
            len(left),
            sum(target[row] for row in left),
            len(right),
            sum(target[row] for row in right),
        )
        if best is None or value > best.score:
            best = Split(index, threshold, value)
    return best


def grow(
    columns: Columns,
    target: Sequence[int],
    *,
    min_leaf: int,
    max_depth: int,
    rows: Sequence[int] | None = None,
    depth: int = 0,
) -> Node | Leaf:
    """The tree of these rows (all, if none are named); depth is at most 50, so it recurses."""
    rows = range(len(target)) if rows is None else rows
    positive = sum(target[row] for row in rows)
    leaf = Leaf(tuple(rows))
    if len(rows) < 2 * min_leaf or positive in (0, len(rows)) or depth >= max_depth:
        return leaf
    split = best_split(columns, target, rows, min_leaf=min_leaf)
    if split is None:
        return leaf
    column = columns[split.column]

    def child(chosen: Sequence[int]) -> Node | Leaf:
        return grow(
            columns,
            target,
            min_leaf=min_leaf,
            max_depth=max_depth,
            rows=chosen,
            depth=depth + 1,
        )

    return Node(
        split.column,
        split.threshold,
        child([row for row in rows if column[row] <= split.threshold]),
        child([row for row in rows if column[row] > split.threshold]),
    )


def bounds(columns: Columns, rows: Sequence[int]) -> list[tuple[float, float]]:
    """The observed [min, max] of these rows in every column."""
    picked = [[column[row] for row in rows] for column in columns]
    return [(min(values), max(values)) for values in picked]


FlatNode = tuple[int, float, int, int, int]
"""(column, threshold, left, right, leaf), as in a Tree."""


def flatten(top: Node | Leaf) -> tuple[list[FlatNode], list[tuple[int, ...]]]:
    """The nodes in preorder, numbered as in a delivery, and the rows of each leaf."""
    nodes: list[FlatNode] = []
    leaves: list[tuple[int, ...]] = []

    def visit(node: Node | Leaf) -> None:
        number = len(nodes)
        if isinstance(node, Leaf):
            nodes.append((-1, 0.0, -1, -1, len(leaves)))
            leaves.append(node.rows)
            return
        nodes.append((node.column, node.threshold, number + 1, -1, -1))
        visit(node.left)
        nodes[number] = (node.column, node.threshold, number + 1, len(nodes), -1)
        visit(node.right)

    visit(top)
    return nodes, leaves
