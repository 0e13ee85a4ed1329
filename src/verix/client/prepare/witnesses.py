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

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class _Node:
    """The records under one node, gathered, and the witnesses among them."""

    rows: Rows
    values: Floats
    target: npt.NDArray[np.uint8]
    witnesses: Rows
    path: tuple[Step, ...]


def find_witnesses(submission: Submission, rows: Rows, *, threads: int = 1) -> tuple[Witness, ...]:
    """The path and leaf of each of these rows in the tree that the rule grows."""
    records = submission.records
    root = _Node(np.arange(records.n_rows), records.values, records.target, np.sort(rows), ())
    found: dict[int, Witness] = {}
    waiting = [root] if rows.size else []
    with ThreadPoolExecutor(threads) as pool:
        while waiting:
            node = waiting.pop()
            split = _best_split(submission, node, pool)
            if split is None:
                found |= {w.row: w for w in _at_leaf(submission, node)}
            else:
                waiting += [child for child in _children(node, *split) if child.witnesses.size]
    return tuple(found[int(row)] for row in rows)


def _best_split(
    submission: Submission, node: _Node, pool: ThreadPoolExecutor
) -> tuple[int, float] | None:
    """The rule's split of a node (spec §4), or None at a leaf."""
    contract, n = submission.contract, node.rows.size
    positive = int(node.target.sum(dtype=np.int64))
    if n < 2 * contract.min_leaf or positive in (0, n) or len(node.path) >= contract.max_depth:
        return None

    def candidate(values: Floats) -> audit.Candidate:
        return audit.candidate(values, node.target, contract.min_leaf, np.empty(n + 1))

    best: tuple[int, float] | None = None
    best_score = -1.0
    for column, found in enumerate(pool.map(candidate, node.values)):
        if found.is_valid:
            score = audit.score(n, positive, found.n_left, found.positive_left)
            # Strictly greater: among equals the first in contract order stays.
            if score > best_score:
                best, best_score = (column, float(found.threshold)), score
    return best


def _children(node: _Node, column: int, threshold: float) -> tuple[_Node, _Node]:
    goes_left = node.values[column] <= threshold
    witness_left = goes_left[np.searchsorted(node.rows, node.witnesses)]

    def child(mask: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_], left: bool) -> _Node:
        step = Step(column, threshold, left, node.rows.size)
        return _Node(
            node.rows[mask],
            # No copy for a side that nobody watches.
            np.compress(mask, node.values, axis=1) if chosen.any() else node.values[:, :0],
            node.target[mask],
            node.witnesses[chosen],
            (*node.path, step),
        )

    return child(goes_left, witness_left, True), child(~goes_left, ~witness_left, False)


def _at_leaf(submission: Submission, node: _Node) -> list[Witness]:
    low, high = node.values.min(axis=1), node.values.max(axis=1)
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
