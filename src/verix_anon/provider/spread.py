"""Grow the tree of the rule `importance-spread` on one machine: subtrees in threads.

The same tree comes out for any number of threads: scores are whole numbers, columns are
compared in contract order, and subtrees do not touch each other's records.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from verix_anon.arrays import Ids, Ints, Numbers
from verix_anon.kernels import spreading
from verix_anon.kernels.growing import Grown
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.messages import Submission
from verix_anon.provider.engine import Growth, Settings
from verix_anon.provider.stitching import Split, stitch

__all__ = ["grow"]

TASKS_PER_THREAD = 8
"""Into how many subtrees the top is split: some take longer than others."""
BATCH_ROWS = 16_384
"""How many records are laid side by side at a time: few enough for the cache of a core."""


class _Node(NamedTuple):
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

    def split(self, node: _Node) -> "tuple[_Node | Split, ...]":
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
        left, right = _Node(lo, middle, depth + 1), _Node(middle, hi, depth + 1)
        return Split(column, float(threshold)), left, right

    def grow(self, node: _Node) -> Grown:
        """The subtree of one node."""
        lo, hi, depth = node
        contract = self.contract
        return spreading.grow(
            self.records[lo:hi],
            self.rows[lo:hi],
            self.weights,
            contract.min_leaf,
            (depth, contract.max_depth),
        )


def grow(submission: Submission, settings: Settings) -> Growth:
    """The tree of the contract's rule, its leaves' bounds, and every row's leaf."""
    n_rows = submission.records.n_rows
    small = max(BATCH_ROWS, n_rows // (TASKS_PER_THREAD * settings.threads))
    with ThreadPoolExecutor(settings.threads) as pool:
        table = _lay_out(submission, pool)
        top = _split_top(table, pool, small)
        nodes = [part for part in top if isinstance(part, _Node)]
        parts = []
        for node, part in zip(nodes, pool.map(table.grow, nodes), strict=True):
            parts.append(part)
            settings.progress("grow", node.hi, n_rows)
    return Growth.of(stitch(top, parts), table.rows)


def _split_top(table: _Table, pool: ThreadPoolExecutor, small: int) -> "list[_Node | Split]":
    """The top in preorder, level by level: splits, and nodes that are small or leaves."""
    top: list[_Node | Split] = [_Node(0, len(table.rows), 0)]
    large = top
    while large:
        found = dict(zip(large, pool.map(table.split, large), strict=True))
        top = [each for part in top for each in found.get(part, (part,))]
        large = [
            child
            for _, *children in found.values()
            for child in children
            if isinstance(child, _Node) and child.hi - child.lo > small
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
