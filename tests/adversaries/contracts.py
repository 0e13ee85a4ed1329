"""Tables prepared under every contract that there can be, for adversaries to misbehave on."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from tools import cases
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.verdict import Outcome, Status, Verdict
from verix_anon.client.verify import verify
from verix_anon.client.verify.case import VerifyOptions
from verix_anon.datasets import census
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Delivery

LABELS: dict[str, Any] = {"rule": Rule.VARIANCE_REDUCTION, "min_leaf": "2k"}
SPREAD: dict[str, Any] = {"rule": Rule.IMPORTANCE_SPREAD, "clear": False, "min_leaf": "k"}
EXACT = VerifyOptions(threads=1, skip=("fingerprint", "utility"))


@dataclass(frozen=True)
class Agreed:
    """What an owner agrees on: the rule, and what is to be preserved."""

    options: dict[str, Any]
    named: dict[str, Any] = field(default_factory=lambda: {"target": "y"})

    @property
    def rule(self) -> Rule:
        return Rule(self.options["rule"])


CONTRACTS = {
    "labels, clear": Agreed({**LABELS, "clear": True}),
    "labels, coded": Agreed({**LABELS, "clear": False, "min_leaf": "k"}),
    "spread, two classes": Agreed(SPREAD),
    "spread, several classes": Agreed(SPREAD, {"target": "town"}),
    "spread, a quantity": Agreed(SPREAD, {"target": "score"}),
    "spread, no target": Agreed(SPREAD, {"task": "none"}),
}


def skewed(n_rows: int) -> pa.Table:
    """The table of the cases, and a column in which most share the greatest value."""
    rng = np.random.default_rng(7)
    full = np.where(rng.random(n_rows) < 0.8, 40, rng.integers(1, 40, n_rows))
    return cases.table(n_rows).add_column(0, "hours", pa.array(full))


@cache
def prepared(contract: str, *, n_rows: int = 500, seed: int = 1) -> Prepared:
    """A table of n_rows, under one of the contracts."""
    return _made(skewed(n_rows), CONTRACTS[contract], seed, k=3)


@cache
def of_census(contract: str, *, n_rows: int = 700, seed: int = 1) -> Prepared:
    """The embedded table, under one of the contracts."""
    agreed = CONTRACTS[contract]
    columns = {"y": "income", "town": "education", "score": "hours_per_week"}
    named = {word: columns.get(name, name) for word, name in agreed.named.items()}
    return _made(census(n_rows), Agreed(agreed.options, named), seed, k=5)


def _made(table: pa.Table, agreed: Agreed, seed: int, k: int) -> Prepared:
    options = PrepareOptions(unsafe_seed=seed, threads=1, **agreed.options)
    return prepare(table, quasi="all", k=k, options=options, **agreed.named)


def judged(delivery: Delivery, made: Prepared, *, thin: bool = False) -> Verdict:
    """The verdict of the layers that decide."""
    sent = None if thin else made.submission
    return verify(delivery, made.manifest, submission=sent, options=EXACT)


def failed(verdict: Verdict) -> set[str]:
    """The layers that failed; a verdict is VIOLATION exactly if there are any."""
    layers = {f.layer for f in verdict.findings if f.decides and f.status is Status.FAIL}
    assert bool(layers) is (verdict.outcome is Outcome.VIOLATION)
    return layers
