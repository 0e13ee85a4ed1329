"""The top of the tree, level by level: all open nodes and all columns of a level at once.

What a pass over the records finds is given to this module, and it says what to look for next and,
in the end, how the node is split: by the scores and ties of `rules.py`, from exact counts. The
tree grown so far and what is known of its nodes are all there is to keep between passes, so that
no record ever carries a state. Nothing here knows Spark.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from verix_anon.arrays import Ids, Ints
from verix_anon.errors import ProviderError
from verix_anon.kernels.histograms import Windows
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Contract, Rule
from verix_anon.provider.spark.keys import reach, value_of
from verix_anon.provider.spark.medians import BUCKET_BYTES, MIN_BUCKETS, NONE, Cells, Summary
from verix_anon.provider.stitching import Split

__all__ = ["Limits", "Part", "Pass", "Routes", "Top", "grow_top"]


class Limits(NamedTuple):
    """What a task can hold: none of it changes the tree."""

    task_rows: int
    """A node of more records is split by passes, and not within one task"""
    leaf_rows: int
    """The most records of a node that is not split: one task hashes them"""
    histogram_bytes: int
    """What the histograms of one pass may take in a task"""


class Routes(NamedTuple):
    """A tree in keys: where it splits, and the right child, whose sibling stands before it."""

    column: Ids
    threshold: Ints
    right: Ids


class Pass(NamedTuple):
    """What to count in one pass over all records."""

    routes: Routes
    number: Ids
    """For each node its number among those counted, or -1"""
    windows: Windows
    ranks: Ints
    """For each node counted and each column, the rank of the record looked for"""
    n_buckets: int


Run = Callable[[Pass], tuple[Ints, Summary]]
"""A pass: for each cell with records in its window, its number (by node, then column) and what was
found of it, in arrays."""


class Part(NamedTuple):
    """What one task finishes: a subtree, or a leaf."""

    n_rows: int
    depth: int
    is_leaf: bool


class _Node(NamedTuple):
    """A node of the top: its records, its positives (-1: not known yet), depth and reach."""

    n_rows: int
    positive: int
    depth: int
    low: Ints
    high: Ints


class _Chosen(NamedTuple):
    """A split in keys, and what goes left."""

    column: int
    threshold: int
    n_left: int
    positive_left: int


class Top:
    """A tree that grows downwards; the nodes are numbered as they come."""

    def __init__(self, contract: Contract, n_rows: int, limits: Limits) -> None:
        self.contract, self.limits = contract, limits
        low, high = np.array([reach(column) for column in contract.quasi], np.int64).T
        self.nodes = [_Node(n_rows, -1, 0, low, high)]
        self.column, self.threshold, self.right = [-1], [0], [-1]
        self.is_leaf = [self._is_done(self.nodes[0])]

    def _is_done(self, node: _Node) -> bool:
        """Whether a node is a leaf whatever its columns say."""
        contract = self.contract
        return (
            node.n_rows < 2 * contract.min_leaf
            or node.depth >= contract.max_depth
            or (contract.rule is Rule.VARIANCE_REDUCTION and node.positive in (0, node.n_rows))
        )

    def open_nodes(self) -> list[int]:
        """The nodes still to be split here: all of the last level."""
        return [
            number
            for number, node in enumerate(self.nodes)
            if self.right[number] < 0
            and not self.is_leaf[number]
            and node.n_rows > self.limits.task_rows
        ]

    def split(self, number: int, chosen: _Chosen | None) -> None:
        """Split a node, or make it a leaf."""
        node = self.nodes[number]
        if chosen is None:
            self.is_leaf[number] = True
            return
        column, key = chosen.column, chosen.threshold
        left_high, right_low = node.high.copy(), node.low.copy()
        left_high[column], right_low[column] = key, key + 1
        n_left, positive = chosen.n_left, chosen.positive_left
        self.column[number], self.threshold[number] = column, key
        self.right[number] = len(self.nodes) + 1
        rest = (node.n_rows - n_left, node.positive - positive)
        for child in (
            _Node(n_left, positive, node.depth + 1, node.low, left_high),
            _Node(*rest, node.depth + 1, right_low, node.high),
        ):
            self.nodes.append(child)
            self.is_leaf.append(self._is_done(child))
            self.column.append(-1)
            self.threshold.append(0)
            self.right.append(-1)

    def routes(self) -> Routes:
        """The tree as it is now."""
        return Routes(
            np.array(self.column, np.int32),
            np.array(self.threshold, np.int64),
            np.array(self.right, np.int32),
        )

    def preorder(self) -> Iterator[tuple[int, Split | Part]]:
        """Every node's number here, and its split or what is left of it to a task."""
        waiting = [0]
        while waiting:
            number = waiting.pop()
            column = self.column[number]
            if column < 0:
                node = self.nodes[number]
                yield number, Part(node.n_rows, node.depth, self.is_leaf[number])
                continue
            threshold = value_of(self.contract.quasi[column], self.threshold[number])
            yield number, Split(column, threshold)
            waiting += [self.right[number], self.right[number] - 1]

    def check_fits(self) -> None:
        """Raise ProviderError if a node can neither be split nor be held by a task."""
        most = max(self.limits.task_rows, self.limits.leaf_rows)
        for number, node in enumerate(self.nodes):
            if self.is_leaf[number] and node.n_rows > most:
                raise ProviderError(
                    f"{node.n_rows:,} records lie in one leaf that no rule splits, and a task holds"
                    f" {most:,}: give the executors more memory, or a task more rows (--task-rows)"
                )


