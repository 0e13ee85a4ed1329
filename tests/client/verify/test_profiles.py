"""What a profile needs, uses and says: the paper's, and thin."""

import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from tools import cases
from verix_anon import LocalProvider
from verix_anon.arrays import Floats
from verix_anon.client import models
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.table.task import Labels
from verix_anon.client.verdict import Outcome, Profile, Status
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.datasets import census
from verix_anon.errors import TableError
from verix_anon.files.folder_writer import write_delivery, write_submission
from verix_anon.protocol.contract import Commitment

pytestmark = pytest.mark.usefixtures("quick_models")


@pytest.mark.parametrize("commitment", list(Commitment))
def test_paper_profile_follows_the_contract(commitment: Commitment) -> None:
    made = cases.prepared(commitment=commitment, clear=True)
    verdict = verify(
        cases.honest(made.submission),
        made.manifest,
        submission=made.submission,
        profile=Profile.PAPER,
    )
    finding = verdict.finding("commitment")
    assert finding.status is Status.PASS
    assert finding.evidence["commitment"] == commitment.value
    covers_neither = "covers neither the members" in finding.guarantee
    assert covers_neither is (commitment is Commitment.PAPER)
    assert verdict.finding("replay").status is Status.SKIPPED
    assert verdict.finding("splits").status is Status.SKIPPED


def test_paper_profile_needs_values_in_clear() -> None:
    made = cases.prepared()
    with pytest.raises(TableError, match="'paper' needs columns that were sent in clear"):
        verify(cases.honest(made.submission), made.manifest, profile=Profile.PAPER)


def test_thin_ignores_the_submission() -> None:
    made, other = cases.prepared(), cases.prepared(2)
    delivery = cases.honest(made.submission)
    verdict = verify(delivery, made.manifest, submission=other.submission, profile=Profile.THIN)
    assert verdict
    assert "(1 - d)^400" in verdict.finding("replay").guarantee
    assert "genuine records" in verdict.guarantee
    assert verify(delivery, made.manifest, submission=made.submission).guarantee == ""


def test_paper_profile_is_decided_by_the_fingerprint() -> None:
    made = cases.prepared(clear=True)
    verdict = verify(
        cases.honest(made.submission),
        made.manifest,
        profile=Profile.PAPER,
        options=VerifyOptions(epsilon=1e-12),
    )
    assert verdict.finding("fingerprint").status is Status.FAIL
    assert verdict.outcome is Outcome.VIOLATION


def calls_of(work: Callable[[], object]) -> int:
    """How many calls of the package's functions some work makes, in all threads."""
    found: list[str] = []

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "verix_anon" in frame.f_code.co_filename:
            found.append(frame.f_code.co_name)

    sys.setprofile(see)
    threading.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(found)


def test_thin_does_no_more_than_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in calls, in files that are read, and in models that are trained."""
    made, fit, fitted = cases.prepared(), models.fit, list[int]()
    delivery, submission = tmp_path / "delivery", tmp_path / "submission"
    write_delivery(cases.honest(made.submission), delivery)
    write_submission(made.submission, submission)

    def counted(rows: Floats, labels: Labels) -> object:
        fitted.append(len(rows))
        return fit(rows, labels)

    monkeypatch.setattr(models, "fit", counted)
    judge = partial(verify, delivery, made.manifest)
    judge(submission=submission)
    work, trained = {}, {}
    for profile in ("thin", "full"):
        fitted.clear()
        work[profile] = calls_of(partial(judge, submission=submission, profile=profile))
        trained[profile] = sorted(fitted)
    assert trained["thin"] == trained["full"]
    assert 0 < work["thin"] < work["full"]
    # Thin does not touch a submission, even one that is given.
    assert judge(submission=tmp_path / "none", profile="thin")


@pytest.mark.parametrize("profile", list(Profile))
def test_models_see_at_most_5000_records(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    options = PrepareOptions(rule="variance-reduction", clear=True, unsafe_seed=1, witnesses=1)
    made = prepare(census(6_000), target="income", quasi="all", k=50, options=options)
    fit, seen = models.fit, list[int]()

    def counted(rows: Floats, labels: Labels) -> object:
        seen.append(len(rows))
        return fit(rows, labels)

    monkeypatch.setattr(models, "fit", counted)
    delivery = LocalProvider().anonymize(made.submission)
    verify(delivery, made.manifest, submission=made.submission, profile=profile)
    assert 0 < max(seen) <= 5_000
