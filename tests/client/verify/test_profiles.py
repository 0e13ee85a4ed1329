"""What a profile needs, uses and says: the paper's, and thin."""

import pytest

from tools import cases
from verix_anon.client.verdict import Outcome, Profile, Status
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.errors import TableError
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
