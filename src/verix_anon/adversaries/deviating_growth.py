"""Grow a tree by another rule than the agreed one, and deliver it as if nothing were wrong.

An adversary that grows its own tree only says how it chooses the split of a node; counts,
bounds, records and root then follow from that tree as they would for an honest one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.errors import ProviderError
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.providers import Provider
from verix_anon.protocol.tree import Leaves, Tree
from verix_anon.provider import engine

Top = rules.Node | rules.Leaf
Split = tuple[int, float]
"""Column and threshold."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The splits that leave enough records on both sides, in contract order."""

    column: Ints
    threshold: Floats
    score: Floats

    def ranked(self) -> Ints:
        """Their positions, the best first, among equals in contract order."""
        return np.argsort(-self.score, kind="stable")

    def at(self, position: int) -> Split:
        """One of them."""
        return int(self.column[position]), float(self.threshold[position])

    def best(self, among: Collection[int] | None = None) -> Split | None:
        """The best of them, or of those that split one of these columns."""
        ranked = self.ranked().tolist()
        possible = (i for i in ranked if among is None or self.column[i] in among)
        return next(map(self.at, possible), None)


@dataclass(frozen=True, eq=False)
class Spot:
    """A node to be split: its records, how deep it lies, and what chance has in store for it."""

    submission: Submission
    rows: Ints
    depth: int
    rng: np.random.Generator

    @cached_property
    def values(self) -> Floats:
        """The records' values, a row per quasi-identifier."""
        return self.submission.records.values[:, self.rows]

    @cached_property
    def target(self) -> Bytes:
        """The records' labels."""
        return self.submission.records.target[self.rows]

    @property
    def rule(self) -> Rule:
        """The rule that was agreed on."""
        return self.submission.contract.rule

    @property
    def min_leaf(self) -> int:
        """The least number of records in a leaf that was agreed on."""
        return self.submission.contract.min_leaf

    def is_final(self, *, min_leaf: int | None = None) -> bool:
        """Whether the rule makes it a leaf, whatever its columns offer."""
        n, min_leaf = self.rows.size, min_leaf or self.min_leaf
        if n < 2 * min_leaf or self.depth >= self.submission.contract.max_depth:
            return True
        return self.rule is Rule.VARIANCE_REDUCTION and int(self.target.sum()) in (0, n)

    def candidates(
        self, thresholds: Floats | None = None, *, min_leaf: int | None = None
    ) -> Candidates:
        """The columns split at these thresholds, or the rule's, scored by the rule (spec §4)."""
        min_leaf = min_leaf or self.min_leaf
        if thresholds is None:
            thresholds = rule_thresholds(self.rule, self.values, min_leaf)
        left = self.values <= thresholds[:, None]
        n_left = left.sum(axis=1)
        column = np.flatnonzero((n_left >= min_leaf) & (self.rows.size - n_left >= min_leaf))
        if self.rule is Rule.VARIANCE_REDUCTION:
            goes_left, n = left[column], self.rows.size
            nl = n_left[column].astype(np.float64)
            l = (goes_left @ self.target.astype(np.int64)).astype(np.float64)  # noqa: E741
            nr, r = n - nl, float(self.target.sum()) - l
            score = l * l / nl + r * r / nr
        else:
            score = self.weights[column] * np.ptp(self.values[column], axis=1)
        return Candidates(column, thresholds[column], score)

    @property
    def weights(self) -> Floats:
        """The contract's weights; times a spread they are at most 2^52, so exact."""
        return np.array([float(column.weight or 0) for column in self.submission.contract.quasi])


def medians(values: Floats) -> Floats:
    """The lower median of every row."""
    middle = (values.shape[1] + 1) // 2 - 1
    found: Floats = np.partition(values, middle, axis=1)[:, middle]
    return found


def rule_thresholds(rule: Rule, values: Floats, min_leaf: int) -> Floats:
    """Where a rule would split each row of values: its lower median, or the value below it.

    NaN where it cannot know one.
    """
    median = medians(values)
    if rule is Rule.VARIANCE_REDUCTION:
        return median
    n_left = (values <= median[:, None]).sum(axis=1)
    is_below = values < median[:, None]
    below = np.where(is_below, values, -np.inf).max(axis=1)
    n_below = is_below.sum(axis=1)
    most = values.shape[1] - min_leaf
    other = np.where((min_leaf <= n_below) & (n_below <= most), below, np.nan)
    return np.where((min_leaf <= n_left) & (n_left <= most), median, other)


Choose = Callable[[Spot], Split | None]
"""The split of a node, or None to make it a leaf."""


def by_the_rule(spot: Spot, *, min_leaf: int | None = None) -> Split | None:
    """What the contract's rule chooses; with another `min_leaf`, what it would then choose."""
    if spot.is_final(min_leaf=min_leaf):
        return None
    return spot.candidates(min_leaf=min_leaf).best()


class GrowsOtherwise(ABC):
    """A provider that chooses splits its own way, and commits honestly to what it grew."""

    __slots__ = ()

    @abstractmethod
    def choose(self, spot: Spot) -> Split | None:
        """The split of a node, or None to make it a leaf."""

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow the tree, and deliver all records under it."""
        check_rule(self, submission)
        seed = getattr(self, "seed", 0)
        return deliver(submission, grow(submission, self.choose, seed=seed))


def grow(submission: Submission, choose: Choose, *, seed: int = 0) -> Top:
    """The tree of all records; depth is at most 50, so it recurses."""
    rng = np.random.default_rng(seed)

    def node(rows: Ints, depth: int) -> Top:
        split = choose(Spot(submission, rows, depth, rng))
        if split is None:
            return rules.Leaf(tuple(rows.tolist()))
        column, threshold = split
        is_left = submission.records.values[column][rows] <= threshold
        left = node(rows[is_left], depth + 1)
        return rules.Node(column, threshold, left, node(rows[~is_left], depth + 1))

    return node(np.arange(submission.records.n_rows), 0)


def check_rule(provider: Provider, submission: Submission) -> None:
    """Refuse a submission under whose rule a provider has nothing to misbehave in."""
    rule, only = submission.contract.rule, getattr(provider, "only", None)
    if only not in (None, rule):
        raise ProviderError(
            f"{type(provider).__name__} misbehaves under the rule {only} alone, not under {rule}"
        )


def as_rules(tree: Tree, node: int = 0) -> Top:
    """A tree of arrays as one of objects, without rows."""
    if tree.column[node] < 0:
        return rules.Leaf(())
    return rules.Node(
        int(tree.column[node]),
        float(tree.threshold[node]),
        as_rules(tree, int(tree.left[node])),
        as_rules(tree, int(tree.right[node])),
    )


def routed(top: Top, values: Floats, rows: Ints) -> Top:
    """The same splits with these rows in the leaves they lead to."""
    if isinstance(top, rules.Leaf):
        return rules.Leaf(tuple(rows.tolist()))
    left = values[top.column][rows] <= top.threshold
    return rules.Node(
        top.column,
        top.threshold,
        routed(top.left, values, rows[left]),
        routed(top.right, values, rows[~left]),
    )


def deliver(submission: Submission, top: Top) -> Delivery:
    """All records under this tree, with bounds, counts and root that fit it."""
    return engine.pack(submission, growth_of(submission, top))


def growth_of(submission: Submission, top: Top) -> engine.Growth:
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
