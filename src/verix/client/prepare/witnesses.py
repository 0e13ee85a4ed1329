"""Witnesses: the honest paths of a few watch records, worked out before anything is sent.

Only nodes that hold a witness are split, each once, so this costs a fraction of the tree.
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


@dataclass(slots=True, eq=False)
class _Node:
    """The rows under one node, and the witnesses among them, both ascending."""

    rows: Numbers
    witnesses: Numbers
    path: tuple[Step, ...]


def find_witnesses(submission: Submission, rows: Rows, *, threads: int = 1) -> tuple[Witness, ...]:
    """The path and leaf of each of these rows in the tree that the rule grows."""
    found: dict[int, Witness] = {}
    n_rows = submission.records.n_rows
    root = _Node(np.arange(n_rows, dtype=np.uint32), np.sort(rows).astype(np.uint32), ())
    waiting = [root] if rows.size else []
    with ThreadPoolExecutor(threads) as pool:
        crew = _Crew(pool, [np.empty((2, n_rows + 1)) for _ in range(threads)])
        while waiting:
            node = waiting.pop()
            split = _best_split(submission, node, crew)
            if split is None:
                found |= {w.row: w for w in _at_leaf(submission, node)}
            else:
                column, threshold = split
                goes_left = submission.records.values[column][node.rows] <= threshold
                children = _children(node, column, threshold, goes_left)
                waiting += [child for child in children if child.witnesses.size]
    return tuple(found[int(row)] for row in rows)


@dataclass(slots=True, eq=False)
class _Crew:
    """The threads that share out the columns of a node, and room for each of them.

    Used again for every node: touching new memory would cost as much as looking for a median.
    """

    pool: ThreadPoolExecutor
    idle: list[npt.NDArray[np.float64]]


def _best_split(submission: Submission, node: _Node, crew: _Crew) -> tuple[int, float] | None:
    """The rule's split of a node (spec §4), or None at a leaf."""
    contract, values, n = submission.contract, submission.records.values, node.rows.size
    target = submission.records.target[node.rows]
    positive = int(target.sum(dtype=np.int64))
    if n < 2 * contract.min_leaf or positive in (0, n) or len(node.path) >= contract.max_depth:
        return None

    def candidate(column: int) -> audit.Candidate:
        room = crew.idle.pop()
        try:
            gathered, scratch = room[0, :n], room[1, : n + 1]
            audit.gather(values[column], node.rows, gathered)
            return audit.candidate(gathered, target, contract.min_leaf, scratch)
        finally:
            crew.idle.append(room)

    best: tuple[int, float] | None = None
    best_score = -1.0
    for column, found in enumerate(crew.pool.map(candidate, range(len(values)))):
        if found.is_valid:
            score = audit.score(n, positive, found.n_left, found.positive_left)
            # Strictly greater: among equals the first in contract order stays.
            if score > best_score:
                best, best_score = (column, float(found.threshold)), score
    return best


def _children(
    node: _Node, column: int, threshold: float, goes_left: npt.NDArray[np.bool_]
) -> tuple[_Node, _Node]:
    witness_left = goes_left[np.searchsorted(node.rows, node.witnesses)]

    def child(mask: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_], left: bool) -> _Node:
        step = Step(column, threshold, left, node.rows.size)
        return _Node(node.rows[mask], node.witnesses[chosen], (*node.path, step))

    return child(goes_left, witness_left, True), child(~goes_left, ~witness_left, False)


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
