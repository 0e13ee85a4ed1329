"""The matrix: each deviation, made as consistently as can be, and the layer that must see it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

from client import cases
from verix.adversaries import DropsRows, ForgesRoot, SplitsBlindly
from verix.client import fingerprint
from verix.client.manifest import Manifest
from verix.client.prepare import WATCH_RECORDS, Prepared
from verix.client.prepare.sentinels import Traps, evasion_probability
from verix.client.verdict import Finding, Outcome, Status, Verdict
from verix.client.verify import replay, sentinels, splits, twins, verify
from verix.client.verify.case import Audit, Options
from verix.errors import TableError
from verix.protocol import rules
from verix.protocol.contract import Commitment, Digest
from verix.protocol.messages import Delivered, Delivery, Submission
from verix.provider.local import LocalProvider

LAYERS = ("commitment", "sentinels", "twins", "replay", "splits")
# So unlikely a result means a broken promise, not bad luck.
NEVER = 1e-6


@pytest.fixture(autouse=True)
def _quick_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fingerprint and utility only inform here; a model of two trees costs less."""
    monkeypatch.setattr(fingerprint, "ROUNDS", 2)


@dataclass(frozen=True)
class Attack:
    """A delivery, the layer that must see what is wrong with it, and the place it must name."""

    delivery: Delivery
    layer: str
    place: str


Make = Callable[[Submission], Attack]


def inner_nodes(top: cases.Top) -> list[tuple[int, rules.Node, int]]:
    """(number, node, depth) of every split."""
    found = enumerate(cases.nodes_of(top))
    return [(i, node, depth) for i, (node, depth) in found if isinstance(node, rules.Node)]


def leaf_nodes(top: cases.Top) -> list[tuple[int, rules.Leaf, int]]:
    found = enumerate(cases.nodes_of(top))
    return [(i, node, depth) for i, (node, depth) in found if isinstance(node, rules.Leaf)]


def altered(sent: Submission, **fields: npt.NDArray[Any]) -> Delivery:
    """The honest delivery with other records, and with leaves and root that fit them."""
    delivery = cases.honest(sent)
    records = replace(delivery.records, **fields)
    leaves = cases.true_leaves(sent, records, delivery.tree.n_leaves)
    return cases.resealed(sent, delivery, records=records, leaves=leaves)


def drops_one(sent: Submission) -> Attack:
    delivery, row = cases.honest(sent), 123
    kept = np.arange(sent.records.n_rows) != row
    old = delivery.records
    fields = (old.row[kept], old.tracker[kept], old.leaf[kept], old.target[kept])
    records = Delivered(row=fields[0], tracker=fields[1], leaf=fields[2], target=fields[3])
    leaves = cases.true_leaves(sent, records, delivery.tree.n_leaves)
    made = cases.resealed(sent, delivery, records=records, leaves=leaves)
    return Attack(made, "replay", f"row {row}")


def doubles_one(sent: Submission) -> Attack:
    """One record stands in for another of its leaf."""
    delivery = cases.honest(sent)
    leaf = delivery.records.leaf
    gone, doubled = np.flatnonzero(leaf == leaf[50])[:2]
    row, tracker, target = (
        a.copy() for a in (delivery.records.row, delivery.records.tracker, delivery.records.target)
    )
    row[gone], tracker[gone], target[gone] = row[doubled], tracker[doubled], target[doubled]
    made = altered(sent, row=row, tracker=tracker, target=target)
    return Attack(made, "replay", f"row {gone} and row {doubled}")


def moves_bound(sent: Submission, *, high: bool, outwards: bool) -> Attack:
    delivery, leaf, column = cases.honest(sent), 3, 1
    leaves = delivery.leaves
    bound = (leaves.maximum if high else leaves.minimum).copy()
    bound[leaf, column] = np.nextafter(bound[leaf, column], np.inf if high is outwards else -np.inf)
    spoilt = replace(leaves, maximum=bound) if high else replace(leaves, minimum=bound)
    return Attack(cases.resealed(sent, delivery, leaves=spoilt), "replay", f"leaf {leaf} in column")


