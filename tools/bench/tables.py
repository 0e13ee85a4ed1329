"""The tables that benchmarks run on, made from a seed, and how long a thing takes."""

import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from verix_anon.protocol.contract import Column, Contract, Kind, Role
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.records import Records

SEED = 20_250_101


def submission(n_rows: int, n_quasi: int, *, n_values: int | None = None, k: int = 5) -> Submission:
    """A table with signal in three columns; continuous, or of `n_values` values a column."""
    rng = np.random.default_rng(SEED)
    values = np.empty((n_quasi, n_rows))
    for column in values:
        rng.standard_normal(out=column)
    noise = rng.standard_normal(n_rows)
    target = (values[0] + values[1] * values[2] + noise > 0).astype(np.uint8)
    if n_values is not None:
        np.clip(np.floor(values * n_values / 6 + n_values / 2), 0, n_values - 1, out=values)
    columns = [Column(name=f"x{j}", kind=Kind.NUMERIC) for j in range(n_quasi)]
    label = Column(name="y", role=Role.TARGET, kind=Kind.CATEGORICAL, categories=("0", "1"))
    contract = Contract(submission_id="0" * 32, k=k, min_leaf=2 * k, columns=(*columns, label))
    tracker = rng.integers(0, 256, (n_rows, 32), np.uint8)
    records = Records(tracker=tracker, values=values, target=target)
    return Submission(contract=contract, records=records)


def table_of(made: Submission) -> pa.Table:
    """The same as the owner has it."""
    columns = {f"x{j}": values for j, values in enumerate(made.records.values)}
    return pa.table({**columns, "y": made.records.target})


def peak_bytes() -> int:
    """The most memory this process has held; what its parent held does not count."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def best_of(times: int, work: Callable[[], object]) -> float:
    """The least of several measurements in seconds: what the machine can do undisturbed."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
