"""One owner's job in a process of its own; prints its times and peak memory as JSON.

python -m tools.bench.job ROWS COLUMNS
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from tools.bench.tables import best_of, peak_bytes, submission
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.verdict import Verdict
from verix_anon.client.verify import verify
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider.engine import Settings
from verix_anon.provider.local import LocalProvider, grow, warm_up

Result = dict[str, object]

TIMES = 3
"""How often a thing is measured, the fastest counting."""


def table_of(made: Submission) -> pa.Table:
    columns = {f"x{j}": values for j, values in enumerate(made.records.values)}
    return pa.table({**columns, "y": made.records.target})


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
    """The layers' seconds of the fastest of several verifications, and the whole of it."""
    sent = None if thin else prepared.submission
    verdicts = [verify(delivery, prepared.manifest, submission=sent) for _ in range(times)]
    best = min(verdicts, key=lambda verdict: verdict.seconds)
    return {"layers": layers(best), "whole": best.seconds}


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
    result["grow"] = best_of(TIMES, lambda: grow(prepared.submission, Settings()))
    delivery = LocalProvider().anonymize(prepared.submission)
    result["full"] = judge(delivery, prepared, TIMES, thin=False)
    result["thin"] = judge(delivery, prepared, TIMES, thin=True)
    result["peak_bytes"] = peak_bytes()
    result["submission_bytes"] = prepared.submission.records.nbytes
    return result


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