def widens_top(sent: Submission) -> Attack:
    return moves_bound(sent, high=True, outwards=True)


def narrows_top(sent: Submission) -> Attack:
    return moves_bound(sent, high=True, outwards=False)


def widens_bottom(sent: Submission) -> Attack:
    return moves_bound(sent, high=False, outwards=True)


def narrows_bottom(sent: Submission) -> Attack:
    return moves_bound(sent, high=False, outwards=False)


def swaps_leaves(sent: Submission) -> Attack:
    leaf = cases.honest(sent).records.leaf.copy()
    one, two = np.flatnonzero(leaf == 2)[0], np.flatnonzero(leaf == leaf.max())[0]
    leaf[[one, two]] = leaf[[two, one]]
    return Attack(altered(sent, leaf=leaf), "replay", "Leaf 2 holds a record that node 0")


def swaps_trackers(sent: Submission) -> Attack:
    tracker = cases.honest(sent).records.tracker.copy()
    tracker[[20, 70]] = tracker[[70, 20]]
    return Attack(altered(sent, tracker=tracker), "replay", "2 rows, the first row 20")


def flips_target(sent: Submission) -> Attack:
    target = cases.honest(sent).records.target.copy()
    target[99] ^= 1
    return Attack(altered(sent, target=target), "replay", "1 rows, the first row 99")


def claims_more(sent: Submission) -> Attack:
    """A count that is one too high: k looks better than it is."""
    delivery = cases.honest(sent)
    count = delivery.leaves.count.copy()
    count[4] += 1
    made = cases.resealed(sent, delivery, leaves=replace(delivery.leaves, count=count))
    return Attack(made, "replay", f"leaf 4 says {count[4]} and holds {count[4] - 1}")


def mirrors_a_split(sent: Submission) -> Attack:
    """Left and right exchanged at a node over two leaves: every bound stays true."""
    top = cases.grown(sent)
    number, node, _ = next(n for n in inner_nodes(top) if isinstance(n[1].left, rules.Leaf))
    mirrored = replace(node, left=node.right, right=node.left)
    made = cases.delivered(sent, cases.replaced(top, node, mirrored))
    return Attack(made, "replay", f"node {number} sends to its other side")


def moves_threshold(sent: Submission) -> Attack:
    """To the next observed value, with the rule followed again below."""
    top = cases.grown(sent)
    for number, node, depth in inner_nodes(top)[2:]:
        values = sorted(set(sent.records.values[node.column][cases.rows_of(node)].tolist()))
        threshold = values[values.index(node.threshold) + 1]
        moved = cases.split(sent, node, depth, node.column, threshold)
        sizes = [len(n.rows) for _, n, _ in leaf_nodes(moved)]
        if min(sizes) >= sent.contract.min_leaf:
            made = cases.delivered(sent, cases.replaced(top, node, moved))
            return Attack(made, "splits", f"node {number} with")
    raise AssertionError("no node to move")


def shades_threshold(sent: Submission) -> Attack:
    """By one ulp, so that every record stays where it is."""
    top = cases.grown(sent)
    number, node, _ = inner_nodes(top)[-1]
    shaded = replace(node, threshold=float(np.nextafter(node.threshold, np.inf)))
    made = cases.delivered(sent, cases.replaced(top, node, shaded))
    return Attack(made, "splits", f"node {number} with")


def takes_second_best(sent: Submission) -> Attack:
    top = cases.grown(sent)
    for number, node, depth in reversed(inner_nodes(top)):
        found = cases.candidates(sent, node)
        if len(found) > 1:
            second = cases.split(sent, node, depth, found[1].column, found[1].threshold)
            made = cases.delivered(sent, cases.replaced(top, node, second))
            return Attack(made, "splits", f"node {number} with")
    raise AssertionError("no node with two candidates")


