"""Grow the tree on one machine: presort, split the top across columns, subtrees in threads.

The same tree comes out for any number of threads: scores are computed from integer counts,
candidates are compared in contract order, and subtrees do not touch each other's records.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from verix import __version__
from verix.protocol.messages import Delivery, Submission
from verix.protocol.tree import Leaves, Tree
from verix.provider import engine, kernels
from verix.provider.engine import Growth, Progress, Settings

__all__ = ["LocalProvider", "grow"]

# Subtrees per thread: enough to even out their different costs.
SUBTREES_PER_THREAD = 8
# Sharing one node's columns among threads costs about 0.1 ms, a node of this size as much.
LEAST_SHARED_ROWS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalProvider:
    """The honest engine on this machine; `threads=None` takes every core it may use."""

    threads: int | None = None
    progress: Progress | None = None

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize the submission as its contract says."""
        settings = Settings.of(self.threads, self.progress)
        return engine.anonymize(
            submission, grow, settings, engine="verix-local", version=__version__
        )


def grow(submission: Submission, settings: Settings) -> Growth:
    """The tree of the contract's rule, its leaves' bounds, and every row's leaf."""
    with ThreadPoolExecutor(settings.threads) as pool:
        crew = _Crew(pool, settings)
        forest = crew.sort(submission)
        positive = int(submission.records.target.sum(dtype=np.int64))
        top = crew.split_top(forest, _Span(0, submission.records.n_rows, positive), 0)
        grown = _stitch(crew.grow_subtrees(forest, top))
        return crew.read_leaves(forest, grown)


def row_bits(n_rows: int) -> int:
    """How many bits of an order's entry a row number takes."""
    return max(1, (n_rows - 1).bit_length())


class _Span(NamedTuple):
    """A node as a stretch of every order, with its number of positives."""

    lo: int
    hi: int
    positive: int


@dataclass(slots=True)
class _Subtree:
    """A node left to one thread."""

    span: _Span
    depth: int


@dataclass(slots=True)
class _Split:
    """A node that the threads split together."""

    column: int
    threshold: float
    left: "_Top"
    right: "_Top"


_Top = _Split | _Subtree
Piece = tuple[int, float] | kernels.Grown
"""A split of the top as (column, threshold), or a whole subtree."""


