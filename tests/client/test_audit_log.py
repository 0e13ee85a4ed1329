"""The audit log: a line for every verdict, and a VIOLATION that later samples do not take back."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from adversaries.attacks import takes_second_best
from tools import cases
from verix_anon.client.audit_log import AuditLog
from verix_anon.client.verdict import Status, Verdict
from verix_anon.client.verify import verify
from verix_anon.client.verify.case import VerifyOptions
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.files.folder_writer import write_delivery
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Delivery

INFORMING = ("fingerprint", "utility")
TABLE = Digest(b"t" * 32)


pytestmark = pytest.mark.usefixtures("quick_models")


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "audit.jsonl")


def judged(delivery: Delivery, log: AuditLog | None, profile: str = "full") -> Verdict:
    made = cases.prepared()
    return verify(
        delivery,
        made.manifest,
        submission=made.submission,
        profile=profile,
        skip=INFORMING,
        log=log,
    )


def entries(log: AuditLog) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.path.read_text().splitlines()]


def test_a_line_for_every_verdict(log: AuditLog) -> None:
    made = cases.prepared()
    good, bad = cases.honest(made.submission), takes_second_best(made.submission).delivery
    verdicts = [judged(good, log), judged(good, log, "thin"), judged(bad, log)]
    assert [entry["outcome"] for entry in entries(log)] == [v.outcome.value for v in verdicts]
    assert [entry["root"] for entry in entries(log)] == [v.root.hex() for v in verdicts]
    assert entries(log)[2]["fired"] == ["splits"]
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_nothing_is_written_without_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = cases.prepared()
    write_delivery(cases.honest(made.submission), "delivery")
    before = sorted(tmp_path.rglob("*"))
    assert verify("delivery", made.manifest, submission=made.submission, skip=INFORMING)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_violation_is_final(log: AuditLog) -> None:
    """What looks at less may not find it again; only the exact check may take it back."""
    good = cases.honest(cases.prepared().submission)
    accepted = judged(good, None)
    violated = replace(
        accepted,
        findings=tuple(
            replace(f, status=Status.FAIL) if f.layer == "splits" else f for f in accepted.findings
        ),
    )
    log.settle(violated, TABLE, is_exact=True)
    (standing,) = log.read(accepted.submission).problems(accepted.root)
    assert f"VIOLATION ({entries(log)[0]['time']})" in standing
    with pytest.raises(NotAcceptedError, match="found in VIOLATION before"):
        judged(good, log, "thin")
    made = cases.prepared()
    with pytest.raises(NotAcceptedError, match="found in VIOLATION before"):
        verify(
            good,
            made.manifest,
            submission=made.submission,
            log=log,
            options=VerifyOptions(audit="sample", skip=INFORMING),
        )
    # The attempts were written down.
    assert [entry["outcome"] for entry in entries(log)] == ["VIOLATION", "VERIFIED", "VERIFIED"]
    assert judged(good, log)
    assert log.read(accepted.submission).problems(accepted.root) == []


def test_another_delivery_does_not_take_it_back(log: AuditLog) -> None:
    """Or the provider nudges a threshold, which gives another root, and plays again."""
    submission = cases.prepared().submission
    assert not judged(takes_second_best(submission).delivery, log)
    with pytest.raises(NotAcceptedError, match="for this submission was found in VIOLATION"):
        judged(cases.honest(submission), log, "thin")


DEEP = b'{"submission": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
LONG = b'{"submission": ' + b"9" * 5_000 + b"}"


@pytest.mark.parametrize(
    "damage", [b"\xff", b"{", b"[]", b"{}", b'{"root": 3}', b"[" * 100_000, DEEP, LONG]
)
def test_a_damaged_line_costs_nothing_but_itself(log: AuditLog, damage: bytes) -> None:
    bad = takes_second_best(cases.prepared().submission).delivery
    verdict = judged(bad, log)
    # Cut short, so without an end: the next line must not be lost with it.
    log.path.write_bytes(b"{}\n" + damage)
    log.settle(judged(bad, None), TABLE, is_exact=True)
    assert "VIOLATION" in log.read(verdict.submission).problems(verdict.root)[0]


def test_damaged_lines_are_told_of_but_not_one_cut_short(log: AuditLog) -> None:
    good = judged(cases.honest(cases.prepared().submission), None)
    log.settle(good, TABLE, is_exact=True)
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + whole[:50])
    assert log.settle(good, TABLE, is_exact=True) == ()
    assert log.read(good.submission).warnings() == ()
    log.path.write_bytes(whole[:50] + b"\n" + whole)
    damaged = f"1 line of the audit log {log.path} cannot be read"
    assert log.read(good.submission).warnings()[0] == damaged


def test_only_an_audit_log_is_appended_to(tmp_path: Path) -> None:
    good = cases.honest(cases.prepared().submission)
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work")
    with pytest.raises(TableError, match="is not an audit log"):
        judged(good, AuditLog(thesis))
    with pytest.raises(TableError, match="cannot be read"):
        judged(good, AuditLog(tmp_path))
    with pytest.raises(TableError, match="there is no folder"):
        judged(good, AuditLog(tmp_path / "nowhere" / "audit.jsonl"))
    write_delivery(good, tmp_path / "delivery")
    with pytest.raises(TableError, match="is, or holds, the input"):
        verify(tmp_path / "delivery", cases.prepared().manifest, log=tmp_path / "delivery")
    assert thesis.read_text() == "years of work"
