"""verify(): which layers decide, what they conclude together, and what hostile parts do."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tools import cases
from verix_anon.client.owner_files import parse_verdict
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.verdict import DECIDING, Finding, Outcome, Profile, Status, Verdict
from verix_anon.client.verify import LAYERS, NO_ROOT, fingerprint, verify
from verix_anon.client.verify.case import Audit, VerifyOptions
from verix_anon.errors import MixedUpError, TableError
from verix_anon.files.deliveries import Snapshot, read_delivery
from verix_anon.files.folder_writer import write_delivery
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Delivery

pytestmark = pytest.mark.usefixtures("quick_models")


def verdict_of(*findings: tuple[Status, bool]) -> Verdict:
    return Verdict(
        profile=Profile.FULL,
        root=Digest(bytes(32)),
        files={},
        contract=Digest(bytes(32)),
        submission=Digest(bytes(32)),
        findings=tuple(
            Finding(layer=f"layer {i}", status=status, decides=decides, summary="")
            for i, (status, decides) in enumerate(findings)
        ),
    )


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_verdict_is_the_conjunction(n_layers: int) -> None:
    """All combinations of statuses, deciding and informing."""
    for findings in product(product(Status, (True, False)), repeat=n_layers):
        deciding = [status for status, decides in findings if decides]
        if Status.FAIL in deciding:
            expected = Outcome.VIOLATION
        elif set(deciding) == {Status.PASS}:
            expected = Outcome.VERIFIED
        else:
            expected = Outcome.INCONCLUSIVE
        verdict = verdict_of(*findings)
        assert verdict.outcome is expected
        assert bool(verdict) is verdict.accepted is (expected is Outcome.VERIFIED)


def test_nothing_decided_is_not_accepted() -> None:
    assert verdict_of().outcome is Outcome.INCONCLUSIVE
    assert not verdict_of()
    assert not verdict_of((Status.PASS, False))


def test_verdict_survives_json() -> None:
    made = cases.prepared()
    verdict = verify(cases.honest(made.submission), made.manifest, submission=made.submission)
    assert parse_verdict(verdict.to_json()) == verdict
    document = json.loads(verdict.to_json())
    assert document["outcome"] == "VERIFIED"
    assert {f["layer"] for f in document["findings"]} == set(LAYERS)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", "3", '{"format": "verix/verdict/2"}', '{"format": []}', "[" * 100_000],
)
def test_what_is_not_a_verdict(text: str) -> None:
    with pytest.raises(TableError):
        parse_verdict(text)


def test_a_verdict_that_contradicts_itself() -> None:
    made = cases.prepared()
    honest = verify(cases.honest(made.submission), made.manifest, submission=made.submission)
    text = honest.to_json()
    assert parse_verdict(text).accepted
    with pytest.raises(TableError, match="conjunction"):
        parse_verdict(text.replace("VERIFIED", "VIOLATION"))
    document = json.loads(text)
    document["findings"][4] |= {"status": "fail", "decides": False}
    with pytest.raises(TableError, match="deciding layers"):
        parse_verdict(json.dumps(document))


FIVE = {"commitment", "sentinels", "twins", "replay", "splits"}


@pytest.mark.parametrize(
    ("profile", "deciding"),
    [
        (Profile.FULL, FIVE),
        (Profile.THIN, FIVE),
        (Profile.PAPER, {"commitment", "sentinels", "twins", "fingerprint"}),
    ],
)
def test_who_decides(profile: Profile, deciding: set[str]) -> None:
    assert DECIDING[profile] == deciding
    made = cases.prepared(clear=True)
    sent = None if profile is Profile.THIN else made.submission
    verdict = verify(cases.honest(made.submission), made.manifest, submission=sent, profile=profile)
    assert verdict.profile is profile
    assert [f.layer for f in verdict.findings] == list(LAYERS)
    assert {f.layer for f in verdict.findings if f.decides} == deciding


def test_default_profile_follows_the_submission() -> None:
    made = cases.prepared()
    delivery = cases.honest(made.submission)
    assert verify(delivery, made.manifest).profile is Profile.THIN
    with_it = verify(delivery, made.manifest, submission=made.submission)
    assert with_it.profile is Profile.FULL


def test_full_needs_the_submission() -> None:
    made = cases.prepared()
    with pytest.raises(TableError, match="needs the submission"):
        verify(cases.honest(made.submission), made.manifest, profile=Profile.FULL)


def test_thin_without_witnesses_is_inconclusive() -> None:
    made = cases.prepared(witnesses=0)
    verdict = verify(cases.honest(made.submission), made.manifest)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert not verdict


def test_thin_says_what_it_cannot_see() -> None:
    made = cases.prepared()
    verdict = verify(cases.honest(made.submission), made.manifest)
    guarantee = verdict.finding("replay").guarantee
    assert "(1 - d)^400" in guarantee
    assert "widened bounds only in the leaf of a witness" in guarantee
    assert "(1 - d)^20" in verdict.finding("splits").guarantee


def test_sampled_says_what_it_misses() -> None:
    made = cases.prepared(n_rows=1500, traps=Traps.NONE)
    options = VerifyOptions(audit=Audit.SAMPLE, audit_fraction=0.05, audit_miss=0.02)
    verdict = verify(
        cases.honest(made.submission),
        made.manifest,
        submission=made.submission,
        options=options,
    )
    finding = verdict.finding("splits")
    assert "at most 1 in 50" in finding.guarantee
    assert "final" in finding.guarantee
    assert int(str(finding.evidence["examined"])) < int(str(finding.evidence["nodes"]))


def test_informing_layers_never_matter() -> None:
    made = cases.prepared()
    verdict = verify(
        cases.honest(made.submission),
        made.manifest,
        submission=made.submission,
        options=VerifyOptions(epsilon=1e-12),
    )
    assert verdict.finding("fingerprint").status is Status.FAIL
    assert verdict.outcome is Outcome.VERIFIED


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_impossible_epsilons_are_refused(value: float) -> None:
    with pytest.raises(TableError, match="epsilon must be"):
        VerifyOptions(epsilon=value)
    with pytest.raises(TableError, match="epsilon must be"):
        VerifyOptions(epsilon_per_feature={"age": value})


def test_epsilon_of_an_unknown_column() -> None:
    made = cases.prepared()
    with pytest.raises(TableError, match="'agee', which is not a quasi-identifier"):
        verify(
            cases.honest(made.submission),
            made.manifest,
            options=VerifyOptions(epsilon_per_feature={"agee": 0.1}),
        )


def test_no_threads_are_refused() -> None:
    with pytest.raises(TableError, match="threads must be at least 1"):
        VerifyOptions(threads=0)


def test_submission_of_another_manifest() -> None:
    one, two = cases.prepared(1), cases.prepared(2)
    with pytest.raises(TableError, match="not the one this manifest was made for"):
        verify(cases.honest(one.submission), two.manifest, submission=one.submission)


def test_splits_rests_if_replay_failed() -> None:
    made = cases.prepared()
    honest = cases.honest(made.submission)
    target = honest.records.target.copy()
    target[0] ^= 1
    delivery = cases.resealed(
        made.submission, honest, records=replace(honest.records, target=target)
    )
    verdict = verify(delivery, made.manifest, submission=made.submission)
    assert verdict.finding("splits").status is Status.SKIPPED


def test_files_and_memory_agree(tmp_path: Path) -> None:
    made = cases.prepared()
    delivery = cases.honest(made.submission)
    write_delivery(delivery, tmp_path / "delivery")
    from_files = verify(tmp_path / "delivery", made.manifest, submission=made.submission)
    in_memory = verify(delivery, made.manifest, submission=made.submission)
    assert from_files.outcome is in_memory.outcome is Outcome.VERIFIED
    assert from_files.root == in_memory.root
    assert len(from_files.files) == 4
    assert {name.split(":")[0] for name in in_memory.files} == {"memory"}


def test_no_folder_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="there is no folder"):
        verify(tmp_path / "nothing", cases.prepared().manifest)


def test_an_empty_folder_is_the_providers(tmp_path: Path) -> None:
    verdict = verify(tmp_path, cases.prepared().manifest)
    assert verdict.outcome is Outcome.VIOLATION
    assert verdict.root == NO_ROOT


def test_snapshot_read_for_another_submission(tmp_path: Path) -> None:
    """It was well-formed for its own contract; this manifest has fewer rows and columns."""
    large, small = cases.prepared(n_rows=1500, traps=Traps.NONE), cases.prepared(n_rows=150)
    write_delivery(cases.honest(large.submission), tmp_path / "delivery")
    snapshot = read_delivery(
        tmp_path / "delivery", large.submission.contract, n_rows=large.manifest.n_rows
    )
    assert isinstance(snapshot, Snapshot)
    assert verify(snapshot, large.manifest)
    with pytest.raises(MixedUpError):
        verify(snapshot, small.manifest)


def spoilt(honest: Delivery, part: str, name: str, value: object) -> Delivery:
    changed = replace(getattr(honest, part), **{name: value})
    return replace(honest, **{part: changed})


def at(array: npt.NDArray[Any], place: int | tuple[int, int], value: float) -> npt.NDArray[Any]:
    """A copy of an array with one entry changed."""
    copy = array.copy()
    copy[place] = value
    return copy


def hostile(honest: Delivery) -> dict[str, Delivery]:
    records, leaves, tree, header = honest.records, honest.leaves, honest.tree, honest.header
    values: dict[str, tuple[str, str, object]] = {
        "row as float": ("records", "row", records.row.astype(float)),
        "row as int32": ("records", "row", records.row.astype(np.int32)),
        "row as object": ("records", "row", records.row.astype(object)),
        "row negative": ("records", "row", at(records.row, 3, -1)),
        "row too large": ("records", "row", at(records.row, 3, records.row.size)),
        "row huge": ("records", "row", at(records.row, 3, 2**62)),
        "row big-endian": ("records", "row", records.row.astype(">i8")),
        "tracker as int8": ("records", "tracker", records.tracker.astype(np.int8)),
        "tracker as object": ("records", "tracker", records.tracker.astype(object)),
        "leaf as int64": ("records", "leaf", records.leaf.astype(np.int64)),
        "leaf negative": ("records", "leaf", at(records.leaf, 0, -1)),
        "leaf out of range": ("records", "leaf", at(records.leaf, 0, leaves.n_leaves)),
        "target as bool": ("records", "target", records.target.astype(bool)),
        "target 2": ("records", "target", at(records.target, 0, 2)),
        "target as float": ("records", "target", records.target.astype(float)),
        "count as float": ("leaves", "count", leaves.count.astype(float)),
        "count negative": ("leaves", "count", at(leaves.count, 0, -5)),
        "count huge": ("leaves", "count", at(leaves.count, 0, 2**62)),
        "bound NaN": ("leaves", "minimum", at(leaves.minimum, (0, 0), np.nan)),
        "bound infinite": ("leaves", "maximum", at(leaves.maximum, (0, 0), np.inf)),
        "bounds crossed": ("leaves", "minimum", at(leaves.minimum, (0, 0), 1e9)),
        "bound huge": ("leaves", "maximum", at(leaves.maximum, (0, 0), 1.7e308)),
        "bounds as object": ("leaves", "minimum", leaves.minimum.astype(object)),
        "bounds single": ("leaves", "minimum", leaves.minimum.astype(np.float32)),
        "column out of range": ("tree", "column", at(tree.column, 0, 5)),
        "column -2": ("tree", "column", at(tree.column, 0, -2)),
        "column as float": ("tree", "column", tree.column.astype(float)),
        "threshold NaN": ("tree", "threshold", at(tree.threshold, 0, np.nan)),
        "threshold infinite": ("tree", "threshold", at(tree.threshold, 0, np.inf)),
        "threshold huge": ("tree", "threshold", at(tree.threshold, 0, 1e300)),
        "threshold at a leaf": ("tree", "threshold", at(tree.threshold, -1, 1.0)),
        "threshold as text": ("tree", "threshold", tree.threshold.astype(str)),
        "left elsewhere": ("tree", "left", at(tree.left, 0, 2)),
        "cycle": ("tree", "right", at(tree.right, 0, 0)),
        "dangling": ("tree", "right", at(tree.right, 0, 10**6)),
        "leaf number twice": ("tree", "leaf", at(tree.leaf, -1, 0)),
        "leaves out of order": ("tree", "leaf", tree.leaf[::-1].copy()),
        "root is text": ("header", "root", header.root.hex()),
        "root is nothing": ("header", "root", None),
        "root too short": ("header", "root", header.root[:31]),
        "contract is text": ("header", "contract", header.contract.hex()),
        "rows wrong": ("header", "rows", header.rows - 1),
        "rows is text": ("header", "rows", "many"),
        "rows is a float": ("header", "rows", float(header.rows)),
        "rows is True": ("header", "rows", True),
        "no leaves": ("header", "leaves", 0),
        "nodes wrong": ("header", "nodes", header.nodes + 2),
    }
    made = {name: spoilt(honest, *value) for name, value in values.items()}
    made["no records"] = replace(honest, records=None)  # type: ignore[arg-type]
    made["no header"] = replace(honest, header=None)  # type: ignore[arg-type]
    one_column = replace(leaves, minimum=leaves.minimum[:, :1], maximum=leaves.maximum[:, :1])
    made["too few bounds"] = replace(honest, leaves=one_column)
    flat = replace(leaves, minimum=leaves.minimum[:, 0], maximum=leaves.maximum[:, 0])
    made["flat bounds"] = replace(honest, leaves=flat)
    return made


HOSTILE = sorted(hostile(cases.honest(cases.prepared().submission)))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_parts_are_findings(name: str) -> None:
    made = cases.prepared(clear=True)
    delivery = hostile(cases.honest(made.submission))[name]
    for sent, profile in (
        (made.submission, Profile.FULL),
        (None, Profile.THIN),
        (None, Profile.PAPER),
    ):
        verdict = verify(delivery, made.manifest, submission=sent, profile=profile)
        assert verdict.outcome is Outcome.VIOLATION
        assert parse_verdict(verdict.to_json()) == verdict


def test_resealed_huge_bounds_are_a_finding() -> None:
    """Finite, in order and committed to, but beyond what a model can take."""
    made = cases.prepared()
    honest = cases.honest(made.submission)
    maximum = np.full_like(honest.leaves.maximum, 1.7e308)
    delivery = cases.resealed(
        made.submission, honest, leaves=replace(honest.leaves, maximum=maximum)
    )
    for sent in (made.submission, None):
        verdict = verify(delivery, made.manifest, submission=sent)
        assert verdict.finding("commitment").status is Status.PASS
        assert verdict.outcome is Outcome.VIOLATION


def test_unknown_layer_is_an_error() -> None:
    with pytest.raises(LookupError):
        verdict_of((Status.PASS, True)).finding("nothing")


def test_notebook_table_is_escaped() -> None:
    finding = Finding(layer="<b>", status=Status.PASS, summary="<script>")
    html = replace(verdict_of(), findings=(finding,))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize("profile", ["full", "thin"])
def test_what_decides_is_told_before_the_models_are_done(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, is_told, found = cases.prepared(), Event(), list[Finding]()

    def tell(findings: Sequence[Finding]) -> None:
        found.extend(findings)
        is_told.set()

    def slow(*_: object) -> Finding:
        assert is_told.wait(60)
        return Finding(layer="fingerprint", status=Status.PASS, summary="")

    monkeypatch.setattr(fingerprint, "check", slow)
    verdict = verify(
        cases.honest(made.submission),
        made.manifest,
        submission=made.submission,
        profile=profile,
        options=VerifyOptions(decided=tell, threads=2),
    )
    assert found == [finding for finding in verdict.findings if finding.decides]
    assert {finding.layer for finding in found} == DECIDING[Profile(profile)]


def test_in_the_papers_profile_the_fingerprint_is_waited_for() -> None:
    made, found = cases.prepared(clear=True), list[Finding]()
    options = VerifyOptions(decided=found.extend)
    verify(cases.honest(made.submission), made.manifest, profile="paper", options=options)
    assert {finding.layer for finding in found} == DECIDING[Profile.PAPER]
