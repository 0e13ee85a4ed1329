"""What every honest provider's delivery must pass, in every mode."""

from verix_anon.client.prepare import Prepared
from verix_anon.client.verdict import Finding, Outcome, Status
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.client.verify.case import Audit
from verix_anon.protocol.messages import Delivery

DECIDING = ("commitment", "sentinels", "twins", "replay", "splits")


def assert_verified(made: Prepared, delivery: Delivery) -> None:
    """In full, in full with a sampled audit, and thin."""
    for sent, audit in (
        (made.submission, Audit.ALL),
        (made.submission, Audit.SAMPLE),
        (None, Audit.ALL),
    ):
        verdict = verify(
            delivery, made.manifest, submission=sent, options=VerifyOptions(audit=audit)
        )
        alarms: list[Finding] = [
            f for f in verdict.findings if f.layer in DECIDING and f.status is not Status.PASS
        ]
        assert not alarms
        assert verdict.outcome is Outcome.VERIFIED
