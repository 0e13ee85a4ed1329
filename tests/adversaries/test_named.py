"""Every adversary by name: what it does, what it knows, and which layer must see it."""

import inspect
from functools import cache

import numpy as np
import pytest

from adversaries.contracts import failed, judged, prepared
from tools.documents.adversaries import FULL, THIN
from verix_anon import adversaries
from verix_anon.adversaries import ADVERSARIES, trap_hunters
from verix_anon.client.prepare import Prepared
from verix_anon.client.verdict import Outcome, Profile, Status
from verix_anon.client.verify import verify
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.providers import Provider
from verix_anon.provider.local import LocalProvider

RULES = {
    Rule.VARIANCE_REDUCTION: "labels, clear",
    Rule.IMPORTANCE_SPREAD: "spread, two classes",
}
PAIRS = [(name, rule) for rule in Rule for name in adversaries.under(rule)]
KINDS = [
    kind for name in adversaries.__all__ if inspect.isclass(kind := getattr(adversaries, name))
]


pytestmark = pytest.mark.usefixtures("quick_models")


@pytest.fixture(scope="module", params=RULES)
def made(request: pytest.FixtureRequest) -> Prepared:
    return of_rule(request.param)


def of_rule(rule: Rule) -> Prepared:
    return prepared(RULES[rule], n_rows=2000)


@cache
def delivered(name: str, rule: Rule) -> Delivery:
    return ADVERSARIES[name](0).anonymize(of_rule(rule).submission)


def test_every_adversary_has_its_layers() -> None:
    assert set(FULL) == set(ADVERSARIES)
    assert set(adversaries.PAPER) < set(ADVERSARIES)


@pytest.mark.parametrize(("name", "rule"), PAIRS)
def test_caught_with_the_submission(name: str, rule: Rule) -> None:
    made = of_rule(rule)
    found = failed(judged(delivered(name, rule), made))
    assert found
    assert found >= FULL[name]


@pytest.mark.parametrize(("name", "rule"), PAIRS)
def test_caught_without_the_submission(name: str, rule: Rule) -> None:
    made = of_rule(rule)
    found = failed(judged(delivered(name, rule), made, thin=True))
    assert found or not THIN[name]
    assert found >= THIN[name]


@pytest.mark.parametrize(("name", "rule"), PAIRS)
def test_repeatable(name: str, rule: Rule) -> None:
    sent = prepared(RULES[rule], n_rows=400).submission
    assert len({ADVERSARIES[name](3).anonymize(sent).header.root for _ in range(2)}) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_documented_with_what_it_saves_and_risks(kind: type) -> None:
    text = inspect.getdoc(kind) or ""
    assert "Saves: " in text
    assert "Risks: " in text or "It measures" in text


@pytest.mark.parametrize(
    "provider",
    [
        adversaries.SkipsColumns(share=1.0),
        adversaries.Deviates(0.0),
        adversaries.LowersK(1.0),
        adversaries.StopsEarly(50),
        adversaries.SplitsBlindlyAbove(0),
        adversaries.SplitsBlindlyBelow(50),
        adversaries.SamplesRecords(1.0, exact_medians=True),
        adversaries.SamplesRecords(1.0),
        adversaries.GrowsOnSample(1.0),
        adversaries.DropsRows(0.0),
        adversaries.EchoesDropped(0.0),
        adversaries.RefillsWithCopies(0.0),
        adversaries.DropsUntrapped(0.0),
    ],
    ids=lambda provider: type(provider).__name__,
)
def test_misbehaves_in_one_way_only(provider: Provider, made: Prepared) -> None:
    # Take the misbehaviour away, and the honest delivery is left.
    honest = LocalProvider(threads=1).anonymize(made.submission)
    assert provider.anonymize(made.submission).header.root == honest.header.root


def count_of_deviating_nodes(delivery_share: float, sent: Submission) -> int:
    honest = LocalProvider(threads=1).anonymize(sent).tree
    tree = adversaries.Deviates(delivery_share, seed=1).anonymize(sent).tree
    n = min(honest.n_nodes, tree.n_nodes)
    return int((honest.column[:n] != tree.column[:n]).sum())


def test_deviates_more_with_a_greater_fraction(made: Prepared) -> None:
    few = count_of_deviating_nodes(0.02, made.submission)
    many = count_of_deviating_nodes(0.9, made.submission)
    assert 0 < few < many


def test_half_k_makes_leaves_of_half_k(made: Prepared) -> None:
    least = made.submission.contract.min_leaf
    counts = adversaries.LowersK(0.5).anonymize(made.submission).leaves.count
    assert least // 2 <= counts.min() < least


def test_twins_give_themselves_away(made: Prepared) -> None:
    found = trap_hunters.suspect(made.submission)
    assert found.is_duplicate[made.manifest.twin_row].all()


def test_sentinels_have_close_neighbours(made: Prepared) -> None:
    found = trap_hunters.suspect(made.submission)
    rows = made.manifest.sentinel_row
    others = np.setdiff1d(np.arange(made.manifest.n_rows), rows)
    assert np.median(found.distance[rows]) < np.median(found.distance[others])


def test_moving_true_sentinels_is_seen_by_replay_of_all_records_alone(made: Prepared) -> None:
    delivery = trap_hunters.moved(made.submission, made.manifest.sentinel_row)
    assert failed(judged(delivery, made)) == {"replay"}
    # Those that share a leaf with one of them may be witnesses, nobody else is concerned.
    assert failed(judged(delivery, made, thin=True)) <= {"splits"}


def test_an_informed_provider_passes_the_papers_traps() -> None:
    # Two fifths of the records are gone, and layer 2 of the paper sees nothing (spec §13.2).
    made = of_rule(Rule.VARIANCE_REDUCTION)
    delivery = adversaries.DropsUntrapped(0.4).anonymize(made.submission)
    verdict = verify(delivery, made.manifest, profile=Profile.PAPER)
    assert delivery.header.rows == round(0.6 * made.manifest.n_rows)
    assert verdict.finding("commitment").status is Status.PASS
    assert verdict.finding("sentinels").status is Status.PASS
    assert verdict.finding("twins").status is Status.PASS


def test_replays_a_given_delivery(made: Prepared) -> None:
    contract = next(c for rule, c in RULES.items() if rule is made.submission.contract.rule)
    old = prepared(contract, seed=9, n_rows=2000).submission
    delivery = adversaries.ReplaysOld(old).anonymize(made.submission)
    assert verify(delivery, made.manifest).outcome is Outcome.VIOLATION
    # The header claims this submission, so it is the records that give it away.
    assert delivery.header.submission == made.manifest.submission
