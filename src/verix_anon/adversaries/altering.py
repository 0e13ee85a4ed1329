"""Providers that grow another tree than the one agreed on, from all records."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verix_anon.adversaries.growing import (
    Candidates,
    Spot,
    by_the_rule,
    deliver,
    grow,
    thresholds,
)
from verix_anon.protocol.messages import Delivery, Submission

__all__ = [
    "Deviates",
    "LowersK",
    "SamplesRecords",
    "SkipsColumns",
    "SplitsAtMean",
    "SplitsBlindly",
    "SplitsBlindlyAbove",
    "SplitsBlindlyBelow",
    "StopsEarly",
]


@dataclass(frozen=True, slots=True)
class SplitsBlindly:
    """Splits a random column, blind to the target or to the spread (paper: approximate).

    Saves: scoring every column at every node. Risks: the tree is not the one the rule gives,
    which only a check of the splits can know for certain.
    """

    seed: int = 0
    strict: bool = False
    """Draw among all columns, and stop where the drawn one cannot be split."""

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow the blind tree and commit to it honestly."""
        blind = _Blind(np.random.default_rng(self.seed), strict=self.strict)
        return deliver(submission, grow(submission, blind))


@dataclass(frozen=True, slots=True)
class _Blind:
    """A random column where the rule would split it; purity does not stop it (spec §4)."""

    rng: np.random.Generator
    strict: bool = False

    def __call__(self, spot: Spot) -> tuple[int, float] | None:
        contract = spot.submission.contract
        n, least = spot.rows.size, contract.min_leaf
        if n < 2 * least or spot.depth >= contract.max_depth:
            return None
        columns = spot.submission.records.values
        for column in self.rng.permutation(len(columns)).tolist():
            values = columns[column][spot.rows]
            threshold = float(thresholds(spot.rule, values[None], least)[0])
            n_left = int((values <= threshold).sum())
            if least <= n_left <= n - least:
                return column, threshold
            if self.strict:
                return None
        return None


@dataclass(frozen=True, slots=True)
class SplitsBlindlyBelow:
    """Follows the rule for the top levels, where an auditor looks first, and is blind below.

    Saves: scoring where most nodes are. Risks: every path deviates somewhere, so one witness
    is enough.
    """

    depth: int = 3
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow by the rule to the given depth, and blindly from there."""
        blind = _Blind(np.random.default_rng(self.seed))
        return deliver(
            submission,
            grow(submission, lambda at: (by_the_rule if at.depth < self.depth else blind)(at)),
        )


@dataclass(frozen=True, slots=True)
class SplitsBlindlyAbove:
    """Splits the largest nodes blindly, which cost the most, and follows the rule below.

    Saves: scoring the nodes that hold all the records. Risks: the root is on every path.
    """

    depth: int = 2
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow blindly to the given depth, and by the rule from there."""
        blind = _Blind(np.random.default_rng(self.seed))
        return deliver(
            submission,
            grow(submission, lambda at: (blind if at.depth < self.depth else by_the_rule)(at)),
        )


@dataclass(frozen=True, slots=True)
class StopsEarly:
    """Follows the rule to a depth and leaves it at that.

    Saves: the lower half of the tree. Risks: large leaves that the rule would split; classes
    are coarser than the owner paid for, though no less anonymous.
    """

    depth: int = 6

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow a shallow tree."""
        top = grow(submission, lambda at: None if at.depth >= self.depth else by_the_rule(at))
        return deliver(submission, top)


@dataclass(frozen=True, slots=True)
class SkipsColumns:
    """Looks at a share of the columns only, the same ones at every node.

    Saves: sorting and scoring the others. Risks: a skipped column is the best one somewhere.
    """

    share: float = 0.5
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow by the rule as if the contract had fewer columns."""
        n_quasi = len(submission.contract.quasi)
        rng = np.random.default_rng(self.seed)
        kept = rng.permutation(n_quasi)[: max(1, round(self.share * n_quasi))]

        def allowed(spot: Spot, found: Candidates) -> tuple[int, float] | None:
            ranked = [i for i in found.ranked().tolist() if found.column[i] in kept]
            return found.at(ranked[0]) if ranked else None

        return deliver(submission, grow(submission, _unless_stopped(allowed)))


