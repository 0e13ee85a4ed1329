"""What a larger table would cost on a larger cluster: arithmetic from one measured job, on paper.

Nothing of it was run. Seconds of tasks are taken to be proportional to the records, and cores to be
like those of the machine that was measured; reading and sending are added to them, not overlapped.
"""

import math
from typing import Any

__all__ = ["ASSUMED", "COUNTED_BYTES", "estimate"]

ASSUMED: dict[str, float] = {
    "rows": 1_000_000_000,
    "workers": 16,
    "cores": 8,
    "executor_gigabytes": 32,
    "disk_bytes_per_second": 500e6,
    "network_bytes_per_second": 1.25e9,
}
"""Of each worker, but for the rows."""
TASKS_PER_CORE = 2
COUNTED_BYTES = 256
"""What a record takes in a task beside 32 bytes a column, as the engine reckons"""


def estimate(measured: dict[str, Any]) -> dict[str, float]:
    """Passes, bytes and hours."""
    rows, cores = ASSUMED["rows"], ASSUMED["workers"] * ASSUMED["cores"]
    memory = ASSUMED["executor_gigabytes"] * 2**30 / 2 / ASSUMED["cores"]
    task_rows = memory / (32 * measured["columns"] + COUNTED_BYTES)
    levels = _levels(rows, task_rows)
    phases = measured["phases"]
    per_level = phases["split"]["passes"] / _levels(measured["rows"], measured["task_rows"])
    passes = math.ceil(per_level * levels)
    scale = rows / measured["rows"]
    # A record costs a pass as much there as here.
    split = phases["split"]["task_seconds"] / phases["split"]["passes"] * passes
    others = sum(phases[name]["task_seconds"] for name in phases if name != "split")
    counts = phases["split"]["shuffled_bytes"] / phases["split"]["sending_tasks"]
    tables = sum(phases[name]["shuffled_bytes"] for name in ("check records", "grow"))
    shuffled = tables * scale + counts * passes * TASKS_PER_CORE * cores
    # The files twice to check them and once to finish; what is delivered is kept and read before.
    read = (
        3 * measured["read_bytes"] + passes * measured["split_bytes"] + measured["delivered_bytes"]
    ) * scale
    written = 2 * measured["delivered_bytes"] * scale
    seconds = {
        "task_seconds": (split + others) * scale / cores,
        "disk_seconds": (read + written + 2 * shuffled)
        / (ASSUMED["workers"] * ASSUMED["disk_bytes_per_second"]),
        "network_seconds": shuffled / (ASSUMED["workers"] * ASSUMED["network_bytes_per_second"]),
    }
    return {
        **ASSUMED,
        "task_rows": math.floor(task_rows),
        "levels": levels,
        "passes": passes + 3,
        "read_bytes": read,
        "shuffled_bytes": shuffled,
        **seconds,
        "hours": sum(seconds.values()) / 3600,
    }


def _levels(rows: float, task_rows: float) -> int:
    """How often a table is halved until a task holds a part of it."""
    return max(1, math.ceil(math.log2(rows / task_rows)))
