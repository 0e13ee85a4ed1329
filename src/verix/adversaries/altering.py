"""Providers that grow another tree than the one agreed on."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verix.protocol import rules
from verix.protocol.contract import Contract
from verix.protocol.messages import Delivery, Submission
from verix.protocol.tree import Leaves, Tree
from verix.provider import engine

__all__ = ["SplitsBlindly", "growth_of"]


@dataclass(frozen=True, slots=True)
class SplitsBlindly:
    """Splits at the median of a random column, blind to the target (paper: approximate).

    Saves: scoring every column at every node. Risks: the tree is not the one the rule gives,
    which only a check of the splits can know for certain.
    """

    seed: int = 0
    strict: bool = False
    """Draw among all columns, and stop where the drawn one cannot be split."""

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow the blind tree and commit to it honestly."""
        rng = np.random.default_rng(self.seed)
        top = self._grow(submission, np.arange(submission.records.n_rows), 0, rng)
        growth = growth_of(submission, top)
        rows = np.arange(submission.records.n_rows)
        return engine.pack(submission, growth, rows, engine.Settings.of())

    def _grow(
        self,
        submission: Submission,
        rows: npt.NDArray[np.int64],
        depth: int,
        rng: np.random.Generator,
    ) -> rules.Node | rules.Leaf:
        contract, values = submission.contract, submission.records.values
        leaf = rules.Leaf(tuple(rows.tolist()))
        if rows.size < 2 * contract.min_leaf or depth >= contract.max_depth:
            return leaf
        for column in rng.permutation(len(values)).tolist():
            split = _median_split(values[column][rows], contract)
            if split is not None:
                threshold, goes_left = split
                return rules.Node(
                    column,
                    threshold,
                    self._grow(submission, rows[goes_left], depth + 1, rng),
                    self._grow(submission, rows[~goes_left], depth + 1, rng),
                )
            if self.strict:
                return leaf
        return leaf


def _median_split(
    values: npt.NDArray[np.float64], contract: Contract
) -> tuple[float, npt.NDArray[np.bool_]] | None:
    """The lower median, and who goes left; None if a side would be too small."""
    middle = (values.size + 1) // 2 - 1
    threshold = float(np.partition(values, middle)[middle])
    goes_left = values <= threshold
    n_left = int(goes_left.sum())
    if min(n_left, values.size - n_left) < contract.min_leaf:
        return None
    return threshold, goes_left


def growth_of(submission: Submission, top: rules.Node | rules.Leaf) -> engine.Growth:
    """What a tree of rules makes of the submission, as the engine would deliver it."""
    nodes, leaves = rules.flatten(top)
    column, threshold, left, right, leaf = (np.array(field) for field in zip(*nodes, strict=True))
    values = submission.records.values
    minimum, maximum = np.empty((2, len(leaves), len(values)))
    leaf_of_row = np.empty(submission.records.n_rows, np.int32)
    for number, rows in enumerate(leaves):
        part = values[:, list(rows)]
        minimum[number], maximum[number] = part.min(axis=1), part.max(axis=1)
        leaf_of_row[list(rows)] = number
    return engine.Growth(
        tree=Tree(
            column=column.astype(np.int32),
            threshold=threshold.astype(np.float64),
            left=left.astype(np.int32),
            right=right.astype(np.int32),
            leaf=leaf.astype(np.int32),
        ),
        leaves=Leaves(
            count=np.array([len(rows) for rows in leaves], np.int64),
            minimum=minimum,
            maximum=maximum,
        ),
        leaf_of_row=leaf_of_row,
    )
