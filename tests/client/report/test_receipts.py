"""What the report says of a receipt: whose work it is, apart from what the work is worth."""

from dataclasses import replace

import pytest

from client.report import pages
from verix_anon.client.report import render
from verix_anon.client.verdict import Finding, Outcome, Status, Verdict

pytestmark = pytest.mark.usefixtures("quick_models")

KEY = "5a" * 32


def with_receipt(status: Status, summary: str, *, name: str = "honest") -> Verdict:
    verdict = pages.judged(name)
    finding = Finding(
        layer="receipt",
        status=status,
        summary=summary,
        evidence={"keys": [KEY], "finished": "2026-11-16T05:00:00+00:00"},
    )
    return replace(verdict, findings=(*verdict.findings[:-1], finding))


def text_of(verdict: Verdict) -> str:
    return pages.text_of(render(verdict))


def test_a_pass_shows_key_and_claimed_time() -> None:
    text = text_of(with_receipt(Status.PASS, "The provider signed."))
    assert "The work was done as agreed." in text
    assert KEY in text
    assert "finished, in the provider's words" in text


def test_without_it_the_work_is_not_called_wrong() -> None:
    verdict = with_receipt(Status.INCONCLUSIVE, "There is none.")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    text = text_of(verdict)
    assert "It is not shown that the provider answers for these files." in text
    assert "The checks of the work itself passed. There is none." in text
    assert "Verify again with the submission at hand" not in text


def test_a_false_one_is_a_violation_of_its_own() -> None:
    verdict = with_receipt(Status.FAIL, "It names other files.")
    assert verdict.outcome is Outcome.VIOLATION
    text = text_of(verdict)
    assert "The provider's receipt does not cover these files." in text
    assert "The work was not done as agreed." not in text


def test_beside_a_failure_of_the_work_the_work_comes_first() -> None:
    text = text_of(with_receipt(Status.FAIL, "It names other files.", name="approximate"))
    assert "The work was not done as agreed." in text
    assert "receipt: It names other files." in text


def test_a_verdict_from_before_receipts_is_shown() -> None:
    verdict = pages.judged("honest")
    assert verdict.findings[-1].layer == "receipt"
    text = text_of(replace(verdict, findings=verdict.findings[:-1]))
    assert "The work was done as agreed." in text
    assert "Has the provider signed for these files?" not in text
