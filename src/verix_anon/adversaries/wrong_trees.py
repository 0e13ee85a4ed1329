"""Providers that grow another tree than the one agreed on, from all records."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from verix_anon.adversaries.deviating_growth import (
    GrowsOtherwise,
    Split,
    Spot,
    as_rules,
    by_the_rule,
    check_rule,
    deliver,
    grow,
    medians,
    routed,
    rule_thresholds,
)
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider import engine, local


@dataclass(frozen=True, slots=True)
class SplitsBlindly(GrowsOtherwise):
    """Splits a random column, blind to the target or to the spread (paper: approximate).

    Saves: scoring every column at every node. Risks: the tree is not the one the rule gives,
    which only a check of the splits can know for certain.
    """

    seed: int = 0
    strict: bool = False
    """Draw among all columns, and stop where the drawn one cannot be split."""

    def choose(self, spot: Spot) -> Split | None:
        """Blindly."""
        return _blindly(spot, strict=self.strict)


def _blindly(spot: Spot, *, strict: bool = False) -> Split | None:
    """A random column where the rule would split it; purity does not stop it (spec §4)."""
    n, least = spot.rows.size, spot.min_leaf
    if n < 2 * least or spot.depth >= spot.submission.contract.max_depth:
        return None
    columns = spot.submission.records.values
    for column in spot.rng.permutation(len(columns)).tolist():
        values = columns[column][spot.rows]
        threshold = float(rule_thresholds(spot.rule, values[None], least)[0])
        n_left = int((values <= threshold).sum())
        if least <= n_left <= n - least:
            return column, threshold
        if strict:
            return None
    return None


@dataclass(frozen=True, slots=True)
class SplitsBlindlyBelow(GrowsOtherwise):
    """Follows the rule for the top levels, where an auditor looks first, and is blind below.

    Saves: scoring where most nodes are. Risks: every path deviates somewhere, so one witness
    is enough.
    """

    depth: int = 3
    seed: int = 0

    def choose(self, spot: Spot) -> Split | None:
        """By the rule to the given depth, and blindly from there."""
        return by_the_rule(spot) if spot.depth < self.depth else _blindly(spot)


@dataclass(frozen=True, slots=True)
class SplitsBlindlyAbove(GrowsOtherwise):
    """Splits the largest nodes blindly, which cost the most, and follows the rule below.

    Saves: scoring the nodes that hold all the records. Risks: the root is on every path.
    """

    depth: int = 2
    seed: int = 0

    def choose(self, spot: Spot) -> Split | None:
        """Blindly to the given depth, and by the rule from there."""
        return _blindly(spot) if spot.depth < self.depth else by_the_rule(spot)


@dataclass(frozen=True, slots=True)
class StopsEarly(GrowsOtherwise):
    """Follows the rule to a depth and leaves it at that.

    Saves: the lower half of the tree. Risks: large leaves that the rule would split; classes
    are coarser than the owner paid for, though no less anonymous.
    """

    depth: int = 6

    def choose(self, spot: Spot) -> Split | None:
        """By the rule, to the given depth."""
        return None if spot.depth >= self.depth else by_the_rule(spot)


@dataclass(frozen=True, slots=True)
class SkipsColumns(GrowsOtherwise):
    """Looks at a share of the columns only, the same ones at every node.

    Saves: sorting and scoring the others. Risks: a skipped column is the best one somewhere.
    """

    share: float = 0.5
    seed: int = 0

    def choose(self, spot: Spot) -> Split | None:
        """By the rule, as if the contract had fewer columns."""
        n_quasi = len(spot.submission.contract.quasi)
        drawn = np.random.default_rng(self.seed).permutation(n_quasi)
        kept = drawn[: max(1, round(self.share * n_quasi))]
        return spot.candidates().best(kept) if by_the_rule(spot) else None


@dataclass(frozen=True, slots=True)
class SamplesRecords(GrowsOtherwise):
    """Chooses each split on a sample of the node's records.

    Saves: nearly all of the scoring in large nodes. Risks: the sample's best column is not
    always the best. With `exact_medians` the threshold at least is the right one of its column.
    """

    share: float = 0.05
    exact_medians: bool = False
    least: int = 40
    """A sample of fewer records would say nothing; smaller nodes are looked at whole."""
    seed: int = 0

    def choose(self, spot: Spot) -> Split | None:
        """By the rule's score of a sample."""
        if by_the_rule(spot) is None:
            return None
        n_all, least = spot.rows.size, spot.min_leaf
        n = min(n_all, max(self.least, round(self.share * n_all)))
        seen = replace(spot, rows=np.sort(spot.rng.choice(spot.rows, n, replace=False)))
        # In a sample a leaf that is just large enough has this many records.
        few = max(1, least * n // n_all)
        of, smallest = (spot, least) if self.exact_medians else (seen, few)
        at = rule_thresholds(spot.rule, of.values, smallest)
        return seen.candidates(at, min_leaf=1).best(spot.candidates(at).column)


@dataclass(frozen=True, slots=True)
class SplitsAtMean(GrowsOtherwise):
    """Splits at the mean, which takes one pass where the median takes a selection.

    Saves: the sort. Risks: a threshold that is hardly ever an observed value.
    """

    def choose(self, spot: Spot) -> Split | None:
        """By the rule's score, with means for medians."""
        # Divided first, so that the sum of large values cannot overflow.
        means = (spot.values / spot.rows.size).sum(axis=1)
        return None if spot.is_final() else spot.candidates(means).best()


@dataclass(frozen=True, slots=True)
class LowersK(GrowsOtherwise):
    """Follows the rule with smaller leaves than agreed.

    Saves: nothing; it sells better utility for less privacy. Risks: the first count of a leaf.
    """

    share: float = 0.5
    """Of the contract's min_leaf: 0.5 makes k of 2k, 0.4 what k = 2 has where k = 5 has 2k."""

    def choose(self, spot: Spot) -> Split | None:
        """By the rule, with a smaller min_leaf."""
        return by_the_rule(spot, min_leaf=max(1, int(self.share * spot.min_leaf)))


@dataclass(frozen=True, slots=True)
class Deviates(GrowsOtherwise):
    """Takes the second-best split at a share of the nodes, and follows the rule at the others.

    Saves: nothing. It measures the audit: a share this small is what a check must still see.
    """

    fraction: float = 0.01
    seed: int = 0

    def choose(self, spot: Spot) -> Split | None:
        """By the rule, with second-best splits here and there."""
        if by_the_rule(spot) is None:
            return None
        found = spot.candidates()
        ranked = found.ranked()
        deviates = ranked.size > 1 and spot.rng.random() < self.fraction
        return found.at(int(ranked[1 if deviates else 0]))


def _by_weights(submission: Submission, weights: list[int]) -> Delivery:
    """What the rule makes of the records under other weights, as if they were the agreed ones."""
    contract = submission.contract
    pairs = zip(contract.quasi, weights, strict=True)
    columns = tuple(replace(column, weight=weight) for column, weight in pairs)
    other = replace(submission, contract=replace(contract, columns=columns))
    return engine.pack(submission, local.growth_of(other))


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
class NeverSplitsBelow(GrowsOtherwise):
    """Splits at medians alone, and never at the value below where the median does not do.

    Saves: a second pass over skewed columns. Risks: each node where such a column was the widest.
    Where no column is skewed it is honest.
    """

    only: ClassVar[Rule] = Rule.IMPORTANCE_SPREAD

    def choose(self, spot: Spot) -> Split | None:
        """By the rule, without its second threshold."""
        return None if spot.is_final() else spot.candidates(medians(spot.values)).best()


@dataclass(frozen=True, slots=True)
class ScoresOtherwise:
    """Splits where the rule would, but takes the column by a score that was not agreed on.

    By spread where labels decide, and by standard deviation where spread does. Saves: reading the
    labels. Risks: nearly every split is of another column.
    """

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow by another score."""
        values = submission.records.values
        # Divided first, so that the difference of large values cannot overflow.
        width = values.max(axis=1) / 2 - values.min(axis=1) / 2

        def choose(spot: Spot) -> Split | None:
            if by_the_rule(spot) is None:
                return None
            if spot.rule is Rule.IMPORTANCE_SPREAD:
                score = spot.weights * spot.values.std(axis=1)
            else:
                spread = spot.values.max(axis=1) / 2 - spot.values.min(axis=1) / 2
                score = np.divide(spread, width, out=np.zeros_like(width), where=width > 0)
            found = spot.candidates()
            return replace(found, score=score[found.column]).best()

        return deliver(submission, grow(submission, choose))


@dataclass(frozen=True, slots=True)
class CutsOneNode:
    """Makes a leaf of one node that the rule splits, and follows the rule everywhere else.

    Saves: hardly anything. It measures the audit: the least that a provider can leave undone.
    """

    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow honestly, and cut one subtree off."""
        tree = local.growth_of(submission).tree
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
