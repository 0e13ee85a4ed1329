"""The matrix: each deviation, and the layer that must see it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from adversaries.attacks import (
    MATRIX,
    Make,
    claims_more,
    doubles_one,
    drops_one,
    flips_target,
    forges_root,
    full,
    halves_k,
    swaps_trackers,
)
from tools import cases
from verix_anon.adversaries import DropsRows, SplitsBlindly
from verix_anon.client.prepare import Prepared
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.verdict import Finding, Outcome, Status
from verix_anon.client.verify import verify
from verix_anon.client.verify.case import Audit, VerifyOptions
from verix_anon.errors import MixedUpError, TableError
from verix_anon.files.folder_writer import write_delivery, write_submission
from verix_anon.protocol.contract import Commitment
from verix_anon.protocol.messages import Submission

pytestmark = pytest.mark.usefixtures("quick_models")


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
    options = VerifyOptions(threads=threads)

    def findings() -> list[Finding]:
        verdicts = [
            verify(delivery, made.manifest, submission=made.submission, options=options)
            for delivery in deliveries
        ]
        return [replace(f, seconds=0.0) for verdict in verdicts for f in verdict.findings]

    kept = findings()
    monkeypatch.setattr("verix_anon.client.verify.case.KEPT_BYTES", 0)
    assert findings() == kept


@pytest.mark.parametrize("audit", Audit)
@pytest.mark.parametrize("make", MATRIX, ids=lambda make: make.__name__)
def test_files_that_are_not_held_are_judged_as_those_that_are(
    make: Make, audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read from a scratch file, records and bytes alike, the layers find the same."""
    made = CONTRACTS["spread" if audit is Audit.ALL else "clear"]()
    write_submission(made.submission, tmp_path / "submission")
    # As many draws as find every node of a small tree.
    options = VerifyOptions(audit=audit, audit_fraction=0.001)
    deliveries = [cases.honest(made.submission), make(made.submission).delivery]
    for number, delivery in enumerate(deliveries):
        write_delivery(delivery, tmp_path / str(number))

    def findings() -> list[Finding]:
        verdicts = [
            verify(
                tmp_path / str(number),
                made.manifest,
                submission=tmp_path / "submission",
                skip=["fingerprint", "utility"],
                options=options,
            )
            for number in range(len(deliveries))
        ]
        return [replace(f, seconds=0.0) for verdict in verdicts for f in verdict.findings]

    held = findings()
    monkeypatch.setattr("verix_anon.client.verify.KEPT_BYTES", 0)
    monkeypatch.setattr("verix_anon.client.verify.case.KEPT_BYTES", 0)
    monkeypatch.setattr("verix_anon.files.hashed_files.HELD_BYTES", 0)
    assert findings() == held


CONTRACTS: dict[str, Callable[[], Prepared]] = {
    "spread": cases.prepared,
    "clear": partial(cases.prepared, clear=True),
    "paper": partial(cases.prepared, commitment=Commitment.PAPER),
}


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("make", MATRIX, ids=lambda make: make.__name__)
def test_matrix(make: Make, contract: str) -> None:
    made = CONTRACTS[contract]()
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
    with pytest.raises(MixedUpError, match="answers another submission; are folders mixed up"):
        full(cases.honest(old.submission), new)


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
    with pytest.raises(MixedUpError):
        full(cases.honest(old.submission), new)


@pytest.mark.parametrize("part", ["values", "target", "tracker", "order", "contract"])
def test_owners_copy_altered(part: str) -> None:
    # By the usual rule no target is sent that could be altered.
    made = cases.prepared(clear=True)
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
    names = ("row", "tracker", "leaf", "target")
    shuffled = replace(old, **{name: getattr(old, name)[order] for name in names})
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
