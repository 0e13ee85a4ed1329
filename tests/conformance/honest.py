"""What every honest provider's delivery must pass, in every mode, and a suite of submissions."""

from collections.abc import Callable
from functools import partial

from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.verdict import Finding, Outcome, Status
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.client.verify.case import Audit
from verix_anon.datasets import census
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Delivery


def _of_census(options: PrepareOptions, *, k: int = 5) -> Prepared:
    return prepare(census(2_000), target="income", quasi="all", k=k, options=options)


SUITE: dict[str, Callable[[], Prepared]] = {
    "coded": partial(_of_census, PrepareOptions(unsafe_seed=1)),
    "coded, by labels": partial(
        _of_census, PrepareOptions(unsafe_seed=2, rule=Rule.VARIANCE_REDUCTION)
    ),
    "coded, without traps, large classes": partial(
        _of_census, PrepareOptions(unsafe_seed=3, traps=Traps.NONE), k=100
    ),
    "coded, a shallow tree": partial(_of_census, PrepareOptions(unsafe_seed=4, max_depth=3)),
    "clear": partial(_of_census, PrepareOptions.paper(unsafe_seed=5)),
}
"""Both rules, coded and clear; small enough for every provider."""

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