class _Crew:
    """The threads, and how the work is shared among them."""

    def __init__(self, pool: ThreadPoolExecutor, settings: Settings) -> None:
        self.pool = pool
        self.threads = settings.threads
        self.progress = settings.progress
        self.scratch = np.empty((0, 0), np.uint32)

    def ranges(self, n_quasi: int) -> list[tuple[int, int]]:
        """Ranges of columns, one per thread, in contract order."""
        edges = np.linspace(0, n_quasi, min(self.threads, n_quasi) + 1).astype(int).tolist()
        return list(zip(edges[:-1], edges[1:], strict=True))

    def sort(self, submission: Submission) -> kernels.Forest:
        """Sort every column once."""
        records, contract = submission.records, submission.contract
        n_quasi, n_rows = records.values.shape
        bits = row_bits(n_rows)
        order = np.empty((n_quasi, n_rows), np.uint32)
        futures = [
            self.pool.submit(
                kernels.sort_column, records.values[j], records.target, order[j], bits
            )
            for j in range(n_quasi)
        ]
        n_ranks = np.empty(n_quasi, np.int64)
        for j, future in enumerate(futures):
            n_ranks[j] = future.result()
            self.progress("sort", j + 1, n_quasi)
        return kernels.Forest(
            records.values,
            order,
            n_ranks,
            np.zeros(n_rows, np.uint8),
            bits,
            contract.min_leaf,
            contract.max_depth,
        )

    def split_top(self, forest: kernels.Forest, span: _Span, depth: int) -> _Top:
        """Split nodes too large for one thread, all threads together, columns shared out."""
        n_quasi, n_rows = forest.order.shape
        size = span.hi - span.lo
        small = max(LEAST_SHARED_ROWS, n_rows // (self.threads * SUBTREES_PER_THREAD))
        stops = size < 2 * forest.min_leaf or span.positive in (0, size)
        if size <= small or stops or depth >= forest.max_depth:
            return _Subtree(span, depth)
        ranges = self.ranges(n_quasi)
        found = self.pool.map(lambda r: kernels.splits(forest, tuple(span), r), ranges)
        column, position, positive_left, score = -1, -1, -1, -1.0
        for candidate in found:
            # Strictly greater: among equals the first in contract order stays.
            if candidate[3] > score:
                column, position, positive_left, score = candidate
        if column < 0:
            return _Subtree(span, depth)
        self._partition(forest, span, column, position)
        left = _Span(span.lo, position, positive_left)
        right = _Span(position, span.hi, span.positive - positive_left)
        return _Split(
            column,
            kernels.value_at(forest, column, position - 1),
            self.split_top(forest, left, depth + 1),
            self.split_top(forest, right, depth + 1),
        )

    def _partition(self, forest: kernels.Forest, span: _Span, column: int, position: int) -> None:
        lo, hi, _ = span
        kernels.mark(forest, column, lo, position, hi)
        # The largest node comes first, so this happens once.
        if self.scratch.shape[1] < hi - lo:
            self.scratch = np.empty((self.threads, hi - lo), np.uint32)
        futures = [
            self.pool.submit(kernels.partition, forest, scratch, lo, hi, columns)
            for scratch, columns in zip(self.scratch, self.ranges(len(forest.order)), strict=False)
        ]
        for future in futures:
            future.result()

    def grow_subtrees(self, forest: kernels.Forest, top: _Top) -> list[Piece]:
        """The pieces of the tree in preorder, with every subtree grown."""
        self.scratch = np.empty((0, 0), np.uint32)
        n_rows, n_done = forest.order.shape[1], 0
        in_preorder = list(_preorder(top))
        futures = {
            id(node): self.pool.submit(_grow_one, forest, node)
            for node in in_preorder
            if isinstance(node, _Subtree)
        }
        pieces: list[Piece] = []
        for node in in_preorder:
            if isinstance(node, _Split):
                pieces.append((node.column, node.threshold))
            else:
                pieces.append(futures[id(node)].result())
                n_done += node.span.hi - node.span.lo
                self.progress("grow", n_done, n_rows)
        return pieces

    def read_leaves(self, forest: kernels.Forest, grown: kernels.Grown) -> Growth:
        """What the leaves publish, read off the ends of their stretches."""
        n_quasi, n_rows = forest.order.shape
        start = np.append(grown.start, n_rows)
        minimum = np.empty((grown.start.size, n_quasi))
        maximum = np.empty_like(minimum)
        futures = [
            self.pool.submit(kernels.leaf_bounds, forest, start, columns, minimum, maximum)
            for columns in self.ranges(n_quasi)
        ]
        leaf_of_row = kernels.leaf_of_row(forest, start)
        for future in futures:
            future.result()
        return Growth(
            tree=Tree(
                column=grown.column,
                threshold=grown.threshold,
                left=grown.left,
                right=grown.right,
                leaf=grown.leaf,
            ),
            leaves=Leaves(count=np.diff(start), minimum=minimum, maximum=maximum),
            leaf_of_row=leaf_of_row,
        )


def _preorder(top: _Top) -> Iterator[_Top]:
    waiting = [top]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _Split):
            waiting += [node.right, node.left]


def _grow_one(forest: kernels.Forest, node: _Subtree) -> kernels.Grown:
    scratch = np.empty(node.span.hi - node.span.lo, np.uint32)
    return kernels.grow(forest, scratch, tuple(node.span), node.depth)


def _stitch(pieces: list[Piece]) -> kernels.Grown:
    """One tree from its pieces in preorder, numbered throughout."""
    parts: list[kernels.Grown] = []
    n_nodes = n_leaves = 0
    awaiting_left: list[kernels.Grown] = []
    for piece in pieces:
        if isinstance(piece, kernels.Grown):
            part = _shifted(piece, n_nodes, n_leaves)
        else:
            part = _top_node(*piece, number=n_nodes)
        parts.append(part)
        n_nodes += part.column.size
        n_leaves += part.start.size
        if isinstance(piece, kernels.Grown):
            # A subtree is complete, and with it every split whose right side it ends; the
            # first split above that still lacks its right side gets the next node.
            while awaiting_left and awaiting_left[-1].right[0] >= 0:
                awaiting_left.pop()
            if awaiting_left:
                awaiting_left[-1].right[0] = n_nodes
        else:
            awaiting_left.append(part)
    return kernels.Grown(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _top_node(column: int, threshold: float, *, number: int) -> kernels.Grown:
    return kernels.Grown(
        column=np.array([column], np.int32),
        threshold=np.array([threshold]),
        left=np.array([number + 1], np.int32),
        right=np.array([-1], np.int32),
        leaf=np.array([-1], np.int32),
        start=np.empty(0, np.int64),
    )


def _shifted(grown: kernels.Grown, n_nodes: int, n_leaves: int) -> kernels.Grown:
    """A subtree renumbered to follow so many nodes and leaves."""

    def shift(numbers: npt.NDArray[np.int32], by: int) -> npt.NDArray[np.int32]:
        return np.where(numbers >= 0, numbers + np.int32(by), numbers)

    return grown._replace(
        left=shift(grown.left, n_nodes),
        right=shift(grown.right, n_nodes),
        leaf=shift(grown.leaf, n_leaves),
    )
