"""The layer `receipt`: what passes, what fails, and what is only not shown."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from protocol.signing import OTHER, OURS, envelope
from tools import cases
from verix_anon.client.owner_files import parse_verdict
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.release import release
from verix_anon.client.verdict import Finding, Outcome, Profile, Status, Verdict
from verix_anon.client.verify import receipt, verify
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.folder_writer import receipt_of, write_delivery, write_receipt
from verix_anon.files.keys import pin, revoke, write_key, write_trust
from verix_anon.files.trust import NO_TRUST, Pinned, Trust
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.envelopes import MAX_BYTES
from verix_anon.protocol.signing import SigningKey, sign
from verix_anon.protocol.statements import Receipt

NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=1)
TRUST = Trust((Pinned(key=OURS.public, name="ours"),))
BOTH = pin(TRUST, Pinned(key=OTHER.public))


@pytest.fixture
def delivery(tmp_path: Path) -> Path:
    """An honest delivery with its receipt."""
    folder = tmp_path / "delivery"
    write_delivery(
        cases.honest(cases.prepared().submission),
        folder,
        finish=lambda made: write_receipt(made, OURS, NOW, NOW),
    )
    return folder


def found(folder: Path, trust: Trust = TRUST) -> Finding:
    """What the layer alone finds."""
    manifest = cases.prepared().manifest
    snapshot = read_delivery(folder, manifest.contract, n_rows=manifest.n_rows)
    case = replace(
        cases.case_of(snapshot.delivery, manifest),
        files=snapshot.files,
        receipt=snapshot.receipt,
        trust=trust,
    )
    return receipt.check(case)


def judged(folder: Path, trust: Trust = TRUST, **given: object) -> Verdict:
    made = cases.prepared()
    return verify(
        folder,
        made.manifest,
        submission=made.submission,
        skip=("fingerprint", "utility"),
        provider_keys=trust,
        **given,  # type: ignore[arg-type]
    )


def put(folder: Path, data: bytes) -> None:
    (folder / "receipt.dsse.json").write_bytes(data)


def said(folder: Path) -> Receipt:
    return receipt_of(folder, NOW, NOW)


def test_a_valid_receipt_passes_and_decides(delivery: Path) -> None:
    verdict = judged(delivery)
    finding = verdict.finding("receipt")
    assert (finding.status, finding.decides) == (Status.PASS, True)
    assert finding.evidence["keys"] == [OURS.public.keyid]
    assert verdict.outcome is Outcome.VERIFIED
    assert parse_verdict(verdict.to_json()) == verdict
    assert "receipt.dsse.json" not in verdict.files


@pytest.mark.parametrize("is_there", [True, False])
def test_without_a_pinned_key_it_rests_and_says_whether_there_is_one(
    delivery: Path, is_there: bool
) -> None:
    if not is_there:
        (delivery / "receipt.dsse.json").unlink()
    verdict = judged(delivery, NO_TRUST)
    finding = verdict.finding("receipt")
    assert (finding.status, finding.decides) == (Status.SKIPPED, False)
    assert ("There is a receipt" if is_there else "There is no receipt") in finding.summary
    assert verdict.outcome is Outcome.VERIFIED
    assert parse_verdict(verdict.to_json()) == verdict


def test_what_nobody_pinned_is_not_even_read(delivery: Path) -> None:
    put(delivery, b"[" * MAX_BYTES)
    assert found(delivery, NO_TRUST).status is Status.SKIPPED


def test_a_missing_receipt_is_not_a_violation_but_no_pass(delivery: Path) -> None:
    (delivery / "receipt.dsse.json").unlink()
    verdict = judged(delivery)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "there is no receipt.dsse.json: ask the provider" in verdict.finding("receipt").summary


def test_a_delivery_in_memory_has_none() -> None:
    made = cases.prepared()
    verdict = verify(
        cases.honest(made.submission),
        made.manifest,
        submission=made.submission,
        skip=("fingerprint", "utility"),
        provider_keys=TRUST,
    )
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "A delivery in memory has no receipt" in verdict.finding("receipt").summary


def flipped(folder: Path) -> bytes:
    fields = json.loads((folder / "receipt.dsse.json").read_bytes())
    signature = fields["signatures"][0]["sig"]
    fields["signatures"][0]["sig"] = ("B" if signature[0] == "A" else "A") + signature[1:]
    return json.dumps(fields).encode()


def relabelled(folder: Path) -> bytes:
    data = (folder / "receipt.dsse.json").read_bytes()
    return data.replace(b"application/vnd.in-toto+json", b"application/json")


def statement(change: Callable[[Receipt], Receipt]) -> Callable[[Path], bytes]:
    return lambda folder: sign(change(said(folder)).to_bytes(), OURS)


def spelled(before: bytes, after: bytes) -> Callable[[Path], bytes]:
    return lambda folder: envelope(said(folder).to_bytes().replace(before, after), OURS)


ZEROS = Digest(bytes(32))
WRONG: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "signature": (flipped, "not what the key .* has signed"),
    "payloadType": (relabelled, "This is not a receipt: .*payloadType must be"),
    "not JSON": (lambda _: b"{", "This is not a receipt"),
    "nested": (lambda _: b"[" * 50_000, "This is not a receipt"),
    "twice": (lambda _: b'{"payload": "", "payload": ""}', "a field occurs twice"),
    "huge": (lambda _: b" " * (MAX_BYTES + 1), "cannot be read: .*larger than"),
    "_type": (spelled(b"Statement/v1", b"Statement/v0"), "but it is not a receipt: .*_type"),
    "predicateType": (
        spelled(b"urn:verix:receipt:1", b"urn:other"),
        "not a receipt: .*predicateType",
    ),
    "root": (statement(lambda r: replace(r, root=ZEROS)), "names another root"),
    "contract": (statement(lambda r: replace(r, contract=ZEROS)), "another contract"),
    "submission": (statement(lambda r: replace(r, submission=ZEROS)), "another submission"),
    "counts": (statement(lambda r: replace(r, rows=1)), "other counts"),
    "a file": (
        statement(lambda r: replace(r, files={**r.files, "records.parquet": "0" * 64})),
        "names other files",
    ),
    "a file less": (
        statement(lambda r: replace(r, files={n: d for n, d in r.files.items() if "l" not in n})),
        "not a receipt: .*its subjects must be",
    ),
    "a file more": (
        statement(lambda r: replace(r, files={**r.files, "more": "0" * 64})),
        "not a receipt: .*its subjects must be",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_so_fails(delivery: Path, name: str) -> None:
    make, words = WRONG[name]
    put(delivery, make(delivery))
    finding = found(delivery)
    assert finding.status is Status.FAIL
    assert re.search(words, finding.summary), finding.summary
    assert len(finding.summary) < 400


def test_a_false_receipt_is_a_violation(delivery: Path) -> None:
    put(delivery, flipped(delivery))
    assert judged(delivery).outcome is Outcome.VIOLATION
    assert not judged(delivery)


def test_the_receipt_of_another_delivery_fails(delivery: Path, tmp_path: Path) -> None:
    other = cases.prepared(seed=2)
    write_delivery(cases.honest(other.submission), tmp_path / "other")
    write_receipt(tmp_path / "other", OURS, NOW, NOW)
    put(delivery, (tmp_path / "other" / "receipt.dsse.json").read_bytes())
    assert found(delivery).status is Status.FAIL
    assert "is for another submission" in found(delivery).summary


def test_altered_files_do_not_hide_behind_a_receipt(delivery: Path) -> None:
    """The header says other seconds: nothing that any other layer minds."""
    path = delivery / "delivery.json"
    fields = json.loads(path.read_bytes())
    fields["seconds"] = 12345.0
    path.write_text(json.dumps(fields))
    verdict = judged(delivery)
    failed = [f.layer for f in verdict.findings if f.status is Status.FAIL]
    assert failed == ["receipt"]
    assert verdict.outcome is Outcome.VIOLATION


@pytest.mark.parametrize("name", ["link", "folder"])
def test_what_is_no_file_fails(delivery: Path, tmp_path: Path, name: str) -> None:
    place = delivery / "receipt.dsse.json"
    place.rename(tmp_path / "real")
    place.mkdir() if name == "folder" else place.symlink_to(tmp_path / "real")
    assert found(delivery).status is Status.FAIL
    assert "cannot be read" in found(delivery).summary


def test_another_key_proves_nothing_and_accuses_nobody(delivery: Path) -> None:
    finding = found(delivery, Trust((Pinned(key=OTHER.public),)))
    assert finding.status is Status.INCONCLUSIVE
    assert "No pinned key has signed" in finding.summary


@pytest.mark.parametrize("keys", [(OURS,), (OTHER,), (OURS, OTHER)])
def test_while_keys_change_both_count(delivery: Path, keys: tuple[SigningKey, ...]) -> None:
    put(delivery, sign(said(delivery).to_bytes(), *keys))
    assert found(delivery, BOTH).status is Status.PASS


def test_a_revoked_key_does_not_count_whatever_time_it_claims(delivery: Path) -> None:
    long_ago = datetime(2001, 1, 1, tzinfo=UTC)
    write_receipt(delivery, OURS, long_ago, long_ago)
    finding = found(delivery, revoke(TRUST, OURS.public.keyid, NOW, "stolen"))
    assert finding.status is Status.INCONCLUSIVE
    assert "was revoked on" in finding.summary
    assert "stolen" in finding.summary


def test_beside_a_revoked_key_another_counts(delivery: Path) -> None:
    put(delivery, sign(said(delivery).to_bytes(), OURS, OTHER))
    gone = revoke(BOTH, OURS.public.keyid, NOW, "stolen")
    assert found(delivery, gone).evidence["keys"] == [OTHER.public.keyid]


@pytest.mark.parametrize("given", [{"not_before": LATER}, {"not_after": NOW - timedelta(days=1)}])
def test_a_key_out_of_its_time_does_not_count(delivery: Path, given: dict[str, Any]) -> None:
    finding = found(delivery, Trust((Pinned(key=OURS.public, **given),)))
    assert finding.status is Status.INCONCLUSIVE
    assert "does not count" in finding.summary


@pytest.mark.parametrize("profile", [Profile.THIN, Profile.FULL])
def test_it_decides_in_every_profile(delivery: Path, profile: Profile) -> None:
    (delivery / "receipt.dsse.json").unlink()
    verdict = judged(delivery, profile=profile)
    assert verdict.finding("receipt").decides
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_it_rests_on_what_is_no_delivery_and_cannot_be_left_out(delivery: Path) -> None:
    with pytest.raises(TableError, match="'receipt' cannot be left out"):
        verify(delivery, cases.prepared().manifest, skip="receipt")
    (delivery / "nodes.parquet").write_bytes(b"")
    verdict = judged(delivery)
    finding = verdict.finding("receipt")
    assert (finding.status, finding.decides) == (Status.SKIPPED, True)
    assert verdict.outcome is Outcome.VIOLATION
    assert parse_verdict(verdict.to_json()) == verdict


def test_a_verdict_that_lost_its_deciding_receipt_is_refused(delivery: Path) -> None:
    text = judged(delivery).to_json()
    fields = json.loads(text)
    fields["findings"][-1]["decides"] = False
    with pytest.raises(TableError, match="receipt was judged, and does not decide"):
        parse_verdict(json.dumps(fields))
    fields["findings"].pop()
    # A verdict from before there were receipts.
    assert parse_verdict(json.dumps(fields)).outcome is Outcome.VERIFIED


def test_keys_are_given_as_files(delivery: Path, tmp_path: Path) -> None:
    write_key(OURS, tmp_path / "key")
    write_trust(BOTH, tmp_path / "keys.json")
    made = cases.prepared()
    given: list[str | os.PathLike[str] | list[str | os.PathLike[str]]] = [
        tmp_path / "key.pub",
        [str(tmp_path / "key.pub"), tmp_path / "keys.json"],
    ]
    for keys in given:
        verdict = verify(
            delivery, made.manifest, skip=("fingerprint", "utility"), provider_keys=keys
        )
        assert verdict.finding("receipt").status is Status.PASS
    for wrong in (7, [7], None):
        with pytest.raises(TableError, match="provider_keys must be paths of keys"):
            verify(delivery, made.manifest, provider_keys=wrong)  # type: ignore[arg-type]


def test_a_file_without_keys_does_not_let_the_receipt_rest(delivery: Path, tmp_path: Path) -> None:
    write_trust(NO_TRUST, tmp_path / "keys.json")
    with pytest.raises(TableError, match="holds no key"):
        verify(delivery, cases.prepared().manifest, provider_keys=tmp_path / "keys.json")


def test_a_key_in_the_manifest_cannot_be_forgotten(tmp_path: Path) -> None:
    write_key(OURS, tmp_path / "key")
    options = PrepareOptions(provider_keys=[tmp_path / "key.pub"], threads=1)
    table = cases.table()
    made = prepare(table, target="y", quasi="all", k=3, options=options)
    assert made.manifest.provider_keys == (OURS.public,)
    folder = tmp_path / "delivery"
    write_delivery(cases.honest(made.submission), folder)
    skip = ("fingerprint", "utility")
    verdict = verify(folder, made.manifest, submission=made.submission, skip=skip)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    # As a verdict from before, or of an older version, that looked at no receipt.
    blind = replace(verdict, findings=tuple(f for f in verdict.findings if f.layer != "receipt"))
    assert blind.accepted
    with pytest.raises(NotAcceptedError, match="pins a key of the provider's"):
        release(folder, made.manifest, blind, table=table)
    write_receipt(folder, OURS, NOW, NOW)
    verdict = verify(folder, made.manifest, submission=made.submission, skip=skip)
    assert verdict.accepted
    assert release(folder, made.manifest, verdict, table=table).sheet is not None
    ended = Trust((Pinned(key=OURS.public, not_after=NOW - timedelta(days=1)),))
    for given in (revoke(TRUST, OURS.public.keyid, NOW, "stolen"), ended):
        assert not verify(folder, made.manifest, skip=skip, provider_keys=given)
    others = Trust((Pinned(key=OTHER.public),))
    assert verify(folder, made.manifest, skip=skip, provider_keys=others)


def test_a_manifest_pins_keys_that_count(tmp_path: Path) -> None:
    write_trust(revoke(TRUST, OURS.public.keyid, NOW, ""), tmp_path / "keys.json")
    with pytest.raises(TableError, match="none of the provider's keys counts"):
        PrepareOptions(provider_keys=[tmp_path / "keys.json"])
