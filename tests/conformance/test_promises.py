"""What is not certain is caught at no less than the stated probability."""

from dataclasses import replace

import numpy as np
import pytest
import scipy

from adversaries.attacks import altered, full, grows_on_a_sample, inner_nodes, takes_second_best
from tools import cases
from verix_anon.adversaries import DropsRows
from verix_anon.client import models
from verix_anon.client.evidence import evasion_probability
from verix_anon.client.manifest import Manifest
from verix_anon.client.prepare.options import WATCH_RECORDS
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.verdict import Status
from verix_anon.client.verify import replay, splits, trap_rows
from verix_anon.client.verify.case import Audit, VerifyOptions
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Submission

# So unlikely a result means a broken promise, not bad luck.
NEVER = 1e-6


pytestmark = pytest.mark.usefixtures("quick_models")


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
    options = VerifyOptions(audit=Audit.SAMPLE, audit_miss=miss, audit_fraction=touched, threads=1)
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
    options = VerifyOptions(
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
        VerifyOptions(audit=Audit.SAMPLE, audit_fraction=1e-12, threads=1),
    )
    finding = splits.check(case)
    assert finding.status is Status.FAIL
    assert finding.evidence["examined"] == case.delivery.tree.n_nodes


def renumbered(top: cases.Top, row_of: cases.Rows) -> cases.Top:
    """The same tree for records that stand in other rows."""
    if isinstance(top, rules.Leaf):
        return rules.Leaf(tuple(sorted(row_of[list(top.rows)].tolist())))
    return replace(top, left=renumbered(top.left, row_of), right=renumbered(top.right, row_of))


@pytest.mark.long
@pytest.mark.parametrize("share", [0.5, 0.15])
def test_witnesses_keep_their_promise(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 owners of the same sorted table, each with a salt and five witnesses of their own."""
    monkeypatch.setattr(
        models, "shap_values", lambda rows, target: np.zeros((len(rows), 1, rows.shape[1]))
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
    check = trap_rows.check_sentinels if layer == "sentinels" else trap_rows.check_twins
    runs, misses = 400, 0
    for seed in range(runs):
        delivery = DropsRows(dropped, seed).anonymize(made.submission)
        misses += check(cases.case_of(delivery, manifest)).status is Status.PASS
    assert misses <= most_misses(runs, evasion_probability(n_traps, manifest.n_rows, dropped))
    assert misses > 0


def test_echoing_passes_the_traps_but_not_replay() -> None:
    """One that leaves records out of the tree and returns them all the same (spec §9)."""
    made = cases.prepared()
    attack = grows_on_a_sample(made.submission)
    verdict = full(attack.delivery, made)
    assert verdict.finding("sentinels").status is Status.PASS
    assert verdict.finding("twins").status is Status.PASS
    assert "returns the dropped records unprocessed" in verdict.finding("sentinels").guarantee


def test_forged_digest_of_zeros() -> None:
    made = cases.prepared()
    delivery = cases.forged(cases.honest(made.submission), Digest(bytes(32)))
    assert full(delivery, made).finding("commitment").status is Status.FAIL
