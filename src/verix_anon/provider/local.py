"""The engine on this machine: presort, split the top across columns, grow subtrees in threads.

The same tree comes out for any number of threads: scores are computed from integer counts,
candidates are compared in contract order, and subtrees do not touch each other's records.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from verix_anon import __version__
from verix_anon.arrays import Ids, Ints, Numbers
from verix_anon.errors import ProviderError
from verix_anon.files.folder_writer import write_delivery
from verix_anon.files.submissions import read_submission
from verix_anon.kernels import growing, spreading
from verix_anon.kernels.growing import Grown
from verix_anon.machine import check_memory, shares
from verix_anon.protocol.contract import Column, Contract, Kind, Role, Rule
from verix_anon.protocol.messages import Delivery, Header, Submission
from verix_anon.protocol.records import Records
from verix_anon.provider import engine
from verix_anon.provider.engine import EngineSettings, Growth, TopSplit, stitch

# A node this small is grown in one go: the sides of its records take 64 KiB.
SMALL_NODE = 524_288
# A larger node is split until its parts are this many times smaller. Then the records of each part
# are numbered from 0 again, so that several levels of the tree share the cost of one renumbering.
SHRINK = 16
# Threads do not share out the columns of a node smaller than this: handing them round costs
# about 0.1 ms, and subtrees keep all threads busy better.
SMALL_TASK = 65_536
TASKS_PER_THREAD = 8
"""Into how many subtrees the top is split: some take longer than others."""
BATCH_ROWS = 16_384
"""How many records are laid side by side at a time: few enough for the cache of a core."""


class LocalProvider(EngineSettings):
    """The honest engine on this machine: a Provider and a FolderProvider.

    Examples:
        >>> provider = verix_anon.LocalProvider(threads=2)
        >>> delivery = provider.anonymize("job/submission")
    """

    def anonymize(self, submission: Submission | str | os.PathLike[str]) -> Delivery:
        """Anonymize the submission, or the one in a folder, as its contract says."""
        if not isinstance(submission, Submission):
            submission = read_submission(submission)
        records, contract = submission.records, submission.contract
        n_quasi, n_rows = records.values.shape
        check_memory(
            needed_bytes(n_rows, n_quasi, contract.min_leaf, threads=self.threads),
            f"anonymizing {n_rows:,} records with {n_quasi} quasi-identifiers",
            ProviderError,
        )
        return engine.anonymize(
            submission, growth_of, self, engine="verix-local", version=__version__
        )

    def anonymize_folder(
        self,
        submission: str | os.PathLike[str],
        out: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        finish: Callable[[Path], object] | None = None,
    ) -> Header:
        """Anonymize the submission in a folder; the delivery appears at `out` when it is complete.

        `finish` is called with the folder before it takes its name, such as to put a receipt there.
        """
        self.progress("read", 0, 1)
        loaded = read_submission(submission)
        self.progress("read", 1, 1)
        # So that loading kernels, or compiling them, is not booked on the work.
        self.progress("load", 0, 1)
        warm_up(loaded.contract.rule)
        self.progress("load", 1, 1)
        delivery = self.anonymize(loaded)
        self.progress("write", 0, 1)
        write_delivery(delivery, out, overwrite=overwrite, finish=finish)
        self.progress("write", 1, 1)
        return delivery.header


def growth_of(submission: Submission, settings: EngineSettings | None = None) -> Growth:
    """Return what the contract's rule makes of the records."""
    settings = settings or EngineSettings()
    by_labels = submission.contract.rule is Rule.VARIANCE_REDUCTION
    return grow(submission, settings) if by_labels else _grow_spread(submission, settings)


