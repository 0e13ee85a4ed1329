"""One owner's job in a process of its own; prints its times and peak memory as JSON.

python -m tools.bench.job ROWS COLUMNS
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np
import pyarrow as pa

from tools.bench.tables import best_of, peak_bytes, submission, table_of
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.release import join
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.verdict import Verdict
from verix_anon.client.verify import commitment, replay, splits, trap_rows, verify
from verix_anon.client.verify.case import Case
from verix_anon.protocol.messages import Delivery
from verix_anon.provider.engine import EngineSettings
from verix_anon.provider.local import LocalProvider, growth_of, warm_up

Result = dict[str, object]

TIMES = 3
"""How often a thing is measured, the fastest counting."""


class Stages:
    """Seconds of each stage that reports progress, from its first word to its last."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.perf_counter()
        self.first.setdefault(stage, now)
        self.last[stage] = now

    def seconds(self) -> dict[str, float]:
        return {stage: self.last[stage] - self.first[stage] for stage in self.first}


@contextmanager
def timed(result: Result, name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    result[name] = time.perf_counter() - began


def layers(verdict: Verdict) -> dict[str, float]:
    assert verdict.accepted, verdict
    return {finding.layer: finding.seconds for finding in verdict.findings}


def judge(delivery: Delivery, prepared: Prepared, times: int, *, thin: bool) -> Result:
    """The whole of the fastest of several verifications, and what each layer takes by itself."""
    sent = None if thin else prepared.submission
    verdicts = [verify(delivery, prepared.manifest, submission=sent) for _ in range(times)]
    best = min(verdicts, key=lambda verdict: verdict.seconds)
    # Side by side with the others a layer takes longer than alone.
    alone = [exact(delivery, prepared, thin=thin) for _ in range(times)]
    fastest = {name: min(run[name] for run in alone) for name in alone[0]}
    return {"layers": layers(best) | fastest, "whole": best.seconds}


def exact(delivery: Delivery, prepared: Prepared, *, thin: bool) -> dict[str, float]:
    """Seconds of the layers that decide, one after the other."""
    sent = None if thin else prepared.submission
    case = Case(delivery=delivery, manifest=prepared.manifest, submission=sent)
    seconds: Result = {}
    for layer, check in (
        ("commitment", commitment.check),
        ("sentinels", trap_rows.check_sentinels),
        ("twins", trap_rows.check_twins),
        ("replay", replay.check),
        ("splits", splits.check),
    ):
        with timed(seconds, layer):
            check(case)
    return cast("dict[str, float]", seconds)


def joining(table: pa.Table, delivery: Delivery, prepared: Prepared) -> float:
    """Seconds of joining at release what traps have left too small."""
    owner_row, tree = prepared.manifest.owner_row, delivery.tree
    is_genuine = owner_row >= 0
    leaf_of_row = np.empty(table.num_rows, np.int32)
    leaf_of_row[owner_row[is_genuine]] = delivery.records.leaf[is_genuine]
    values = read_owner_table(table, Declared(target="y", quasi="all")).matrix
    genuine = join.Genuine(
        leaf_of_row=leaf_of_row,
        person_of_row=None,
        values=lambda: values,
        is_category=np.zeros(len(values), np.bool_),
    )
    k, chance = prepared.manifest.contract.k, np.random.default_rng(0)
    return best_of(TIMES, lambda: join.join(tree, genuine, k, (), chance))


def measure(n_rows: int, n_quasi: int) -> Result:
    warm_up()
    result: Result = {"rows": n_rows, "columns": n_quasi}
    table = table_of(submission(n_rows, n_quasi))
    stages = Stages()
    # A small one first: what is compiled or imported on first use is not what is measured.
    small = prepare(table.slice(0, 1_000), target="y", quasi="all", k=5)
    delivery = LocalProvider().anonymize(small.submission)
    judge(delivery, small, 1, thin=False)
    judge(delivery, small, 1, thin=True)
    with timed(result, "prepare"):
        prepared = prepare(
            table, target="y", quasi="all", k=5, options=PrepareOptions(progress=stages)
        )
    result["prepare_stages"] = stages.seconds()
    result["grow"] = best_of(TIMES, lambda: growth_of(prepared.submission, EngineSettings()))
    delivery = LocalProvider().anonymize(prepared.submission)
    # What an owner who checks by re-execution computes: the tree, the bounds and the root.
    result["again"] = best_of(TIMES, lambda: LocalProvider().anonymize(prepared.submission))
    result["full"] = judge(delivery, prepared, TIMES, thin=False)
    result["thin"] = judge(delivery, prepared, TIMES, thin=True)
    result["join"] = joining(table, delivery, prepared)
    result["peak_bytes"] = peak_bytes()
    result["submission_bytes"] = prepared.submission.records.nbytes
    return result


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
