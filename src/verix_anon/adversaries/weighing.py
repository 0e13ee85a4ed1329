"""Providers that follow the rule but for one of its parts: weights, a threshold, the score."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from verix_anon.adversaries.growing import (
    Spot,
    as_rules,
    by_the_rule,
    check_rule,
    deliver,
    grow,
    medians,
    routed,
)
from verix_anon.arrays import Floats
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider import engine, local

__all__ = [
    "CutsOneNode",
    "IgnoresWeights",
    "MixesWeights",
    "NeverSplitsBelow",
    "ScoresOtherwise",
]


def _by_weights(submission: Submission, weights: list[int]) -> Delivery:
    """What the rule makes of the records under other weights, as if they were the agreed ones."""
    contract = submission.contract
    pairs = zip(contract.quasi, weights, strict=True)
    columns = tuple(replace(column, weight=weight) for column, weight in pairs)
    other = Submission(contract=replace(contract, columns=columns), records=submission.records)
    settings = engine.Settings()
    rows = np.arange(submission.records.n_rows)
    return engine.pack(submission, local.growth_of(other, settings), rows, settings)


@dataclass(frozen=True, slots=True)
class IgnoresWeights:
    """Compares the spread of positions as they are, with no weights at all.

    Saves: nothing much; columns of many values win over those that matter to the owner.
    Risks: nearly every split is of another column.
    """

    only: ClassVar[Rule] = Rule.IMPORTANCE_SPREAD

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow with a weight of 1 for every column."""
        check_rule(self, submission)
        return _by_weights(submission, [1] * len(submission.contract.quasi))


@dataclass(frozen=True, slots=True)
class MixesWeights:
    """Gives every column the importance of another one.

    Saves: nothing; it spoils what the owner wanted to preserve. Risks: as many splits as there
    are columns of unlike importance. Where the owner weighed all alike, it settles ties otherwise.
    """

    seed: int = 0
    only: ClassVar[Rule] = Rule.IMPORTANCE_SPREAD

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow with importances passed on from column to column."""
        check_rule(self, submission)
        quasi = submission.contract.quasi
        order = np.random.default_rng(self.seed).permutation(len(quasi)).tolist()
        weights = [1] * len(quasi)
        for j, given in zip(order, [*order[1:], order[0]], strict=True):
            importance = (quasi[given].weight or 1) * _steps(quasi[given].size)
            weights[j] = max(1, importance // _steps(quasi[j].size))
        return _by_weights(submission, weights)


def _steps(size: int | None) -> int:
    return max(1, (size or 1) - 1)


@dataclass(frozen=True, slots=True)
class NeverSplitsBelow:
    """Splits at medians alone, and never at the value below where the median does not do.

    Saves: a second pass over skewed columns. Risks: each node where such a column was the widest.
    Where no column is skewed it is honest.
    """

    only: ClassVar[Rule] = Rule.IMPORTANCE_SPREAD

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow by the rule, without its second threshold."""
        check_rule(self, submission)
        least = submission.contract.min_leaf

        def choose(spot: Spot) -> tuple[int, float] | None:
            if spot.is_final(min_leaf=least):
                return None
            found = spot.candidates(medians(spot.values), min_leaf=least)
            return found.at(int(found.ranked()[0])) if found.column.size else None

        return deliver(submission, grow(submission, choose))


@dataclass(frozen=True, slots=True)
class ScoresOtherwise:
    """Splits where the rule would, but takes the column by a score that was not agreed on.

    By spread where labels decide, and by standard deviation where spread does. Saves: reading the
    labels. Risks: nearly every split is of another column.
    """

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow by another score."""
        least = submission.contract.min_leaf
        values = submission.records.values
        # Divided first, so that the difference of large values cannot overflow.
        width = values.max(axis=1) / 2 - values.min(axis=1) / 2

        def choose(spot: Spot) -> tuple[int, float] | None:
            if by_the_rule(spot) is None:
                return None
            found = spot.candidates(spot.thresholds(min_leaf=least), min_leaf=least)
            score = _otherwise(spot, width)[found.column]
            return found.at(int(replace(found, score=score).ranked()[0]))

        return deliver(submission, grow(submission, choose))


def _otherwise(spot: Spot, width: Floats) -> Floats:
    """A score of every column that is not the rule's."""
    if spot.rule is Rule.IMPORTANCE_SPREAD:
        deviation: Floats = spot.values.std(axis=1)
        return spot.weights * deviation
    spread: Floats = spot.values.max(axis=1) / 2 - spot.values.min(axis=1) / 2
    share: Floats = np.divide(spread, width, out=np.zeros_like(width), where=width > 0)
    return share


@dataclass(frozen=True, slots=True)
class CutsOneNode:
    """Makes a leaf of one node that the rule splits, and follows the rule everywhere else.

    Saves: hardly anything. It measures the audit: the least that a provider can leave undone.
    """

    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow honestly, and cut one subtree off."""
        tree = local.growth_of(submission, engine.Settings()).tree
        inner = np.flatnonzero(tree.column >= 0)
        top = as_rules(tree)
        if inner.size:
            top = _cut(top, int(np.random.default_rng(self.seed).integers(inner.size)))[0]
        rows = np.arange(submission.records.n_rows)
        return deliver(submission, routed(top, submission.records.values, rows))


def _cut(top: rules.Node | rules.Leaf, number: int) -> tuple[rules.Node | rules.Leaf, int]:
    """The tree with the inner node of this number in preorder as a leaf, and what is left of it."""
    if isinstance(top, rules.Leaf) or number < 0:
        return top, number
    if number == 0:
        return rules.Leaf(()), -1
    left, number = _cut(top.left, number - 1)
    right, number = _cut(top.right, number)
    return replace(top, left=left, right=right), number
