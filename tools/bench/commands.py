"""What a user waits for: each command from file to file, in a fresh process.

Another version's sources may be measured in the same run, on the same table:

    VERIX_BENCH_BEFORE=/path/to/src:verix python -m tools.bench commands
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tools.bench.tables import submission

ROWS, COLUMNS, TIMES = 1_000_000, 16, 3
AIMS = {
    "prepare": 6.0,
    "anonymize": 2.0,
    "verify": 2.0,
    "verify, models left out": 1.2,
    "release": 4.0,
}
MEGABYTES = {"submission": 90, "delivery": 75}
"""Aims."""
SOURCE = Path(__file__).parent.parent.parent / "src"

Seconds = dict[str, float]


def measure() -> dict[str, object]:
    """The best of three runs of each command, for this version and for an earlier one if asked."""
    with tempfile.TemporaryDirectory() as folder:
        _write_table(Path(folder) / "people.parquet")
        versions = {"now": (str(SOURCE), "verix_anon")}
        if before := os.environ.get("VERIX_BENCH_BEFORE"):
            versions["before"] = tuple(before.rsplit(":", 1))  # type: ignore[assignment]
        found, sizes = {}, {}
        for name, where in versions.items():
            found[name] = _journey(Path(folder), *where)
            sizes[name] = {part: _megabytes(Path(folder) / "job" / part) for part in MEGABYTES}
    return {"rows": ROWS, "columns": COLUMNS, "commands": found, "megabytes": sizes}


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e6


def _write_table(path: Path) -> None:
    """The table of the other benchmarks, as an owner would have it."""
    sent = submission(ROWS, COLUMNS)
    columns = {f"x{j}": values for j, values in enumerate(sent.records.values)}
    labels = np.where(sent.records.target == 1, "yes", "no")
    pq.write_table(pa.table({**columns, "y": labels}), path)


def _journey(folder: Path, source: str, module: str) -> dict[str, Seconds]:
    """Seconds and processor time of each command; each run begins with an empty job folder."""
    best: dict[str, Seconds] = {}
    # Once more than is counted: the first run ever compiles.
    for turn in range(TIMES + 1):
        job, ledger = folder / "job", folder / "ledger.jsonl"
        shutil.rmtree(job, ignore_errors=True)
        ledger.unlink(missing_ok=True)
        (folder / "released.parquet").unlink(missing_ok=True)
        environment = os.environ | {"PYTHONPATH": source, "VERIX_LEDGER": str(ledger)}
        for name, words in _commands(skips=module == "verix_anon").items():
            took = _run([sys.executable, "-m", module, *words], folder, environment)
            if turn and took["wall"] < best.get(name, {}).get("wall", np.inf):
                best[name] = took
    return best


def _commands(*, skips: bool) -> dict[str, list[str]]:
    verify = ["verify", "job/delivery", "--manifest", "job/manifest.verix"]
    verify += ["--submission", "job/submission"]
    commands = {
        "prepare": ["prepare", "people.parquet", "--target", "y", "--quasi", "all", "--out", "job"],
        "anonymize": ["anonymize", "job/submission", "--out", "job/delivery"],
        "verify": [*verify, "--out", "job/verdict.json"],
    }
    if skips:
        commands["verify, models left out"] = [*verify, "--skip", "fingerprint,utility"]
    commands["release"] = [
        *["release", "job/delivery", "--manifest", "job/manifest.verix"],
        *["--verdict", "job/verdict.json", "--table", "people.parquet"],
        *["--out", "released.parquet"],
    ]
    return commands


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> Seconds:
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    wall, after = time.perf_counter() - began, os.times()
    used = after.children_user + after.children_system
    return {"wall": wall, "processor": used - before.children_user - before.children_system}


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    now, before = result["commands"]["now"], result["commands"].get("before", {})
    where = f"{result['rows']:,} records, {result['columns']} quasi-identifiers, Parquet in and out"
    lines = [
        f"{where}; the best of {TIMES} runs, wall seconds, processor seconds in brackets;",
        "at the end what is sent each way takes as files.",
        "",
        "| command | before | now | aim |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, took in now.items():
        earlier = _shown(before[name]) if name in before else ""
        lines.append(f"| {name} | {earlier} | {_shown(took)} | {AIMS[name]:.1f} |")
    sizes = result["megabytes"]
    for part, aim in MEGABYTES.items():
        earlier = f"{sizes['before'][part]:.1f} MB" if before else ""
        lines.append(f"| {part} | {earlier} | {sizes['now'][part]:.1f} MB | {aim} MB |")
    note = "`before` is another version, measured in the same run." if before else ""
    return [*lines, "", *([note, ""] if note else [])]


def _shown(took: Seconds) -> str:
    return f"{took['wall']:.2f} ({took['processor']:.2f})"