def cuts_subtree(sent: Submission) -> Attack:
    top = cases.grown(sent)
    number, node, _ = inner_nodes(top)[5]
    leaf = rules.Leaf(tuple(cases.rows_of(node)))
    made = cases.delivered(sent, cases.replaced(top, node, leaf))
    return Attack(made, "splits", f"node {number} with {len(leaf.rows)} records: a leaf")


def splits_pure_leaf(sent: Submission) -> Attack:
    """A leaf that was pure, halved: every leaf is still large enough."""
    top, values = cases.grown(sent), sent.records.values
    for number, leaf, depth in leaf_nodes(top):
        if len(leaf.rows) < 2 * sent.contract.min_leaf:
            continue
        for column in range(len(values)):
            threshold = rules.lower_median(values[column][list(leaf.rows)].tolist())
            further = cases.split(sent, leaf, depth, column, threshold)
            if min(len(n.rows) for _, n, _ in leaf_nodes(further)) >= sent.contract.min_leaf:
                made = cases.delivered(sent, cases.replaced(top, leaf, further))
                return Attack(made, "splits", f"node {number} with {len(leaf.rows)} records")
    raise AssertionError("no pure leaf")


def splits_small_leaf(sent: Submission) -> Attack:
    """A leaf of fewer than 4k records, halved all the same: two leaves are too small.

    Two leaves are merged elsewhere, or there would be more than n / 2k of them.
    """
    top, min_leaf = cases.grown(sent), sent.contract.min_leaf
    leaves = [n for _, n, _ in leaf_nodes(top) if len(n.rows) < 2 * min_leaf]
    leaf = leaves[0]
    further = cases.split(sent, leaf, 0, 1, rules.lower_median(
        sent.records.values[1][list(leaf.rows)].tolist()))  # fmt: skip
    spoilt = cases.replaced(top, leaf, further)
    number = next(i for i, n in enumerate(rules.flatten(spoilt)[1]) if len(n) < min_leaf)
    return Attack(cases.delivered(sent, spoilt), "replay", f"leaf {number} holds")


def halves_k(sent: Submission) -> Attack:
    """Grown with min_leaf k, to depth 4 so that the number of leaves gives nothing away."""
    contract, records = sent.contract, sent.records
    top = rules.grow(
        records.values.tolist(), records.target.tolist(), min_leaf=contract.k, max_depth=50
    )
    leaves = rules.flatten(top)[1]
    if len(leaves) > records.n_rows // contract.min_leaf:
        return Attack(cases.delivered(sent, top), "commitment", "make 1 to")
    return Attack(cases.delivered(sent, top), "replay", "hold fewer than 2k")


def grows_on_a_sample(sent: Submission) -> Attack:
    """From 95 % of the records; the others are routed in afterwards, so nothing is missing."""
    n_rows = sent.records.n_rows
    some = np.sort(np.random.default_rng(0).choice(n_rows, round(0.95 * n_rows), replace=False))
    top = cases.routed(cases.grown(sent, some.tolist()), sent.records.values, np.arange(n_rows))
    return Attack(cases.delivered(sent, top), "splits", "node ")


