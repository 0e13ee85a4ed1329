"""The top of the tree, level by level: all open nodes and all columns of a level at once.

A pass counts the records of each cell, which is a column of a node, in the buckets of the cell's
window. From all counts of a cell it follows in which bucket the lower median lies, and what lies
below. Each bucket keeps its least and greatest key: the next window is no wider than what is in
it, and a bucket with one key is an answer.

From these exact counts a node is split by the scores and ties of `rules.py`. The tree grown so far
and what is known of its nodes are all there is to keep between passes, so no record ever carries a
state. Nothing here knows Spark.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from verix_anon.arrays import Bytes, Flags, Ids, Ints
from verix_anon.errors import ProviderError
from verix_anon.kernels import histograms
from verix_anon.kernels.histograms import COUNT, FIELDS, GREATEST, LEAST, POSITIVE, Windows
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Contract, Rule
from verix_anon.provider.engine import TopSplit
from verix_anon.provider.spark.submission_reader import reach, value_of

BUCKET_BYTES = 8 * FIELDS
MIN_BUCKETS, MAX_BUCKETS = 64, 1 << 16
NONE = np.iinfo(np.int64).min
"""The key of no value: positions are not negative, and this one as a number would not be finite."""


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


class Summary(NamedTuple):
    """What one pass has found, of each cell."""

    size: Ints
    """Records in the median's bucket"""
    positive: Ints
    least: Ints
    greatest: Ints
    """The bounds of the bucket's keys"""
    n_below: Ints
    """Records of the window in lower buckets"""
    positive_below: Ints
    below: Ints
    """The greatest key in lower buckets, NONE if there is no record"""
    n_positive: Ints
    """Positives of the window"""
    low: Ints
    high: Ints
    """The bounds of all keys of the window"""


Run = Callable[[Pass], tuple[Ints, Summary]]
"""A pass: for each cell with records in its window, its number (by node, then column) and what was
found of it, in arrays."""
Counted = tuple[int, bytes]
"""A cell's number, by node and then column, and what was counted of it."""


class Counter:
    """The histograms of one task."""

    def __init__(self, wanted: Pass) -> None:
        self.wanted = wanted
        self.buckets = np.zeros((*wanted.ranks.shape, wanted.n_buckets, FIELDS), np.int64)

    def add(self, keys: Ints, positive: Bytes) -> None:
        """Count some records: their keys, (n_records, n_columns), and labels."""
        node = np.empty(len(keys), np.int32)
        histograms.route(keys, *self.wanted.routes, node)
        number = self.wanted.number[node]
        histograms.count(keys, number, positive, self.wanted.windows, self.buckets)

    def result(self) -> Iterator[Counted]:
        """The buckets in use of every cell with any: their numbers and their fields."""
        n_columns = self.buckets.shape[1]
        for (node, column), is_used in np.ndenumerate(self.buckets[..., COUNT].any(axis=2)):
            if is_used:
                cell = self.buckets[node, column]
                at = np.flatnonzero(cell[:, COUNT])
                yield node * n_columns + column, np.column_stack([at, cell[at]]).tobytes()


def added(counts: Iterable[Counted], n_buckets: int) -> dict[int, Ints]:
    """The histogram of each cell, from what tasks have counted, in any order."""
    cells: dict[int, Ints] = {}
    for number, data in counts:
        at, *fields = np.frombuffer(data, np.int64).reshape(-1, 1 + FIELDS).T
        cell = cells.get(number)
        if cell is None:
            cell = cells[number] = np.zeros((n_buckets, FIELDS), np.int64)
        is_new = cell[at, COUNT] == 0
        least = np.minimum(cell[at, LEAST], fields[LEAST])
        cell[at, LEAST] = np.where(is_new, fields[LEAST], least)
        most = np.maximum(cell[at, GREATEST], fields[GREATEST])
        cell[at, GREATEST] = np.where(is_new, fields[GREATEST], most)
        cell[at, COUNT] += fields[COUNT]
        cell[at, POSITIVE] += fields[POSITIVE]
    return cells


def summaries(cells: dict[int, Ints], ranks: Ints) -> Iterator[tuple[int, Ints]]:
    """Where the record looked for lies, in each cell: a Summary's numbers."""
    for number, cell in cells.items():
        yield number, summarize(cell, int(ranks.flat[number]))


def summarize(buckets: Ints, rank: int) -> Ints:
    """A Summary's numbers of one cell, (n_buckets, FIELDS), for the record of a rank from 1."""
    used = buckets[buckets[:, COUNT] > 0]
    at = int(np.searchsorted(np.cumsum(used[:, COUNT]), rank))
    found, lower = used[at], used[:at]
    return np.array(
        [
            found[COUNT],
            found[POSITIVE],
            found[LEAST],
            found[GREATEST],
            lower[:, COUNT].sum(),
            lower[:, POSITIVE].sum(),
            lower[-1, GREATEST] if at else NONE,
            used[:, POSITIVE].sum(),
            used[0, LEAST],
            used[-1, GREATEST],
        ],
        np.int64,
    )


