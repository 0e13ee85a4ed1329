"""What the benchmark on Spark makes of Spark's log, and of a measured job."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.bench.spark_estimate import ASSUMED, estimate
from tools.bench.spark_log import PHASES, phases
from tools.bench.spark_page import render


def job(number: int, phase: str, stages: list[int]) -> dict[str, Any]:
    group = {"spark.jobGroup.id": f"verix-anon {phase}"}
    times = {"Submission Time": 1_000 * number, "Properties": group}
    return {"Event": "SparkListenerJobStart", "Job ID": number, "Stage IDs": stages, **times}


def task(stage: int, written: int) -> dict[str, Any]:
    metrics = {
        "Executor Run Time": 2_500,
        "Disk Bytes Spilled": 7,
        "Shuffle Write Metrics": {"Shuffle Bytes Written": written},
    }
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics}


def end(number: int) -> dict[str, Any]:
    return {
        "Event": "SparkListenerJobEnd",
        "Job ID": number,
        "Completion Time": 1_000 * number + 500,
    }


def test_passes_are_counted_by_what_is_sent_on(tmp_path: Path) -> None:
    events = [{"Event": "SparkListenerApplicationStart"}]
    for number, phase in enumerate(PHASES):
        stages = [10 * number, 10 * number + 1, 10 * number + 2]
        sent = {"split": [40, 0, 60], "check records": [9, 0, 0], "grow": [8, 0, 0]}.get(phase, [0])
        events.append(job(number, phase, stages))
        for stage, n_bytes in zip(stages, sent, strict=False):
            events += [task(stage, n_bytes), task(stage, n_bytes)]
        events.append(end(number))
    log = tmp_path / "log"
    log.write_text("\n".join(map(json.dumps, events)))
    found = phases(log)
    assert {name: phase["passes"] for name, phase in found.items()} == {
        **dict.fromkeys(PHASES, 1),
        "split": 2,
    }
    assert found["split"] == {
        "passes": 2,
        "seconds": 0.5,
        "tasks": 6,
        "sending_tasks": 4,
        "task_seconds": 15.0,
        "shuffled_bytes": 200,
        "spilled_bytes": 42,
    }


def measured(rows: int) -> dict[str, Any]:
    """A job whose every record costs a microsecond a pass, and 100 bytes a shuffle."""
    phase = {"passes": 1, "seconds": 1.0, "tasks": 4, "sending_tasks": 0, "spilled_bytes": 0}
    found = {name: phase | {"task_seconds": rows / 1e6, "shuffled_bytes": 0} for name in PHASES}
    for name in ("check records", "grow"):
        found[name] |= {"shuffled_bytes": 100 * rows, "sending_tasks": 4}
    found["split"] |= {"passes": 6, "task_seconds": 6 * rows / 1e6}
    found["split"] |= {"sending_tasks": 24, "shuffled_bytes": 24 * 1000}
    sizes = {"read_bytes": 100 * rows, "split_bytes": 60 * rows, "delivered_bytes": 40 * rows}
    facts = {"seconds": 9.0, "load_average": 0.0, "peak_bytes": 1, "driver_bytes": 1}
    shape = {"rows": rows, "columns": 16, "task_rows": rows // 8, "most_bytes": 2}
    return {**shape, **facts, **sizes, "phases": found}


def test_the_estimate_is_arithmetic() -> None:
    found = estimate(measured(1_000_000))
    # 32 GiB a worker: 2.8 million records a task, nine halvings, two passes for each.
    assert found["levels"] == 9
    assert found["passes"] == 2 * 9 + 3
    cores = ASSUMED["workers"] * ASSUMED["cores"]
    assert found["task_seconds"] == pytest.approx((18 + 4) * 1_000 / cores)
    assert found["read_bytes"] == pytest.approx(1e9 * (3 * 100 + 18 * 60 + 40))
    assert found["shuffled_bytes"] == pytest.approx(1e9 * 200 + 1000 * 18 * 2 * cores)
    # The measured job's size does not matter, if a record costs the same.
    assert estimate(measured(20_000_000)) == pytest.approx(found)


def test_the_page_has_every_phase() -> None:
    result = measured(1_000_000)
    page = render(result | {"estimate": estimate(result)})
    assert sum(line.startswith(tuple(f"| {name} |" for name in PHASES)) for line in page) == 5
    assert any("on paper" in line for line in page)
