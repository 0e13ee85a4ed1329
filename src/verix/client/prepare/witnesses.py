"""Witnesses: the honest paths of a few watch records, worked out before anything is sent.

Only nodes that hold a witness are split, each once, so this costs a fraction of the tree.
Large nodes have their columns shared among threads; then each thread walks subtrees.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verix.client.manifest import Step, Witness
from verix.protocol import audit, merkle
from verix.protocol.messages import Submission

__all__ = ["find_witnesses"]

Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]

# A node this small goes to one thread with all that is under it; the columns of a larger one
# are shared among all.
SMALL_NODE = 65_536


@dataclass(slots=True, eq=False)
class _Node:
    """The rows under one node, how many are positive, and the witnesses among them."""

    rows: Numbers
    positive: int
    witnesses: Numbers
    path: tuple[Step, ...]


def find_witnesses(submission: Submission, rows: Rows, *, threads: int = 1) -> tuple[Witness, ...]:
    """The path and leaf of each of these rows in the tree that the rule grows."""
    n_rows = submission.records.n_rows
    positive = int(submission.records.target.sum(dtype=np.int64))
    everyone = np.arange(n_rows, dtype=np.uint32)
    root = _Node(everyone, positive, np.sort(rows).astype(np.uint32), ())
    found: list[Witness] = []
    small: list[_Node] = []
    with ThreadPoolExecutor(threads) as pool:
        waiting = [root] if rows.size else []
        crew = _Crew(submission, pool, threads)
        while waiting:
            node = waiting.pop()
            if node.rows.size <= SMALL_NODE:
                small.append(node)
            else:
                waiting += _split(submission, node, crew, found)
        for part in pool.map(lambda node: _walk(submission, node), small):
            found += part
    by_row = {witness.row: witness for witness in found}
    return tuple(by_row[int(row)] for row in rows)


class _Crew:
    """The threads that share out the columns of a large node, with room for each of them.

    The room is used again for every node: touching new memory costs as much as a median.
    Without a pool, this thread does all.
    """

    def __init__(self, submission: Submission, pool: ThreadPoolExecutor | None, n: int) -> None:
        n_quasi, n_rows = submission.records.values.shape
        edges = np.linspace(0, n_quasi, min(n, n_quasi) + 1).astype(int).tolist()
        self.ranges = list(zip(edges[:-1], edges[1:], strict=True))
        n_room = n_rows if pool is not None else min(n_rows, SMALL_NODE)
        self.rooms = [np.empty((2, n_room + 1)) for _ in self.ranges]
        self.map = map if pool is None else pool.map

    def best_split(self, submission: Submission, rows: Numbers) -> tuple[int, audit.Candidate]:
        """The rule's column and split (spec §4); column -1 if no candidate is valid."""
        records, min_leaf = submission.records, submission.contract.min_leaf
        best, chosen, best_score = -1, None, -1.0

        def part(columns: tuple[int, int], room: Floats) -> tuple[int, audit.Candidate, float]:
            return audit.best_split(records.values, rows, records.target, columns, min_leaf, room)

        for column, found, score in self.map(part, self.ranges, self.rooms):
            # Strictly greater: among equals the first in contract order stays.
            if chosen is None or score > best_score:
                best, chosen, best_score = int(column), found, score
        assert chosen is not None
        return best, chosen


def _walk(submission: Submission, top: _Node) -> list[Witness]:
    """The witnesses under a small node, in this thread."""
    found: list[Witness] = []
    waiting = [top]
    crew = _Crew(submission, None, 1)
    while waiting:
        waiting += _split(submission, waiting.pop(), crew, found)
    return found


def _split(submission: Submission, node: _Node, crew: _Crew, found: list[Witness]) -> list[_Node]:
    """The children that hold witnesses; at a leaf none, and its witnesses are found."""
    contract, records, n = submission.contract, submission.records, node.rows.size
    stops = n < 2 * contract.min_leaf or node.positive in (0, n)
    if stops or len(node.path) >= contract.max_depth:
        found += _at_leaf(submission, node)
        return []
    column, chosen = crew.best_split(submission, node.rows)
    if column < 0:
        found += _at_leaf(submission, node)
        return []
    threshold, positive_left = float(chosen.threshold), int(chosen.positive_left)
    sides = audit.divide(records.values[column], node.rows, threshold)
    goes_left = records.values[column][node.witnesses] <= threshold
    children = [
        _Node(
            rows,
            positive,
            node.witnesses[goes_left == left],
            (*node.path, Step(column, threshold, left, n)),
        )
        for rows, positive, left in zip(
            sides, (positive_left, node.positive - positive_left), (True, False), strict=True
        )
    ]
    return [child for child in children if child.witnesses.size]


def _at_leaf(submission: Submission, node: _Node) -> list[Witness]:
    values = submission.records.values[:, node.rows]
    low, high = values.min(axis=1), values.max(axis=1)
    members = merkle.members_digest(
        [(int(row), submission.records.tracker[row].tobytes()) for row in node.rows]
    )
    return [
        Witness(
            row=int(row),
            path=node.path,
            leaf_count=int(node.rows.size),
            bounds=tuple(zip(low.tolist(), high.tolist(), strict=True)),
            members=members,
        )
        for row in node.witnesses
    ]