def scores_on_a_sample(sent: Submission) -> Attack:
    """Medians of all records, but the column chosen by the labels of one in twenty."""
    rng = np.random.default_rng(0)
    contract, target = sent.contract, sent.records.target

    def grow(rows: cases.Rows, depth: int) -> cases.Top:
        leaf = rules.Leaf(tuple(rows.tolist()))
        positive = int(target[rows].sum())
        if rows.size < 2 * contract.min_leaf or positive in (0, rows.size):
            return leaf
        found = cases.candidates(sent, leaf)
        if not found:
            return leaf
        seen = rng.choice(rows, max(1, rows.size // 20), replace=False)

        def score(split: rules.Split) -> float:
            left = sent.records.values[split.column][seen] <= split.threshold
            halves = (target[seen][left], target[seen][~left])
            return sum((float(h.sum()) ** 2 / int(h.size) for h in halves if h.size), 0.0)

        best = max(found, key=score)
        left = sent.records.values[best.column][rows] <= best.threshold
        return rules.Node(
            best.column, best.threshold, grow(rows[left], depth + 1), grow(rows[~left], depth + 1)
        )

    top = grow(np.arange(sent.records.n_rows), 0)
    return Attack(cases.delivered(sent, top), "splits", "node ")


def forges_root(sent: Submission) -> Attack:
    made = ForgesRoot(LocalProvider(threads=1)).anonymize(sent)
    return Attack(made, "commitment", "its root does not follow")


def stops_early(sent: Submission) -> Attack:
    """One leaf for all: perfectly anonymous, and worthless."""
    top = rules.Leaf(tuple(range(sent.records.n_rows)))
    return Attack(cases.delivered(sent, top), "splits", "node 0 with")


MATRIX: tuple[Make, ...] = (
    drops_one,
    doubles_one,
    widens_top,
    narrows_top,
    widens_bottom,
    narrows_bottom,
    swaps_leaves,
    swaps_trackers,
    flips_target,
    claims_more,
    mirrors_a_split,
    moves_threshold,
    shades_threshold,
    takes_second_best,
    cuts_subtree,
    splits_pure_leaf,
    splits_small_leaf,
    halves_k,
    grows_on_a_sample,
    scores_on_a_sample,
    forges_root,
    stops_early,
)


def full(delivery: Delivery, made: Prepared) -> Verdict:
    options = Options(threads=1)
    return verify(delivery, made.manifest, submission=made.submission, options=options)


def test_honest_stands_at_the_head_of_the_matrix() -> None:
    made = cases.prepared()
    assert full(cases.honest(made.submission), made).outcome is Outcome.VERIFIED


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("make", MATRIX, ids=lambda make: make.__name__)
def test_a_large_table_is_judged_as_a_small_one(
    make: Make, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Laid out a column at a time, the layers find the same."""
    made = cases.prepared()
    deliveries = cases.honest(made.submission), make(made.submission).delivery
    options = Options(threads=threads)

    def findings() -> list[Finding]:
        verdicts = [
            verify(delivery, made.manifest, submission=made.submission, options=options)
            for delivery in deliveries
        ]
        return [replace(f, seconds=0.0) for verdict in verdicts for f in verdict.findings]

    kept = findings()
    monkeypatch.setattr("verix.client.verify.case.KEPT_BYTES", 0)
    assert findings() == kept


@pytest.mark.parametrize("commitment", list(Commitment))
@pytest.mark.parametrize("make", MATRIX, ids=lambda make: make.__name__)
def test_matrix(make: Make, commitment: Commitment) -> None:
    made = cases.prepared(commitment=commitment)
    attack = make(made.submission)
    verdict = full(attack.delivery, made)
    finding = verdict.finding(attack.layer)
    assert verdict.outcome is Outcome.VIOLATION
    assert finding.status is Status.FAIL
    assert finding.decides
    assert attack.place in finding.summary
    if attack.layer != "commitment":
        assert verdict.finding("commitment").status is Status.PASS
    if attack.layer == "splits":
        assert verdict.finding("replay").status is Status.PASS


@pytest.mark.parametrize("make", MATRIX, ids=lambda make: make.__name__)
def test_no_attack_is_verified_without_its_layer_running(make: Make) -> None:
    """Thin sees less, but what it does not see it never calls an error of its own."""
    made = cases.prepared()
    attack = make(made.submission)
    verdict = verify(attack.delivery, made.manifest)
    assert verdict.outcome in (Outcome.VERIFIED, Outcome.VIOLATION)
    seen_thin = (drops_one, doubles_one, swaps_trackers, flips_target, claims_more, forges_root)
    if make in seen_thin:
        assert verdict.outcome is Outcome.VIOLATION


def test_grown_with_half_k_and_too_many_leaves() -> None:
    made = cases.prepared(n_rows=1000, traps=Traps.NONE)
    verdict = full(halves_k(made.submission).delivery, made)
    assert verdict.outcome is Outcome.VIOLATION


def test_old_delivery_replayed() -> None:
    old, new = cases.prepared(1), cases.prepared(2)
    verdict = full(cases.honest(old.submission), new)
    finding = verdict.finding("commitment")
    assert (verdict.outcome, finding.status) == (Outcome.VIOLATION, Status.FAIL)
    assert "another contract" in finding.summary
    assert "another submission" in finding.summary


@pytest.mark.parametrize("commitment", list(Commitment))
def test_old_delivery_under_new_digests(commitment: Commitment) -> None:
    old, new = (cases.prepared(seed, commitment=commitment) for seed in (1, 2))
    delivery = cases.honest(old.submission)
    header = replace(
        delivery.header,
        contract=new.submission.contract.digest,
        submission=new.submission.digest(),
    )
    verdict = full(replace(delivery, header=header), new)
    # The paper's root binds neither, so there it is for replay to see.
    layer = "commitment" if commitment is Commitment.BINDING else "replay"
    assert verdict.finding(layer).status is Status.FAIL
    assert verdict.outcome is Outcome.VIOLATION


def test_old_delivery_of_the_same_table_and_salt() -> None:
    """Only the contract differs, as when k was agreed on anew."""
    old, new = cases.prepared(k=4), cases.prepared(k=3)
    verdict = full(cases.honest(old.submission), new)
    assert verdict.finding("commitment").status is Status.FAIL


@pytest.mark.parametrize("part", ["values", "target", "tracker", "order", "contract"])
def test_owners_copy_altered(part: str) -> None:
    made = cases.prepared()
    sent = made.submission
    records, contract = sent.records, sent.contract
    if part == "order":
        records = replace(
            records,
            tracker=records.tracker[::-1].copy(),
            values=records.values[:, ::-1].copy(),
            target=records.target[::-1].copy(),
        )
    elif part == "contract":
        contract = replace(contract, max_depth=49)
    else:
        changed = getattr(records, part).copy()
        changed.reshape(-1)[7] = 1 if changed.reshape(-1)[7] != 1 else 0
        records = replace(records, **{part: changed})
    with pytest.raises(TableError, match="not the one this manifest was made for"):
        verify(
            cases.honest(sent),
            made.manifest,
            submission=Submission(contract=contract, records=records),
        )


def test_order_of_the_records_is_free() -> None:
    made = cases.prepared()
    delivery = cases.honest(made.submission)
    order = np.random.default_rng(0).permutation(made.manifest.n_rows)
    old = delivery.records
    shuffled = Delivered(
        row=old.row[order], tracker=old.tracker[order], leaf=old.leaf[order],
        target=old.target[order],
    )  # fmt: skip
    delivery = replace(delivery, records=shuffled)
    assert full(delivery, made).outcome is Outcome.VERIFIED
    assert verify(delivery, made.manifest).outcome is Outcome.VERIFIED


def test_strictly_blind() -> None:
    made = cases.prepared()
    verdict = full(SplitsBlindly(3, strict=True).anonymize(made.submission), made)
    assert verdict.finding("splits").status is Status.FAIL


def test_lazy_is_seen_by_the_traps_as_well() -> None:
    made = cases.prepared()
    verdict = full(DropsRows(0.2).anonymize(made.submission), made)
    assert verdict.finding("twins").status is Status.FAIL
    assert verdict.finding("commitment").status is Status.PASS
    assert verdict.finding("splits").status is Status.SKIPPED


def most_misses(runs: int, probability: float) -> int:
    """The greatest number of misses that a promise of this probability explains."""
    return int(scipy.stats.binom.isf(NEVER, runs, probability))


def deviating(sent: Submission, share: float) -> tuple[cases.Top, int, float]:
    """The honest tree but for one node, with about a share of the records; which, how many."""
    top = cases.grown(sent)
    n_rows = sent.records.n_rows
    fitting = [n for n in inner_nodes(top) if len(cases.candidates(sent, n[1])) > 1]
    number, node, depth = min(fitting, key=lambda n: abs(len(cases.rows_of(n[1])) / n_rows - share))
    second = cases.candidates(sent, node)[1]
    changed = cases.split(sent, node, depth, second.column, second.threshold)
    return cases.replaced(top, node, changed), number, len(cases.rows_of(node)) / n_rows


@pytest.mark.parametrize("share", [0.5, 0.12, 0.06])
def test_sampled_audit_keeps_its_promise_for_paths(share: float) -> None:
    made = cases.prepared(n_rows=1500, traps=Traps.NONE)
    top, number, touched = deviating(made.submission, share)
    delivery = cases.delivered(made.submission, top)
    miss = 0.2
    options = Options(audit=Audit.SAMPLE, audit_miss=miss, audit_fraction=touched, threads=1)
    case = cases.case_of(delivery, made.manifest, made.submission, options)
    assert replay.check(case).status is Status.PASS
    assert splits.sample_size(miss, touched) < delivery.tree.n_nodes
    runs, misses = 400, 0
    for _ in range(runs):
        finding = splits.check(case)
        misses += finding.status is Status.PASS
        if finding.status is Status.FAIL:
            assert f"node {number} with" in finding.summary
    assert misses <= most_misses(runs, miss)


def test_sampled_audit_keeps_its_promise_for_nodes() -> None:
    """A tenth of the nodes deviate, all of them small, so few paths lead there."""
    made = cases.prepared(n_rows=1500, traps=Traps.NONE)
    sent = made.submission
    top = cases.grown(sent)
    n_nodes = sum(1 for _ in cases.nodes_of(top))
    cut = 0
    for _, node, _ in sorted(inner_nodes(top), key=lambda n: len(cases.rows_of(n[1]))):
        if cut * 10 >= n_nodes:
            break
        if not (isinstance(node.left, rules.Leaf) and isinstance(node.right, rules.Leaf)):
            continue
        top = cases.replaced(top, node, rules.Leaf(tuple(cases.rows_of(node))))
        cut += 1
    delivery = cases.delivered(sent, top)
    options = Options(
        audit=Audit.SAMPLE,
        audit_miss=0.2,
        audit_fraction=cut / delivery.tree.n_nodes,
        threads=1,
    )
    case = cases.case_of(delivery, made.manifest, sent, options)
    assert len(splits.examine(case, np.arange(delivery.tree.n_nodes))) == cut
    runs = 400
    misses = sum(splits.check(case).status is Status.PASS for _ in range(runs))
    assert misses <= most_misses(runs, 0.2)


def test_default_sample_is_459() -> None:
    assert splits.sample_size(0.01, 0.01) == 459
    assert splits.sample_size(0.01, 1e-17) > 10**17


def test_a_small_tree_is_examined_as_a_whole() -> None:
    made = cases.prepared()
    case = cases.case_of(
        takes_second_best(made.submission).delivery,
        made.manifest,
        made.submission,
        Options(audit=Audit.SAMPLE, audit_fraction=1e-12, threads=1),
    )
    finding = splits.check(case)
    assert finding.status is Status.FAIL
    assert finding.evidence["examined"] == case.delivery.tree.n_nodes


def renumbered(top: cases.Top, row_of: cases.Rows) -> cases.Top:
    """The same tree for records that stand in other rows."""
    if isinstance(top, rules.Leaf):
        return rules.Leaf(tuple(sorted(row_of[list(top.rows)].tolist())))
    return replace(top, left=renumbered(top.left, row_of), right=renumbered(top.right, row_of))


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.15])
def test_witnesses_keep_their_promise(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 owners of the same sorted table, each with a salt and five witnesses of their own."""
    monkeypatch.setattr(
        fingerprint, "shap_values", lambda rows, target: np.zeros((len(rows), rows.shape[1]))
    )
    source = cases.table(300).sort_by("age")
    first = cases.make(source, seed=0, traps=Traps.NONE, witnesses=5)
    top, _, touched = deviating(first.submission, share)
    # From rows of the first submission to those of the owner's table.
    top = renumbered(top, first.manifest.owner_row)
    runs, misses = 400, 0
    for seed in range(1, runs + 1):
        made = cases.make(source, seed=seed, traps=Traps.NONE, witnesses=5)
        mine = renumbered(top, np.argsort(made.manifest.owner_row))
        case = cases.case_of(cases.delivered(made.submission, mine), made.manifest)
        misses += splits.check(case).status is Status.PASS
    expected = (1 - touched) ** 5
    assert misses <= most_misses(runs, expected)
    # Nor do they see what is not there: the promise is met, and not by alarms.
    assert misses >= int(scipy.stats.binom.ppf(NEVER, runs, expected * 0.9))


def thin_manifest(manifest: Manifest, n_watch: int, seed: int) -> Manifest:
    """As if so few records were watched."""
    some = np.random.default_rng(seed).choice(manifest.watch_row.size, n_watch, replace=False)
    return replace(
        manifest,
        watch_row=manifest.watch_row[some],
        watch_values=manifest.watch_values[:, some],
        watch_target=manifest.watch_target[some],
    )


def test_watch_records_keep_their_promise() -> None:
    """A share of the records in wrong leaves, with counts that fit."""
    made = cases.prepared(traps=Traps.NONE)
    sent, share, n_watch = made.submission, 0.1, 10
    leaf = cases.honest(sent).records.leaf.copy()
    moved = np.random.default_rng(0).choice(leaf.size, round(share * leaf.size), replace=False)
    leaf[moved] = np.roll(leaf[moved], 1)
    delivery = altered(sent, leaf=leaf)
    wrong = (leaf != cases.honest(sent).records.leaf).mean()
    runs, misses = 400, 0
    for seed in range(runs):
        case = cases.case_of(delivery, thin_manifest(made.manifest, n_watch, seed))
        misses += replay.check(case).status is Status.PASS
    assert misses <= most_misses(runs, (1 - wrong) ** n_watch)
    assert misses > 0
    assert WATCH_RECORDS == 2_000


@pytest.mark.parametrize("layer", ["sentinels", "twins"])
def test_traps_keep_their_promise(layer: str) -> None:
    made = cases.prepared()
    manifest, dropped = made.manifest, 0.02
    n_traps = manifest.sentinel_row.size if layer == "sentinels" else 2 * len(manifest.twin_row)
    check = sentinels.check if layer == "sentinels" else twins.check
    runs, misses = 400, 0
    for seed in range(runs):
        delivery = DropsRows(dropped, seed).anonymize(made.submission)
        misses += check(cases.case_of(delivery, manifest)).status is Status.PASS
    assert misses <= most_misses(runs, evasion_probability(n_traps, manifest.n_rows, dropped))
    assert misses > 0


def test_full_size_numbers() -> None:
    assert math.ceil(math.log(0.01) / math.log(0.99)) == 459
    assert (1 - 0.01) ** 2000 < 2e-9


def test_echoing_passes_the_traps_but_not_replay() -> None:
    """One that leaves records out of the tree and returns them all the same (spec §9)."""
    made = cases.prepared()
    attack = grows_on_a_sample(made.submission)
    verdict = full(attack.delivery, made)
    assert verdict.finding("sentinels").status is Status.PASS
    assert verdict.finding("twins").status is Status.PASS
    assert "one that echoes what it left out" in verdict.finding("sentinels").guarantee


def test_forged_digest_of_zeros() -> None:
    made = cases.prepared()
    delivery = cases.forged(cases.honest(made.submission), Digest(bytes(32)))
    assert full(delivery, made).finding("commitment").status is Status.FAIL
