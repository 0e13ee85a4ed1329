"""Informing layers can be left out, and no verdict rests on them."""

from dataclasses import replace

import pytest

from adversaries.attacks import MATRIX, Make
from tools import cases
from verix_anon.client.owner_files import parse_verdict
from verix_anon.client.prepare import Prepared
from verix_anon.client.verdict import Finding, Status, Verdict
from verix_anon.client.verify import verify
from verix_anon.client.verify.case import VerifyOptions
from verix_anon.errors import TableError
from verix_anon.protocol.messages import Delivery

INFORMING = ("fingerprint", "utility")
PROFILES = ("full", "thin")


pytestmark = pytest.mark.usefixtures("quick_models")


def sent_for(profile: str) -> Prepared:
    return cases.prepared(clear=profile == "paper")


def judged(delivery: Delivery, profile: str, skip: tuple[str, ...] | str) -> Verdict:
    made = sent_for(profile)
    return verify(delivery, made.manifest, submission=made.submission, profile=profile, skip=skip)


def untimed(verdict: Verdict) -> list[Finding]:
    return [replace(f, seconds=0.0) for f in verdict.findings if f.layer not in INFORMING]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "make", [None, *MATRIX], ids=lambda make: getattr(make, "__name__", "honest")
)
def test_the_outcome_is_the_same(make: Make | None, profile: str) -> None:
    sent = cases.prepared().submission
    delivery = cases.honest(sent) if make is None else make(sent).delivery
    everything, less = (judged(delivery, profile, skip) for skip in ((), INFORMING))
    assert less.outcome is everything.outcome
    assert untimed(less) == untimed(everything)
    for layer in INFORMING:
        assert less.finding(layer).status is Status.SKIPPED
        assert not less.finding(layer).decides


def test_one_is_left_out_and_the_other_runs() -> None:
    verdict = judged(cases.honest(cases.prepared().submission), "full", "utility")
    assert verdict.finding("utility").status is Status.SKIPPED
    assert verdict.finding("utility").summary == "Not run: left out by the caller."
    assert verdict.finding("fingerprint").status is not Status.SKIPPED
    assert parse_verdict(verdict.to_json()) == verdict


def test_the_options_say_the_same() -> None:
    made = cases.prepared()
    verdict = verify(
        cases.honest(made.submission),
        made.manifest,
        submission=made.submission,
        options=VerifyOptions(skip=INFORMING),
    )
    skipped = [f.layer for f in verdict.findings if f.status is Status.SKIPPED]
    assert skipped == [*INFORMING, "receipt"]
    assert verdict


@pytest.mark.parametrize(
    ("profile", "skip", "can"),
    [
        ("full", "replay", "fingerprint and utility"),
        ("thin", ("utility", "commitment"), "fingerprint and utility"),
        ("full", "everything", "fingerprint and utility"),
        # Here the fingerprint decides.
        ("paper", "fingerprint", "utility"),
        ("paper", "splits", "utility"),
    ],
)
def test_what_decides_cannot_be_left_out(profile: str, skip: tuple[str, ...], can: str) -> None:
    delivery = cases.honest(sent_for(profile).submission)
    with pytest.raises(TableError, match=f"cannot be left out: .* {profile} only {can} can"):
        judged(delivery, profile, skip)


def test_the_paper_decides_by_the_fingerprint() -> None:
    delivery = cases.honest(sent_for("paper").submission)
    everything, less = (judged(delivery, "paper", skip) for skip in ((), "utility"))
    assert less.outcome is everything.outcome
    assert less.finding("fingerprint").decides
