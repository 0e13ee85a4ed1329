"""Providers that leave out work by leaving out records, and then hide it or not."""

from dataclasses import dataclass, replace

import numpy as np

from verix_anon.adversaries.deviating_growth import as_rules, deliver, routed
from verix_anon.arrays import Ids, Ints
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.records import Records
from verix_anon.provider import engine, local


def without(submission: Submission, dropped: Ints) -> Delivery:
    """An honest delivery of all other records, with a root that fits it."""
    kept = np.setdiff1d(np.arange(submission.records.n_rows), dropped)
    return engine.pack(submission, local.growth_of(_part(submission, kept)), kept)


def _part(submission: Submission, kept: Ints) -> Submission:
    sent = submission.records
    values = np.ascontiguousarray(sent.values[:, kept])
    records = Records(tracker=sent.tracker[kept], values=values, target=sent.target[kept])
    return replace(submission, records=records)


def _under(made: Delivery, submission: Submission, leaf: Ids, rows: Ints | None = None) -> Delivery:
    """These rows in these leaves of a tree that was made, with counts and a root that fit."""
    count = np.bincount(leaf, minlength=made.tree.n_leaves)
    leaves = replace(made.leaves, count=count)
    growth = engine.Growth(tree=made.tree, leaves=leaves, leaf_of_row=leaf)
    return engine.pack(submission, growth, rows)


def _drawn(n_rows: int, fraction: float, seed: int) -> Ints:
    """A share of the rows, blindly."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n_rows, round(fraction * n_rows), replace=False)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class DropsRows:
    """Drops a share of the records blindly, and is honest about the rest (paper: lazy).

    Saves: that share of the work. Risks: sentinels and twins are missed with near certainty,
    and any check that counts records sees it at once.
    """

    fraction: float = 0.05
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize what is left."""
        return without(submission, _drawn(submission.records.n_rows, self.fraction, self.seed))


@dataclass(frozen=True, slots=True)
class RefillsWithCopies:
    """Drops a share of the records and delivers others twice, so that the number is right.

    Saves: that share of the work. Risks: rows that come twice, and rows that never come.
    """

    fraction: float = 0.05
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize what is left, and copy some of it."""
        n_rows = submission.records.n_rows
        dropped = _drawn(n_rows, self.fraction, self.seed)
        made = without(submission, dropped)
        copied = np.random.default_rng(self.seed).choice(made.records.row.size, dropped.size)
        at = np.sort(np.concatenate([np.arange(made.records.row.size), copied]))
        return _under(made, submission, made.records.leaf[at], made.records.row[at])


@dataclass(frozen=True, slots=True)
class EchoesDropped:
    """Leaves a share of the records out of the tree, and returns them all the same.

    Each is put into a leaf at random, and counted there. Saves: that share of the work.
    Risks: neither sentinels nor twins that came back say anything, unless the two of a pair
    were parted; but most echoed records lie outside the bounds of their leaf.
    """

    fraction: float = 0.05
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize a part, and give the rest any leaf."""
        return self.hide(submission, _drawn(submission.records.n_rows, self.fraction, self.seed))

    def hide(self, submission: Submission, dropped: Ints) -> Delivery:
        """The same, with these rows left out of the tree."""
        n_rows = submission.records.n_rows
        made = without(submission, dropped)
        leaf = np.empty(n_rows, np.int32)
        leaf[made.records.row] = made.records.leaf
        rng = np.random.default_rng(self.seed)
        leaf[dropped] = rng.integers(0, made.tree.n_leaves, dropped.size)
        return _under(made, submission, leaf)


@dataclass(frozen=True, slots=True)
class GrowsOnSample:
    """Grows the tree from a share of the records and routes the others in afterwards.

    Saves: the rest of the growing. Risks: medians and counts are those of the sample, so nearly
    every split is a little off; nothing else is wrong with the delivery.
    """

    share: float = 0.95
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Grow on a sample, and deliver all records under that tree."""
        n_rows = submission.records.n_rows
        kept = np.setdiff1d(np.arange(n_rows), _drawn(n_rows, 1 - self.share, self.seed))
        growth = local.growth_of(_part(submission, kept))
        top = routed(as_rules(growth.tree), submission.records.values, np.arange(n_rows))
        return deliver(submission, top)
