"""What the owner works out and keeps: watch records, witnesses, fingerprint (spec §7).

Witnesses are the honest paths of a few watch records, worked out before anything is sent. Only
nodes that hold one are split, each once, so this costs a fraction of the tree.

    larger than LAID_OUT     threads share the columns, reading all over the table
    larger than ONE_THREAD   the same, the records of a LAID_OUT node now lying side by side
    others                   each thread has nodes of its own, again with records side by side
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ints, Numbers
from verix_anon.client import models
from verix_anon.client.evidence import evasion_probability
from verix_anon.client.manifest import Manifest, Witness, WitnessStep
from verix_anon.client.prepare.options import WATCH_RECORDS, PrepareOptions
from verix_anon.client.prepare.trackers import Assembled, Secret, Values
from verix_anon.client.prepare.traps import Planted
from verix_anon.client.table.owner_table import OwnerTable
from verix_anon.client.table.roles import Declared, Missing
from verix_anon.client.table.task import Labels, Task
from verix_anon.kernels import single_nodes, splits, trees
from verix_anon.machine import shares
from verix_anon.protocol import digests, rules
from verix_anon.protocol.contract import Contract, Rule
from verix_anon.protocol.messages import Submission

SAMPLE_ROWS = 20_000
FINGERPRINT_ROWS = 2_000
DROPS = (0.01, 0.05, 0.2)


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """The watch records."""

    rows: Ints
    """In the owner's table"""
    values: Floats
    """As they are sent, (n_quasi, n_watch)"""
    labels: Labels

    @classmethod
    def of(cls, values: Sequence[Values], labels: Labels, secret: Secret) -> "Watch":
        """Drawn from the genuine records."""
        # In the order drawn, so that the first few of them are a random choice as well.
        drawn = secret.generator("watch").permutation(labels.values.size)[:WATCH_RECORDS].copy()
        own = np.array([column[drawn] for column in values], np.float64)
        return cls(drawn, own, labels.of(drawn))

    def fingerprint(self) -> tuple[list[int], Floats]:
        """The top features, and their SHAP values; none without a target."""
        if self.labels.task is Task.NONE:
            return [], np.empty((self.rows.size, self.labels.n_outputs, 0))
        shap = models.shap_values(self.values.T, self.labels)
        top = models.top_features(shap)
        return top, shap[:, :, top]


@dataclass(frozen=True, slots=True, eq=False)
class Keeping:
    """What the manifest is made of, once the submission is assembled."""

    submission: Submission
    assembled: Assembled
    table: OwnerTable
    watch: Watch
    secret: Secret
    options: PrepareOptions

    def manifest(
        self,
        fingerprint: Callable[[], tuple[list[int], Floats]],
        declared: Declared,
        twins: Ints,
        planted: Planted,
    ) -> Manifest:
        """Everything the owner keeps, but how the file was read."""
        options, assembled, table = self.options, self.assembled, self.table
        records, labels, watch = self.submission.records, table.labels, self.watch
        watch_row = assembled.genuine_row[watch.rows]
        paired, apart = _honest_distances(
            self.submission, assembled.genuine_row, labels, secret=self.secret, options=options
        )
        options.progress("witnesses", 0, 1)
        some = watch_row[: options.witnesses]
        witnesses = find_witnesses(self.submission, some, threads=options.threads)
        options.progress("witnesses", 1, 1)
        # Fitted beside all of this.
        top_features, baseline = fingerprint()
        pairs = np.column_stack([assembled.genuine_row[twins], assembled.twin_row])
        return Manifest(
            contract=self.submission.contract,
            submission=self.submission.digest(threads=options.threads),
            table=table.digest,
            salt=self.secret.salt,
            unsafe_seed=options.unsafe_seed is not None,
            roles={name: role.value for name, role in table.roles.items()},
            quasi=table.quasi,
            missing=Missing(declared.missing).value,
            imputed=table.n_missing,
            planted=_described(planted, assembled),
            tracker_column=assembled.tracker_column,
            target_column=assembled.target_column,
            owner_row=assembled.owner_row,
            sentinel_row=assembled.sentinel_row,
            sentinel_tracker=records.tracker[assembled.sentinel_row],
            twin_row=pairs,
            twin_tracker=records.tracker[pairs],
            watch_row=watch_row,
            watch_values=watch.values,
            task=labels.task,
            classes=labels.classes,
            watch_target=watch.labels.values,
            witnesses=witnesses,
            top_features=top_features,
            baseline=baseline,
            calibration=paired,
            paper_calibration=apart,
            diversity=declared.diversity,
            release=declared.release,
            ordered=tuple(declared.orders),
            hierarchies={name: h.to_json() for name, h in table.hierarchies.items()},
            person=declared.person,
            derived=declared.derived,
            pseudonym=declared.pseudonym,
            parties=options.parties,
            provider_keys=options.pinned,
        )


