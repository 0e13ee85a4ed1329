"""Witnesses: the honest paths of a few watch records, worked out before anything is sent.

Only nodes that hold a witness are split, each once, so this costs a fraction of the tree.

    larger than LAID_OUT     threads share the columns, reading all over the table
    larger than ONE_THREAD   the same, the records of a LAID_OUT node now lying side by side
    others                   each thread has nodes of its own, again with records side by side
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ints, Numbers
from verix_anon.client.manifest import Step, Witness
from verix_anon.kernels import offers, splits, trees
from verix_anon.machine import shares
from verix_anon.protocol import digests
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Submission

__all__ = ["find_witnesses"]

Found = tuple[int, splits.Candidate, float]

LAID_OUT, ONE_THREAD = 1 << 19, 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """Some records of the submission, and which rows they are."""

    values: Floats
    target: Bytes
    rows: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """The records under one node, how many are positive, and the witnesses among them."""

    records: _Records
    members: Numbers
    positive: int
    witnesses: Numbers
    path: tuple[Step, ...] = ()

    @property
    def n(self) -> int:
        """How many records there are."""
        return int(self.members.size)


def find_witnesses(submission: Submission, rows: Ints, *, threads: int) -> tuple[Witness, ...]:
    """The path and leaf of each of these rows in the tree that the rule grows."""
    if not rows.size:
        return ()
    sent = submission.records
    everyone = np.arange(sent.n_rows, dtype=np.uint32)
    top = _Node(
        _Records(sent.values, sent.target, everyone),
        everyone,
        int(sent.target.sum(dtype=np.int64)),
        np.sort(rows).astype(np.uint32),
    )
    found: list[Witness] = []
    with ThreadPoolExecutor(threads) as pool:
        together = _Crew(submission, threads, pool.map, sent.n_rows)
        alone = [_Crew(submission, 1, map, ONE_THREAD) for _ in range(threads)]

        def walk(crew: _Crew, nodes: list[_Node]) -> list[Witness]:
            found: list[Witness] = []
            for node in nodes:
                crew.descend(crew.lay_out(node), 0, found)
            return found

        for large in together.descend(top, LAID_OUT, found):
            nodes = together.descend(together.lay_out(large), ONE_THREAD, found)
            # All that was laid out is used here, before the next takes its place.
            for part in pool.map(walk, alone, (nodes[i::threads] for i in range(threads))):
                found += part
    by_row = {witness.row: witness for witness in found}
    return tuple(by_row[int(row)] for row in rows)


class _Crew:
    """Threads that share out the columns of a node, with a buffer for each of them.

    Buffers are used again for every node: touching new memory costs as much as a median.
    """

    def __init__(
        self,
        submission: Submission,
        n_threads: int,
        map_: Callable[..., Iterable[Found]],
        most: int,
    ) -> None:
        n_quasi, n_rows = submission.records.values.shape
        most = min(most, n_rows)
        self.submission, self.map = submission, map_
        self.ranges = shares(n_quasi, n_threads)
        self.weights = np.array([c.weight or 0 for c in submission.contract.quasi])
        self.buffers = [np.empty((2, most + 1)) for _ in self.ranges]
        self.laid_out = np.empty(n_quasi * min(most, LAID_OUT))

    def descend(self, top: _Node, until: int, found: list[Witness]) -> list[_Node]:
        """Split what is larger than `until`; returns what is not, and adds witnesses on the way."""
        waiting, small = [top], []
        while waiting:
            node = waiting.pop()
            if node.n <= until:
                small.append(node)
            else:
                waiting += self._split(node, found)
        return small

    def lay_out(self, node: _Node) -> _Node:
        """The same node with its records side by side, where those of another one were."""
        records, members = node.records, node.members
        n_quasi = len(records.values)
        values = self.laid_out[: n_quasi * node.n].reshape(n_quasi, node.n)

        def gather(columns: tuple[int, int]) -> None:
            for column in range(*columns):
                trees.gather(records.values[column], members, values[column])

        for _ in self.map(gather, self.ranges):
            pass
        own = _Records(values.view(), records.target[members], records.rows[members])
        for array in (own.values, own.target):
            # As in a submission: what is compiled for that is used here too.
            array.setflags(write=False)
        return _Node(
            own,
            np.arange(node.n, dtype=np.uint32),
            node.positive,
            np.searchsorted(members, node.witnesses).astype(np.uint32),
            node.path,
        )

    def _split(self, node: _Node, found: list[Witness]) -> list[_Node]:
        """The children that hold witnesses; at a leaf none, and its witnesses are found."""
        contract, records, n = self.submission.contract, node.records, node.n
        column = -1
        is_pure = contract.rule is Rule.VARIANCE_REDUCTION and node.positive in (0, n)
        stops = n < 2 * contract.min_leaf or len(node.path) >= contract.max_depth
        if not stops and not is_pure:
            column, chosen = self._best_split(node)
        if column < 0:
            found += _at_leaf(self.submission, node)
            return []
        threshold, positive_left = float(chosen.threshold), int(chosen.positive_left)
        stays_left = np.take(records.values[column], node.members) <= threshold
        sides = node.members[stays_left], node.members[~stays_left]
        goes_left = records.values[column][node.witnesses] <= threshold
        children = [
            _Node(
                records,
                members,
                positive,
                node.witnesses[goes_left == left],
                (*node.path, Step(column, threshold, left, n)),
            )
            for members, positive, left in zip(
                sides, (positive_left, node.positive - positive_left), (True, False), strict=True
            )
        ]
        return [child for child in children if child.witnesses.size]

    def _best_split(self, node: _Node) -> tuple[int, splits.Candidate]:
        """The rule's column and split (spec §4); column -1 if no candidate is valid."""
        records, contract = node.records, self.submission.contract
        best, chosen, best_score = -1, None, -1.0
        values, members, min_leaf = records.values, node.members, contract.min_leaf

        def part(columns: tuple[int, int], buffer: Floats) -> Found:
            if contract.rule is Rule.VARIANCE_REDUCTION:
                return splits.best_split(values, members, records.target, columns, min_leaf, buffer)
            return offers.best_offer(values, members, self.weights, columns, min_leaf, buffer)

        for column, found, score in self.map(part, self.ranges, self.buffers):
            # Strictly greater: among equals the first in contract order stays.
            if chosen is None or score > best_score:
                best, chosen, best_score = int(column), found, score
        assert chosen is not None
        return best, chosen


def _at_leaf(submission: Submission, node: _Node) -> list[Witness]:
    records, n = node.records, node.n
    rows, tracker = records.rows[node.members], submission.records.tracker
    # A column at a time: a leaf may be the whole table.
    values = (column[node.members] for column in records.values)
    bounds = tuple((float(own.min()), float(own.max())) for own in values)
    leaf = digests.leaf_digest(n, bounds, ((int(row), tracker[row].tobytes()) for row in rows))
    return [
        Witness(row=int(row), path=node.path, leaf=leaf) for row in records.rows[node.witnesses]
    ]
