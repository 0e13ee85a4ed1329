"""Providers that know the protocol and this code, but not the salt (paper §4.2: informed).

What gives a trap away is in the submission itself. A twin is an exact duplicate. A sentinel is
a record moved a little, so that it has a neighbour closer than people have, and it comes from
where a forest cannot tell the classes apart, which the provider can train as well as the owner,
unless no labels were sent.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from verix_anon.adversaries.missing_rows import EchoesDropped, without
from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider import engine, local

BAND = (0.40, 0.60)
"""Where sentinels come from, a little wider than the paper's, for another forest differs."""
APART = 10.0
"""How far other categories and labels are, in standard deviations: a sentinel keeps its own."""
SENTINELS = 0.02
TREES, DEPTH, SAMPLE = 50, 5, 0.1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Suspicion:
    """What the submission shows of each record."""

    is_duplicate: Flags
    """Another record is equal in every value: one of the two may be a twin."""
    distance: Floats
    """To the nearest record that is not equal, in standard deviations."""
    probability: Floats
    """P(class 1) from a forest like the owner's; 1/2 throughout where no labels were sent."""

    @property
    def is_uncertain(self) -> Flags:
        """Whether the record lies in the band that sentinels come from."""
        return (self.probability >= BAND[0]) & (self.probability <= BAND[1])

    def safest(self) -> Ints:
        """The rows from those that look least like a trap to those that look most like one."""
        return np.lexsort((-self.distance, self.is_uncertain, self.is_duplicate))

    def likeliest_sentinels(self) -> Ints:
        """The rows from those that look most like a sentinel."""
        return np.lexsort((self.distance, ~self.is_uncertain, self.is_duplicate))


def suspect(submission: Submission, *, seed: int = 0) -> Suspicion:
    """Look for duplicates, close neighbours and uncertain records."""
    from scipy.spatial import KDTree

    points = _points(submission)
    unique, inverse, count = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    nearest = np.full(len(unique), np.inf)
    if len(unique) > 1:
        nearest = KDTree(unique).query(unique, k=2)[0][:, 1]
    return Suspicion(
        is_duplicate=count[inverse] > 1,
        distance=nearest[inverse],
        probability=_uncertainty(submission, seed),
    )


def _points(submission: Submission) -> Floats:
    """Records as points: numbers in standard deviations, categories and labels far apart."""
    records = submission.records
    columns = []
    for column, values in zip(submission.contract.quasi, records.values, strict=True):
        # Scaled by the greatest value first, so that squares cannot overflow.
        scaled = values / (float(np.abs(values).max()) or 1.0)
        unit = float(scaled.std()) or 1.0
        columns.append(values * APART if column.categories is not None else scaled / unit)
    return np.column_stack([*columns, records.target * APART])


def _uncertainty(submission: Submission, seed: int) -> Floats:
    """P(class 1) of every record, from the owner's kind of forest under another seed."""
    import xgboost

    records = submission.records
    if submission.contract.target is None:
        return np.full(records.n_rows, 0.5)
    rng = np.random.default_rng(seed)
    n = max(2, round(SAMPLE * records.n_rows))
    some = rng.choice(records.n_rows, n, replace=False)
    # Binary32 ends at 3.4e38.
    rows = np.clip(records.values.T, -1e30, 1e30).astype(np.float32)
    share = math.isqrt(rows.shape[1]) / rows.shape[1]
    shape = {"num_parallel_tree": TREES, "max_depth": DEPTH, "seed": seed, "nthread": 1}
    drawn = {"subsample": 0.63, "colsample_bynode": share}
    plain = {"base_score": 0.0, "eta": 1.0, "reg_lambda": 0.0}
    data = xgboost.DMatrix(rows[some], label=records.target[some])
    forest = xgboost.train(shape | drawn | plain, data, num_boost_round=1)
    found: Floats = forest.predict(xgboost.DMatrix(rows)).astype(np.float64)
    return found


@dataclass(frozen=True, slots=True)
class DropsUntrapped:
    """Drops the records that look least like a trap.

    Saves: that share of the work, and passes the traps: up to about two fifths of the records can
    be named that hold none. Risks: any check that counts records; with `echoes` it returns them
    all the same, and risks the checks of bounds and splits.
    """

    fraction: float = 0.05
    echoes: bool = False
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize what might be a trap, and as much of the rest as is left."""
        n = round(self.fraction * submission.records.n_rows)
        dropped = np.sort(suspect(submission, seed=self.seed).safest()[:n])
        if self.echoes:
            return EchoesDropped(seed=self.seed).hide(submission, dropped)
        return without(submission, dropped)


@dataclass(frozen=True, slots=True)
class DropsFoundTraps:
    """Drops the records that look like traps, so that the owner has fewer to look for.

    Saves: hardly anything; it blinds a later audit that trusts in traps. Risks: the owner knows
    every trap by its tracker, so the better this one finds them, the surer it is caught.
    """

    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize all but one of each set of duplicates and the likeliest sentinels."""
        found = suspect(submission, seed=self.seed)
        points = _points(submission)
        first = np.unique(points, axis=0, return_index=True)[1]
        copies = np.setdiff1d(np.arange(len(points)), first)
        n = round(SENTINELS * len(points))
        dropped = np.union1d(copies, found.likeliest_sentinels()[:n])
        return without(submission, dropped)


@dataclass(frozen=True, slots=True)
class MovesSuspects:
    """Puts the records that look like sentinels into the next leaf, and leaves people in theirs.

    Saves: nothing; it tries what a check of genuine records cannot see. Risks: replay of all
    records; without the submission, each one that it took for a sentinel and that is a person.
    """

    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize honestly, then move what is suspect."""
        n = max(1, round(SENTINELS * submission.records.n_rows))
        return moved(submission, suspect(submission, seed=self.seed).likeliest_sentinels()[:n])


def moved(submission: Submission, rows: Ints) -> Delivery:
    """The honest delivery with these rows in the next leaf, unless their own became too small."""
    least = submission.contract.min_leaf
    made = local.growth_of(submission)
    leaf, count = made.leaf_of_row.copy(), made.leaves.count.copy()
    low, high = made.leaves.minimum.copy(), made.leaves.maximum.copy()
    for row in rows.tolist():
        old, new = leaf[row], (leaf[row] + 1) % count.size
        if count[old] > least:
            count[old], count[new], leaf[row] = count[old] - 1, count[new] + 1, new
            values = submission.records.values[:, row]
            low[new], high[new] = np.minimum(low[new], values), np.maximum(high[new], values)
    leaves = replace(made.leaves, count=count, minimum=low, maximum=high)
    growth = engine.Growth(tree=made.tree, leaves=leaves, leaf_of_row=leaf)
    return engine.pack(submission, growth)