def _described(planted: Planted, assembled: Assembled) -> dict[str, object]:
    """What was planted and what it buys, for the manifest and for people."""
    n_sent, n_sentinels = assembled.records.n_rows, assembled.sentinel_row.size
    return {
        "sentinels": int(n_sentinels),
        "twins": int(assembled.twin_row.size),
        "boundary": planted.n_boundary,
        "band": None if planted.band is None else list(planted.band),
        "evasion_before": planted.evasion_before,
        "evasion_after": planted.evasion_after,
        "evasion_at_drop": {
            str(drop): evasion_probability(n_sentinels, n_sent, drop) for drop in DROPS
        },
    }


def _honest_distances(
    submission: Submission, row: Ints, labels: Labels, *, secret: Secret, options: PrepareOptions
) -> tuple[Floats, Floats]:
    """The top features' distances of honest runs on samples, (runs, top features).

    First between the same records before and after, as `full` and `thin` compare; then, of the
    first run alone, between independent samples, as the paper does. None without a target.
    `row` says where each of the owner's records is among those sent.
    """
    rng, records = secret.generator("calibration"), submission.records
    found, apart = [], []
    for run in range(options.calibrate if labels.task is not Task.NONE else 0):
        sample = rng.choice(row.size, min(row.size, SAMPLE_ROWS), replace=False)
        some = rng.choice(sample.size, min(sample.size, FINGERPRINT_ROWS), replace=False)
        raw, own = records.values[:, row[sample]], labels.of(sample)
        middle = honest_midpoints(raw, records.target[row[sample]], submission.contract)
        before = models.shap_values(raw[:, some].T, own.of(some))
        after = models.shap_values(middle[:, some].T, own.of(some))
        top = models.top_features(before)
        found.append(models.distances(before[:, :, top], after, top))
        if run == 0:
            others = rng.choice(sample.size, some.size, replace=False)
            after = models.shap_values(middle[:, others].T, own.of(others))
            apart.append(models.distances(before[:, :, top], after, top))
        options.progress("calibrate", run + 1, options.calibrate)
    return _table(found), _table(apart)


def _table(distances: list[list[float]]) -> Floats:
    return np.array(distances, np.float64) if distances else np.empty((0, models.TOP))


def honest_midpoints(values: Floats, target: Bytes, contract: Contract) -> Floats:
    """What an honest provider would publish of these records, as midpoints."""
    by = rules.criterion(contract, target.tolist())
    least, deepest = contract.min_leaf, contract.max_depth
    top = rules.grow(values.tolist(), by, min_leaf=least, max_depth=deepest)
    middle = np.empty_like(values)
    for rows in rules.flatten(top)[1]:
        chosen = np.array(rows)
        part = values[:, chosen]
        middle[:, chosen] = (part.min(axis=1) / 2 + part.max(axis=1) / 2)[:, None]
    return middle


Found = tuple[int, splits.Candidate, float]

LAID_OUT, ONE_THREAD = 1 << 19, 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """Some records of the submission, and which rows they are."""

    values: Floats
    target: Bytes
    rows: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """The records under one node, how many are positive, and the witnesses among them."""

    records: _Records
    members: Numbers
    positive: int
    witnesses: Numbers
    path: tuple[WitnessStep, ...] = ()

    @property
    def n(self) -> int:
        """How many records there are."""
        return int(self.members.size)


def find_witnesses(submission: Submission, rows: Ints, *, threads: int) -> tuple[Witness, ...]:
    """The path and leaf of each of these rows in the tree that the rule grows."""
    if not rows.size:
        return ()
    sent = submission.records
    everyone = np.arange(sent.n_rows, dtype=np.uint32)
    records, positive = _Records(sent.values, sent.target, everyone), int(sent.target.sum())
    top = _Node(records, everyone, positive, np.sort(rows).astype(np.uint32))
    found: list[Witness] = []
    with ThreadPoolExecutor(threads) as pool:
        together = _Crew(submission, threads, pool.map, sent.n_rows)
        alone = [_Crew(submission, 1, map, ONE_THREAD) for _ in range(threads)]

        def walk(crew: _Crew, nodes: list[_Node]) -> list[Witness]:
            found: list[Witness] = []
            for node in nodes:
                crew.descend(crew.lay_out(node), 0, found)
            return found

        for large in together.descend(top, LAID_OUT, found):
            nodes = together.descend(together.lay_out(large), ONE_THREAD, found)
            # All that was laid out is used here, before the next takes its place.
            for part in pool.map(walk, alone, (nodes[i::threads] for i in range(threads))):
                found += part
    by_row = {witness.row: witness for witness in found}
    return tuple(by_row[int(row)] for row in rows)