def _unless_stopped(
    choose: Callable[[Spot, Candidates], tuple[int, float] | None],
) -> Callable[[Spot], tuple[int, float] | None]:
    """A choice among the rule's candidates, at nodes that the rule would split."""

    def chosen(spot: Spot) -> tuple[int, float] | None:
        if by_the_rule(spot) is None:
            return None
        least = spot.submission.contract.min_leaf
        return choose(spot, spot.candidates(spot.thresholds(min_leaf=least), min_leaf=least))

    return chosen


@dataclass(frozen=True, slots=True)
class SamplesRecords:
    """Chooses each split on a sample of the node's records.

    Saves: nearly all of the scoring in large nodes. Risks: the sample's best column is not
    always the best. With `exact_medians` the threshold at least is the right one of its column.
    """

    share: float = 0.05
    exact_medians: bool = False
    least: int = 40
    """A sample of fewer records would say nothing; smaller nodes are looked at whole."""
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow with splits chosen on samples."""
        rng = np.random.default_rng(self.seed)

        def choose(spot: Spot) -> tuple[int, float] | None:
            if by_the_rule(spot) is None:
                return None
            n_all, min_leaf = spot.rows.size, submission.contract.min_leaf
            n = min(n_all, max(self.least, round(self.share * n_all)))
            seen = Spot(submission, np.sort(rng.choice(spot.rows, n, replace=False)), spot.depth)
            # In a sample a leaf that is just large enough has this many records.
            few = max(1, min_leaf * n // n_all)
            at = spot.thresholds(min_leaf=min_leaf)
            at = at if self.exact_medians else seen.thresholds(min_leaf=few)
            possible = spot.candidates(at, min_leaf=min_leaf).column
            found = seen.candidates(at, min_leaf=1)
            ranked = [i for i in found.ranked().tolist() if found.column[i] in possible]
            return found.at(ranked[0]) if ranked else None

        return deliver(submission, grow(submission, choose))


@dataclass(frozen=True, slots=True)
class SplitsAtMean:
    """Splits at the mean, which takes one pass where the median takes a selection.

    Saves: the sort. Risks: a threshold that is hardly ever an observed value.
    """

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow by the rule's score, with means for medians."""
        least = submission.contract.min_leaf

        def choose(spot: Spot) -> tuple[int, float] | None:
            if spot.is_final(min_leaf=least):
                return None
            # Divided first, so that the sum of large values cannot overflow.
            means = (spot.values / spot.rows.size).sum(axis=1)
            found = spot.candidates(means, min_leaf=least)
            return found.at(int(found.ranked()[0])) if found.column.size else None

        return deliver(submission, grow(submission, choose))


@dataclass(frozen=True, slots=True)
class LowersK:
    """Follows the rule with smaller leaves than agreed.

    Saves: nothing; it sells better utility for less privacy. Risks: the first count of a leaf.
    """

    share: float = 0.5
    """Of the contract's min_leaf: 0.5 makes k of 2k, 0.4 what k = 2 has where k = 5 has 2k."""

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow with a smaller min_leaf."""
        least = max(1, int(self.share * submission.contract.min_leaf))
        return deliver(submission, grow(submission, lambda at: by_the_rule(at, min_leaf=least)))


@dataclass(frozen=True, slots=True)
class Deviates:
    """Takes the second-best split at a share of the nodes, and follows the rule at the others.

    Saves: nothing. It measures the audit: a share this small is what a check must still see.
    """

    fraction: float = 0.01
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow with second-best splits here and there."""
        rng = np.random.default_rng(self.seed)

        def choose(_: Spot, found: Candidates) -> tuple[int, float]:
            ranked = found.ranked()
            deviates = ranked.size > 1 and rng.random() < self.fraction
            return found.at(int(ranked[1 if deviates else 0]))

        return deliver(submission, grow(submission, _unless_stopped(choose)))
