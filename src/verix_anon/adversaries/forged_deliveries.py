"""Providers that do the work and then alter what they deliver, or deliver other work."""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar

import numpy as np

from verix_anon.adversaries.deviating_growth import check_rule
from verix_anon.kernels import trees
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Digest, Rule
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.providers import Provider
from verix_anon.protocol.records import Records
from verix_anon.provider.local import LocalProvider


@dataclass(frozen=True, slots=True)
class ForgesRoot:
    """Delivers what another provider made, under a root that fits nothing (paper: dumb).

    Saves: the hashing. Risks: one recomputation of the root.
    """

    inner: Provider

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize with the inner provider and replace the root."""
        delivery = self.inner.anonymize(submission)
        forged = Digest(sha256(b"forged" + delivery.header.root).digest())
        return replace(delivery, header=replace(delivery.header, root=forged))


def restamped(submission: Submission, made: Delivery) -> Delivery:
    """The delivery with a header and a root for this submission, whatever else is wrong with it."""
    digest = submission.digest()
    grouped = trees.group_rows(made.records.leaf, made.tree.n_leaves)
    members = merkle.Members(*grouped, made.records.row, made.records.tracker)
    root = merkle.root_of(submission.contract, digest, made.tree, made.leaves, members)
    header = replace(made.header, contract=submission.contract.digest, submission=digest, root=root)
    return replace(made, header=header)


@dataclass(frozen=True, slots=True)
class FlipsLabels:
    """Works with a share of the labels flipped, and returns them so.

    Saves: nothing; it spoils the data. Risks: one digest of the target column.
    """

    fraction: float = 0.01
    seed: int = 0
    only: ClassVar[Rule] = Rule.VARIANCE_REDUCTION

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize other labels than those that were sent."""
        check_rule(self, submission)
        sent = submission.records
        target = sent.target.copy()
        rng = np.random.default_rng(self.seed)
        target[rng.choice(target.size, max(1, round(self.fraction * target.size)), False)] ^= 1
        altered = replace(submission, records=replace(sent, target=target))
        return restamped(submission, LocalProvider().anonymize(altered))


@dataclass(frozen=True, slots=True)
class SwapsValues:
    """Works with the values of a share of the records exchanged in every column.

    Saves: nothing; it spoils the data, and needs no labels for it. Risks: bounds and leaves that
    are not those of the records that were sent.
    """

    fraction: float = 0.01
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize some records as if they were others."""
        sent = submission.records
        rng = np.random.default_rng(self.seed)
        some = rng.choice(sent.n_rows, max(2, round(self.fraction * sent.n_rows)), replace=False)
        values = sent.values.copy()
        for column in values:
            column[some] = column[rng.permutation(some)]
        altered = replace(submission, records=replace(sent, values=values))
        return restamped(submission, LocalProvider().anonymize(altered))


@dataclass(frozen=True, slots=True)
class SwapsTrackers:
    """Exchanges the trackers of a share of the records, so that rows and people part.

    Saves: nothing; the release would give people each other's classes. Risks: one digest of the
    tracker column, and any sentinel or twin among them.
    """

    fraction: float = 0.01
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize honestly, then move trackers."""
        made = LocalProvider().anonymize(submission)
        sent = submission.records
        rng = np.random.default_rng(self.seed)
        n = max(2, round(self.fraction * sent.n_rows))
        some = rng.choice(sent.n_rows, n, replace=False)
        tracker = sent.tracker.copy()
        tracker[some] = tracker[np.roll(some, 1)]
        return restamped(submission, replace(made, records=replace(made.records, tracker=tracker)))


@dataclass(frozen=True, slots=True)
class WidensBounds:
    """Publishes wider bounds than the records have, for a share of the leaves.

    Saves: nothing much; it hides that bounds were never worked out. Risks: replay compares every
    bound; without the submission only a witness's leaf shows it.
    """

    fraction: float = 1.0
    by: float = 0.1
    """Of the width of the column's bounds over all leaves."""
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize honestly, then move bounds outwards."""
        made = LocalProvider().anonymize(submission)
        leaves, rng = made.leaves, np.random.default_rng(self.seed)
        n = max(1, round(self.fraction * leaves.n_leaves))
        some = rng.choice(leaves.n_leaves, n, replace=False)
        low, high = np.array(leaves.minimum, np.float64), np.array(leaves.maximum, np.float64)
        margin = self.by * (high.max(axis=0) - low.min(axis=0))
        low[some] -= margin
        high[some] += margin
        if submission.contract.is_coded:
            # Bounds that can be positions, so that their form does not give them away.
            last = [float((column.size or 1) - 1) for column in submission.contract.quasi]
            low, high = np.maximum(np.floor(low), 0.0), np.minimum(np.ceil(high), last)
        wider = replace(leaves, minimum=low, maximum=high)
        return restamped(submission, replace(made, leaves=wider))


@dataclass(frozen=True, slots=True)
class ReplaysOld:
    """Delivers the work of an earlier submission again, under a header of this one.

    Saves: everything. Risks: every tracker is another one, for each submission has its own salt.
    """

    old: Submission | None = None
    """None: the same people, sent before under another salt, which is the likeliest case."""
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize the earlier submission, and restamp the delivery."""
        old = self.old
        if old is None:
            rng, sent = np.random.default_rng(self.seed), submission.records
            order = rng.permutation(sent.n_rows)
            records = Records(
                tracker=rng.integers(0, 256, (sent.n_rows, 32), np.uint8),
                values=np.ascontiguousarray(sent.values[:, order]),
                target=sent.target[order],
            )
            contract = replace(submission.contract, submission_id=rng.bytes(16).hex())
            old = Submission(contract=contract, records=records)
        return restamped(submission, LocalProvider().anonymize(old))