class Buckets:
    """The cells of some open nodes: what is known of their medians, and what to count next."""

    def __init__(self, n_rows: Ints, low: Ints, high: Ints, budget: int) -> None:
        """Nodes of so many records each, whose keys lie from low to high, (n_nodes, n_columns)."""
        self.budget = budget
        self.low, self.high = low.copy(), high.copy()
        self.extent = (low.copy(), high.copy())
        """The bounds of each cell's keys: as given, and after a pass as they are."""
        self.median = np.full(low.shape, NONE)
        self.below = np.full(low.shape, NONE)
        """The greatest key below the median, NONE if there is none."""
        self.n_left, self.positive_left = np.zeros((2, *low.shape), np.int64)
        """Records up to the median, and positives among them."""
        self.n_below = np.zeros(low.shape, np.int64)
        self.n_positive = np.zeros(len(low), np.int64)
        self._rank = np.broadcast_to(((n_rows + 1) // 2)[:, None], low.shape).copy()
        self._positive_below = np.zeros(low.shape, np.int64)
        self.is_open = np.ones(low.shape, np.bool_)
        """Whether the median is still to be found."""
        self.is_first = True

    def windows(self) -> tuple[Windows, int]:
        """What to count, and in how many buckets."""
        wanted = n_buckets(self.low.size, self.budget)
        span = self.high.astype(np.uint64) - self.low.astype(np.uint64)
        lengths = [int(distance).bit_length() for distance in span.flat]
        bits: Ints = np.array(lengths, np.int64).reshape(span.shape)
        # How far a key's distance from its window's start is moved to be its bucket's number.
        shift = np.maximum(bits - (wanted.bit_length() - 1), 0)
        return Windows(self.low, self.high, shift), wanted

    def ranks(self) -> Ints:
        """The rank of each median within its window, from 1."""
        return self._rank - self.n_below

    def learn(self, at: tuple[Ints, Ints], found: Summary) -> None:
        """Take in what a pass has found of all open cells, given by node and column."""
        if self.is_first:
            self.extent[0][at], self.extent[1][at] = found.low, found.high
            self.n_positive[at[0]] = found.n_positive
            self.is_first = False
        self.n_below[at] += found.n_below
        self._positive_below[at] += found.positive_below
        self.below[at] = np.where(found.below != NONE, found.below, self.below[at])
        self.low[at], self.high[at] = found.least, found.greatest
        is_found: Flags = found.least == found.greatest
        done = (at[0][is_found], at[1][is_found])
        self.median[done] = found.least[is_found]
        self.n_left[done] = self.n_below[done] + found.size[is_found]
        self.positive_left[done] = self._positive_below[done] + found.positive[is_found]
        self.is_open[done] = False
        # An empty window: nothing of it is counted any more.
        self.low[done], self.high[done] = 1, 0


def n_buckets(n_cells: int, budget: int) -> int:
    """How many buckets each of so many cells gets, a power of two, within so many bytes."""
    most = budget // (BUCKET_BYTES * n_cells)
    return int(min(MAX_BUCKETS, max(MIN_BUCKETS, 1 << (most.bit_length() - 1 if most else 0))))


class ClusterLimits(NamedTuple):
    """What a task can hold: none of it changes the tree."""

    task_rows: int
    """A node of more records is split by passes, and not within one task"""
    leaf_rows: int
    """The most records of a node that is not split: one task hashes them"""
    histogram_bytes: int
    """What the histograms of one pass may take in a task"""


class TreePart(NamedTuple):
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

    def __init__(self, contract: Contract, n_rows: int, limits: ClusterLimits) -> None:
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

    def preorder(self) -> Iterator[tuple[int, TopSplit | TreePart]]:
        """Every node's number here, and its split or what is left of it to a task."""
        waiting = [0]
        while waiting:
            number = waiting.pop()
            column = self.column[number]
            if column < 0:
                node = self.nodes[number]
                yield number, TreePart(node.n_rows, node.depth, self.is_leaf[number])
                continue
            threshold = value_of(self.contract.quasi[column], self.threshold[number])
            yield number, TopSplit(column, threshold)
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
    cells = Buckets(
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


def _choose(contract: Contract, node: _Node, cells: Buckets, i: int) -> _Chosen | None:
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
            left = offer.n_left, offer.positive_left
            score = rules.score(*left, node.n_rows - left[0], node.positive - left[1])
        else:
            span = int(node.high[column]) - int(node.low[column])
            score = (contract.quasi[column].weight or 0) * span
        # Strictly greater: among equals the first in contract order stays.
        if score > best_score:
            best, best_score = offer, score
    return best


def _offer(contract: Contract, n: int, cells: Buckets, at: tuple[int, int]) -> _Chosen | None:
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