def grow_top(top: Top, run: Run) -> Iterator[int]:
    """Split all nodes that are too large for a task; before each level, about how many are left."""
    n_quasi = len(top.contract.quasi)
    at_a_time = max(1, top.limits.histogram_bytes // (BUCKET_BYTES * MIN_BUCKETS * n_quasi))
    while open_nodes := top.open_nodes():
        largest = max(top.nodes[number].n_rows for number in open_nodes)
        # A level halves a node, more or less.
        yield math.ceil(math.log2(largest / top.limits.task_rows))
        routes = top.routes()
        for first in range(0, len(open_nodes), at_a_time):
            _split_some(top, open_nodes[first : first + at_a_time], routes, run)
    top.check_fits()


def _split_some(top: Top, numbers: list[int], routes: Routes, run: Run) -> None:
    """Find the medians of some open nodes, and split them."""
    nodes = [top.nodes[number] for number in numbers]
    counted = np.full(len(routes.column), -1, np.int32)
    counted[numbers] = np.arange(len(numbers))
    cells = Cells(
        np.array([node.n_rows for node in nodes]),
        np.array([node.low for node in nodes]),
        np.array([node.high for node in nodes]),
        top.limits.histogram_bytes,
    )
    while cells.is_open.any():
        windows, n_buckets = cells.windows()
        which, found = run(Pass(routes, counted, windows, cells.ranks(), n_buckets))
        cells.learn(np.divmod(which, len(top.contract.quasi)), found)
    for i, number in enumerate(numbers):
        low, high = cells.extent[0][i], cells.extent[1][i]
        positive = int(cells.n_positive[i])
        top.nodes[number] = top.nodes[number]._replace(positive=positive, low=low, high=high)
        top.split(number, _choose(top.contract, top.nodes[number], cells, i))


def _choose(contract: Contract, node: _Node, cells: Cells, i: int) -> _Chosen | None:
    """The split that the contract's rule gives a node, the i-th of the cells."""
    by_labels = contract.rule is Rule.VARIANCE_REDUCTION
    if by_labels and node.positive in (0, node.n_rows):
        return None
    best, best_score = None, -1.0
    for column in range(len(contract.quasi)):
        offer = _offer(contract, node.n_rows, cells, (i, column))
        if offer is None:
            continue
        if by_labels:
            n_right, positive_right = (
                node.n_rows - offer.n_left,
                node.positive - offer.positive_left,
            )
            score = rules.score(offer.n_left, offer.positive_left, n_right, positive_right)
        else:
            span = int(node.high[column]) - int(node.low[column])
            score = (contract.quasi[column].weight or 0) * span
        # Strictly greater: among equals the first in contract order stays.
        if score > best_score:
            best, best_score = offer, score
    return best


def _offer(contract: Contract, n: int, cells: Cells, at: tuple[int, int]) -> _Chosen | None:
    """Where a column would be split: at the lower median or, by spread, at what is below it."""
    n_left, n_below = int(cells.n_left[at]), int(cells.n_below[at])
    if contract.min_leaf <= n_left <= n - contract.min_leaf:
        return _Chosen(at[1], int(cells.median[at]), n_left, int(cells.positive_left[at]))
    is_spread = contract.rule is Rule.IMPORTANCE_SPREAD
    if is_spread and contract.min_leaf <= n_below <= n - contract.min_leaf:
        below = int(cells.below[at])
        assert below != NONE
        return _Chosen(at[1], below, n_below, 0)
    return None
