"""The two rules as slow and obvious code. This module is normative (spec §4, §5).

Every engine must grow the same trees, bit for bit. The property tests check that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from verix_anon.protocol.contract import Contract, Rule

Columns = Sequence[Sequence[float]]
Rows = Sequence[int]


@dataclass(frozen=True, slots=True)
class Split:
    """One candidate: rows whose value in the column is <= threshold go left."""

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


def lower_median(values: Sequence[float]) -> float:
    """Return the value at position ceil(n/2), counted from 1, of the sorted values."""
    return sorted(values)[(len(values) + 1) // 2 - 1]


def score(n_left: int, positive_left: int, n_right: int, positive_right: int) -> float:
    """Score a candidate: l*l/nl + r*r/nr in binary64, evaluated in this order."""
    nl, l = float(n_left), float(positive_left)  # noqa: E741
    nr, r = float(n_right), float(positive_right)
    return l * l / nl + r * r / nr


class Criterion(Protocol):
    """Which column a node is split at, and which nodes are never split."""

    def is_done(self, rows: Rows) -> bool:
        """Whether these rows are not split, whatever the columns hold."""
        ...

    def candidate(self, columns: Columns, index: int, rows: Rows, min_leaf: int) -> Split | None:
        """Return the split that one column offers, or None if it offers none."""
        ...


@dataclass(frozen=True, slots=True)
class VarianceReduction:
    """The paper's rule: the split at a lower median that tells most about the target."""

    target: Sequence[int]

    def is_done(self, rows: Rows) -> bool:
        """Whether all labels are the same: then no split tells anything about them."""
        return sum(self.target[row] for row in rows) in (0, len(rows))

    def candidate(self, columns: Columns, index: int, rows: Rows, min_leaf: int) -> Split | None:
        """Return the split at the lower median, or None if a side is too small."""
        values = columns[index]
        threshold = lower_median([values[row] for row in rows])
        left = [row for row in rows if values[row] <= threshold]
        right = [row for row in rows if values[row] > threshold]
        if len(left) < min_leaf or len(right) < min_leaf:
            return None
        value = score(
            len(left),
            sum(self.target[row] for row in left),
            len(right),
            sum(self.target[row] for row in right),
        )
        return Split(index, threshold, value)


@dataclass(frozen=True, slots=True)
class ImportanceSpread:
    """Split the column whose positions spread the widest, multiplied by its weight."""

    weights: Sequence[int]

    def is_done(self, rows: Rows) -> bool:
        """Never: any rows may be split if there are enough of them."""
        return False

    def candidate(self, columns: Columns, index: int, rows: Rows, min_leaf: int) -> Split | None:
        """Return the split at the lower median, or at the largest value below it, or None."""
        values = [columns[index][row] for row in rows]
        chosen = threshold(values, min_leaf)
        if chosen is None:
            return None
        return Split(index, chosen, self.weights[index] * int(max(values) - min(values)))


def threshold(values: Sequence[float], min_leaf: int) -> float | None:
    """Return where `importance-spread` splits these values, or None if it does not."""

    def is_valid(candidate: float) -> bool:
        n_left = sum(value <= candidate for value in values)
        return min_leaf <= n_left <= len(values) - min_leaf

    median = lower_median(values)
    if is_valid(median):
        return median
    below = max((value for value in values if value < median), default=None)
    return below if below is not None and is_valid(below) else None


def criterion(contract: Contract, target: Sequence[int]) -> Criterion:
    """Return the criterion of the contract's rule. `target` holds the labels of all records."""
    if contract.rule is Rule.VARIANCE_REDUCTION:
        return VarianceReduction(target)
    return ImportanceSpread([column.weight or 0 for column in contract.quasi])


def best_split(columns: Columns, rule: Criterion, rows: Rows, *, min_leaf: int) -> Split | None:
    """Return the candidate with the greatest score, the first among equals, or None."""
    best: Split | None = None
    for index in range(len(columns)):
        found = rule.candidate(columns, index, rows, min_leaf)
        if found is not None and (best is None or found.score > best.score):
            best = found
    return best


def grow(
    columns: Columns,
    rule: Criterion,
    *,
    min_leaf: int,
    max_depth: int,
    rows: Rows | None = None,
    depth: int = 0,
) -> Node | Leaf:
    """Grow the tree of these rows, or of all rows. It recurses at most 50 deep."""
    rows = range(len(columns[0])) if rows is None else rows
    leaf = Leaf(tuple(rows))
    if len(rows) < 2 * min_leaf or depth >= max_depth or rule.is_done(rows):
        return leaf
    split = best_split(columns, rule, rows, min_leaf=min_leaf)
    if split is None:
        return leaf
    column = columns[split.column]

    def child(chosen: Rows) -> Node | Leaf:
        return grow(
            columns, rule, min_leaf=min_leaf, max_depth=max_depth, rows=chosen, depth=depth + 1
        )

    return Node(
        split.column,
        split.threshold,
        child([row for row in rows if column[row] <= split.threshold]),
        child([row for row in rows if column[row] > split.threshold]),
    )


def bounds(columns: Columns, rows: Rows) -> list[tuple[float, float]]:
    """Return the observed [min, max] of these rows in every column."""
    picked = [[column[row] for row in rows] for column in columns]
    return [(min(values), max(values)) for values in picked]


FlatNode = tuple[int, float, int, int, int]
"""(column, threshold, left, right, leaf), as in a Tree."""


def flatten(top: Node | Leaf) -> tuple[list[FlatNode], list[tuple[int, ...]]]:
    """Return the nodes in preorder, numbered as in a delivery, and the rows of each leaf."""
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