def needed_bytes(n_rows: int, n_quasi: int, min_leaf: int, *, threads: int) -> int:
    """About how much memory anonymizing takes at its peak, beyond the submission itself."""
    # Orders, those of the subtrees in hand, sort buffers and three numbers a record while growing;
    # then the delivery's records, and their trackers twice more to be hashed by leaf. Leaves are
    # mostly not quite as small as they may be; each costs its bounds and some Python objects.
    n_leaves = 0.6 * n_rows / min_leaf
    n_local = min(n_rows, threads * max(SMALL_TASK, n_rows // (SHRINK * threads)))
    growing = 4 * n_quasi * (n_rows + n_local) + n_rows * (16 * threads + 12)
    growing += round(n_leaves * 32 * n_quasi)
    hashing = n_rows * (45 + 88) + n_leaves * (16 * n_quasi + 500)
    return round(max(growing, hashing))


def warm_up(*rules: Rule) -> None:
    """Load kernels by anonymizing a tiny table by each of these rules, or by all.

    Compiles them on the first run ever.
    """
    for rule in rules or Rule:
        is_spread = rule is Rule.IMPORTANCE_SPREAD
        column = Column(name="x", kind=Kind.RANK, size=16, weight=1 if is_spread else None)
        target = Column(name="y", role=Role.TARGET, kind=Kind.RANK, size=2)
        contract = Contract(
            submission_id="0" * 32,
            k=2,
            min_leaf=2,
            rule=rule,
            columns=(column,) if is_spread else (column, target),
        )
        records = Records(
            tracker=np.zeros((16, 32), np.uint8),
            values=np.arange(16.0).reshape(1, 16),
            target=np.zeros(16, np.uint8) if is_spread else np.arange(16, dtype=np.uint8) % 2,
        )
        LocalProvider().anonymize(Submission(contract=contract, records=records))


class _Node(NamedTuple):
    """A node still to be grown: a range of every order, its positives and its depth."""

    lo: int
    hi: int
    positive: int
    depth: int


def grow(submission: Submission, settings: EngineSettings) -> Growth:
    """The tree of the rule `variance-reduction`, its leaves' bounds, and every row's leaf."""
    n_rows = submission.records.n_rows
    positive = int(submission.records.target.sum(dtype=np.int64))
    grouped = np.empty(n_rows, np.uint32)
    with ThreadPoolExecutor(settings.threads) as pool:
        forest = _sort(submission, pool, settings)
        top = list(_split_top(forest, _Node(0, n_rows, positive, 0), _Crew(forest, pool)))
        subtrees = [node for node in top if isinstance(node, _Node)]
        number = np.empty(n_rows, np.uint32)
        parts: list[growing.Grown] = []
        for part in pool.map(lambda node: _grow_subtree(forest, node, grouped, number), subtrees):
            parts.append(part)
            settings.progress("grow", subtrees[len(parts) - 1].hi, n_rows)
    return Growth.of(stitch(top, parts), grouped)


def row_bits(n_rows: int) -> int:
    """How many bits of an order's entry a record's number takes."""
    return max(1, (n_rows - 1).bit_length())


def _sort(
    submission: Submission, pool: ThreadPoolExecutor, settings: EngineSettings
) -> growing.Forest:
    """Sort every column once."""
    records, contract = submission.records, submission.contract
    n_quasi, n_rows = records.values.shape
    bits = row_bits(n_rows)
    order = np.empty((n_quasi, n_rows), np.uint32)
    n_ranks = np.empty(n_quasi, np.int64)

    # One buffer per thread, used again for every column it sorts.
    idle = [np.empty((2, n_rows), np.uint64) for _ in range(settings.threads)]

    def sort_column(j: int) -> int:
        buffer = idle.pop()
        values, target = records.values[j], records.target
        try:
            return int(growing.sort_column(values, target, order[j], bits, buffer))
        finally:
            idle.append(buffer)

    for j, n_distinct in enumerate(pool.map(sort_column, range(n_quasi))):
        n_ranks[j] = n_distinct
        settings.progress("sort", j + 1, n_quasi)
    return growing.Forest(
        records.values,
        np.arange(n_rows, dtype=np.uint32),
        order,
        n_ranks,
        np.empty((n_rows + 7) // 8, np.uint8),
        bits,
        contract.min_leaf,
        contract.max_depth,
    )


class _Crew:
    """The threads that share out the columns of one node; without a pool, this one."""

    def __init__(self, forest: growing.Forest, pool: ThreadPoolExecutor | None) -> None:
        n_quasi, n_records = forest.order.shape
        self.forest = forest
        self.ranges = shares(n_quasi, 1 if pool is None else pool._max_workers)
        self.map = map if pool is None else pool.map
        self.small = max(
            SMALL_NODE if pool is None else SMALL_TASK, n_records // (SHRINK * len(self.ranges))
        )
        self.buffers = np.empty((len(self.ranges), n_records), np.uint32)

    def best_split(self, node: _Node) -> growing.Chosen:
        """The split of a node; column -1 if it is small or a leaf."""
        forest, n = self.forest, node.hi - node.lo
        best = growing.Chosen(-1, -1, np.int64(-1), -1.0)
        stops = n < 2 * forest.min_leaf or node.positive in (0, n) or node.depth >= forest.max_depth
        if n <= self.small or stops:
            return best
        span = (node.lo, node.hi, node.positive)
        offers = self.map(lambda columns: growing.best_split(forest, span, columns), self.ranges)
        for found in offers:
            # Strictly greater: among equals the first in contract order stays.
            if found.score > best.score:
                best = found
        return best

    def partition(self, node: _Node, split: growing.Chosen) -> None:
        """Put the left side's records before the right side's, in every column."""
        forest = self.forest
        growing.mark(forest, split.column, node.lo, split.position, node.hi)
        done = self.map(
            lambda buffer, columns: growing.partition(forest, buffer, node.lo, node.hi, columns),
            self.buffers,
            self.ranges,
        )
        for _ in done:
            pass


def _split_top(forest: growing.Forest, root: _Node, crew: _Crew) -> Iterator[_Node | TopSplit]:
    """Split a node until its parts are small; what comes out is in preorder."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        split = crew.best_split(node)
        if split.column < 0:
            yield node
            continue
        crew.partition(node, split)
        threshold = growing.threshold_at(forest, split.column, split.position)
        yield TopSplit(split.column, threshold)
        left, right = int(split.positive), node.positive - int(split.positive)
        waiting.append(_Node(split.position, node.hi, right, node.depth + 1))
        waiting.append(_Node(node.lo, split.position, left, node.depth + 1))


def _grow_subtree(
    forest: growing.Forest, node: _Node, grouped: Numbers, number: Numbers
) -> growing.Grown:
    """The tree of one node, in this thread; fills its range of `grouped`."""
    rows = grouped[node.lo : node.hi]
    order = np.empty((forest.order.shape[0], rows.size), np.uint32)
    local = growing.localize(forest, node.lo, order, number)
    root = _Node(0, rows.size, node.positive, node.depth)
    top = list(_split_top(local, root, _Crew(local, None)))
    if len(top) == 1:
        return growing.grow(local, node.positive, node.depth, rows)
    number = np.empty(rows.size, np.uint32)
    parts = [_grow_subtree(local, part, rows, number) for part in top if isinstance(part, _Node)]
    return stitch(top, parts)


class _SpreadNode(NamedTuple):
    """A node still to be grown: a range of the records, and its depth."""

    lo: int
    hi: int
    depth: int


class _Table(NamedTuple):
    """The records side by side, their rows, and what the rule needs."""

    records: Ids
    rows: Numbers
    weights: Ints
    contract: Contract

    def split(self, node: _SpreadNode) -> "tuple[_SpreadNode | TopSplit, ...]":
        """One node's split and children, or itself if it is a leaf."""
        lo, hi, depth = node
        contract = self.contract
        if hi - lo < 2 * contract.min_leaf or depth >= contract.max_depth:
            return (node,)
        column, threshold, n_left = spreading.split(
            self.records[lo:hi], self.rows[lo:hi], self.weights, contract.min_leaf
        )
        if column < 0:
            return (node,)
        middle = lo + n_left
        left, right = _SpreadNode(lo, middle, depth + 1), _SpreadNode(middle, hi, depth + 1)
        return TopSplit(column, float(threshold)), left, right

    def grow(self, node: _SpreadNode) -> Grown:
        """The subtree of one node."""
        records, rows = self.records[node.lo : node.hi], self.rows[node.lo : node.hi]
        depths = (node.depth, self.contract.max_depth)
        return spreading.grow(records, rows, self.weights, self.contract.min_leaf, depths)


def _grow_spread(submission: Submission, settings: EngineSettings) -> Growth:
    """The tree of the contract's rule, its leaves' bounds, and every row's leaf."""
    n_rows = submission.records.n_rows
    small = max(BATCH_ROWS, n_rows // (TASKS_PER_THREAD * settings.threads))
    with ThreadPoolExecutor(settings.threads) as pool:
        table = _lay_out(submission, pool)
        top = _split_spread_top(table, pool, small)
        nodes = [part for part in top if isinstance(part, _SpreadNode)]
        parts = []
        for node, part in zip(nodes, pool.map(table.grow, nodes), strict=True):
            parts.append(part)
            settings.progress("grow", node.hi, n_rows)
    return Growth.of(stitch(top, parts), table.rows)


def _split_spread_top(
    table: _Table, pool: ThreadPoolExecutor, small: int
) -> "list[_SpreadNode | TopSplit]":
    """The top in preorder, level by level: splits, and nodes that are small or leaves."""
    top: list[_SpreadNode | TopSplit] = [_SpreadNode(0, len(table.rows), 0)]
    large = top
    while large:
        found = dict(zip(large, pool.map(table.split, large), strict=True))
        top = [each for part in top for each in found.get(part, (part,))]
        large = [
            child
            for _, *children in found.values()
            for child in children
            if isinstance(child, _SpreadNode) and child.hi - child.lo > small
        ]
    return top


def _lay_out(submission: Submission, pool: ThreadPoolExecutor) -> _Table:
    values, contract = submission.records.values, submission.contract
    n_quasi, n_rows = values.shape
    records = np.empty((n_rows, n_quasi), np.int32)

    def lay(first: int) -> None:
        at = slice(first, first + BATCH_ROWS)
        records[at] = values[:, at].T

    for _ in pool.map(lay, range(0, n_rows, BATCH_ROWS)):
        pass
    weights = np.array([column.weight for column in contract.quasi], np.int64)
    return _Table(records, np.arange(n_rows, dtype=np.uint32), weights, contract)