class _Crew:
    """Threads that share out the columns of a node, with a buffer for each of them.

    Buffers are used again for every node: touching new memory costs as much as a median.
    """

    def __init__(
        self, submission: Submission, threads: int, map_: Callable[..., Iterable[Found]], most: int
    ) -> None:
        n_quasi, n_rows = submission.records.values.shape
        most = min(most, n_rows)
        self.submission, self.map = submission, map_
        self.ranges = shares(n_quasi, threads)
        self.weights = np.array([c.weight or 0 for c in submission.contract.quasi])
        self.buffers = [np.empty((2, most + 1)) for _ in self.ranges]
        self.laid_out = np.empty(n_quasi * min(most, LAID_OUT))

    def descend(self, top: _Node, until: int, found: list[Witness]) -> list[_Node]:
        """Split what is larger than `until`; returns what is not, and adds witnesses on the way."""
        waiting, small = [top], []
        while waiting:
            node = waiting.pop()
            if node.n <= until:
                small.append(node)
            else:
                waiting += self._split(node, found)
        return small

    def lay_out(self, node: _Node) -> _Node:
        """The same node with its records side by side, where those of another one were."""
        records, members = node.records, node.members
        n_quasi = len(records.values)
        values = self.laid_out[: n_quasi * node.n].reshape(n_quasi, node.n)

        def gather(columns: tuple[int, int]) -> None:
            for column in range(*columns):
                trees.gather(records.values[column], members, values[column])

        for _ in self.map(gather, self.ranges):
            pass
        own = _Records(values.view(), records.target[members], records.rows[members])
        for array in (own.values, own.target):
            # As in a submission: what is compiled for that is used here too.
            array.setflags(write=False)
        everyone = np.arange(node.n, dtype=np.uint32)
        witnesses = np.searchsorted(members, node.witnesses).astype(np.uint32)
        return _Node(own, everyone, node.positive, witnesses, node.path)

    def _split(self, node: _Node, found: list[Witness]) -> list[_Node]:
        """The children that hold witnesses; at a leaf none, and its witnesses are found."""
        contract, records, n = self.submission.contract, node.records, node.n
        column = -1
        is_pure = contract.rule is Rule.VARIANCE_REDUCTION and node.positive in (0, n)
        stops = n < 2 * contract.min_leaf or len(node.path) >= contract.max_depth
        if not stops and not is_pure:
            column, chosen = self._best_split(node)
        if column < 0:
            found += _at_leaf(self.submission, node)
            return []
        threshold, positive_left = float(chosen.threshold), int(chosen.positive_left)
        stays_left = np.take(records.values[column], node.members) <= threshold
        goes_left = records.values[column][node.witnesses] <= threshold
        children = []
        for left, positive in ((True, positive_left), (False, node.positive - positive_left)):
            members = node.members[stays_left == left]
            if (witnesses := node.witnesses[goes_left == left]).size:
                path = (*node.path, WitnessStep(column, threshold, left, n))
                children.append(_Node(records, members, positive, witnesses, path))
        return children

    def _best_split(self, node: _Node) -> tuple[int, splits.Candidate]:
        """The rule's column and split (spec §4); column -1 if no candidate is valid."""
        records, contract = node.records, self.submission.contract
        best, chosen, best_score = -1, None, -1.0
        values, members, min_leaf = records.values, node.members, contract.min_leaf

        def part(columns: tuple[int, int], buffer: Floats) -> Found:
            if contract.rule is Rule.VARIANCE_REDUCTION:
                target = records.target
                return single_nodes.best_split(values, members, target, columns, min_leaf, buffer)
            return single_nodes.best_offer(values, members, self.weights, columns, min_leaf, buffer)

        for column, found, score in self.map(part, self.ranges, self.buffers):
            # Strictly greater: among equals the first in contract order stays.
            if chosen is None or score > best_score:
                best, chosen, best_score = int(column), found, score
        assert chosen is not None
        return best, chosen


def _at_leaf(submission: Submission, node: _Node) -> list[Witness]:
    records, n = node.records, node.n
    rows, tracker = records.rows[node.members], submission.records.tracker
    # A column at a time: a leaf may be the whole table.
    values = (column[node.members] for column in records.values)
    bounds = tuple((float(own.min()), float(own.max())) for own in values)
    leaf = digests.leaf_digest(n, bounds, ((int(row), tracker[row].tobytes()) for row in rows))
    rows = records.rows[node.witnesses]
    return [Witness(row=int(row), path=node.path, leaf=leaf) for row in rows]
