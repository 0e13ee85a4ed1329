"""What a user waits for: each command from file to file, in a fresh process.

An earlier commit may be measured in the same run, on the same tables, from a worktree of its own:

    python -m tools.bench commands --before COMMIT
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from experiments.data import load
from tools.bench.tables import submission

TIMES = 3
MEGABYTES = {"submission": 90, "delivery": 75}
"""Aims at 1,000,000 x 16."""
ROOT = Path(__file__).parent.parent.parent

Seconds = dict[str, float]


class Journey(NamedTuple):
    """A table, how it is made, and the aims: how many seconds each command may take."""

    file: str
    rows: int
    write: Callable[[Path, int], None]
    aims: dict[str, float]


def _write_adult(path: Path, n_rows: int) -> None:
    pyarrow.csv.write_csv(load("adult").slice(0, n_rows), path)


def _write_numbers(path: Path, n_rows: int) -> None:
    """The table of the other benchmarks, as an owner would have it."""
    sent = submission(n_rows, 16)
    columns = {f"x{j}": values for j, values in enumerate(sent.records.values)}
    labels = np.where(sent.records.target == 1, "yes", "no")
    pq.write_table(pa.table({**columns, "target": labels}), path)


JOURNEYS = (
    Journey("adult.csv", 48_842, _write_adult, {"all four": 6.0}),
    Journey(
        "people.parquet",
        1_000_000,
        _write_numbers,
        {
            "prepare": 4.0,
            "anonymize": 1.8,
            "verify": 2.0,
            "verify, models left out": 1.3,
            "verify, thin": 1.5,
            "release": 3.0,
        },
    ),
)
FOUR = ("prepare", "anonymize", "verify", "release")


def measure(
    before: str | None = None, journeys: Sequence[Journey] = JOURNEYS, times: int = TIMES
) -> dict[str, object]:
    """The best of some runs of each command, now and at an earlier commit if one is named."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sources = {"now": ROOT / "src"}
        if before is not None:
            _git("worktree", "add", "--detach", str(place / "before"), before)
            sources["before"] = place / "before" / "src"
        try:
            found = [_measure(journey, place, sources, times) for journey in journeys]
        finally:
            if before is not None:
                _git("worktree", "remove", "--force", str(place / "before"))
    return {"before": before, "times": times, "load": os.getloadavg()[1], "journeys": found}


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True)


def _measure(
    journey: Journey, place: Path, sources: dict[str, Path], times: int
) -> dict[str, object]:
    folder = place / "work"
    folder.mkdir(exist_ok=True)
    journey.write(folder / journey.file, journey.rows)
    commands: dict[str, dict[str, Seconds]] = {name: {} for name in sources}
    sizes: dict[str, dict[str, float]] = {}
    # Once more than is counted: the first run ever compiles. Versions take turns, so that what
    # else the machine does disturbs both alike.
    for turn in range(times + 1):
        for version, source in sources.items():
            took = _walk(folder, journey.file, source)
            best = commands[version]
            for name, seconds in took.items() if turn else ():
                if name not in best or seconds["wall"] < best[name]["wall"]:
                    best[name] = seconds
            sizes[version] = {part: _megabytes(folder / "job" / part) for part in MEGABYTES}
    for best in commands.values():
        four = [best[name] for name in FOUR]
        best["all four"] = {key: sum(each[key] for each in four) for key in four[0]}
    return {
        "file": journey.file,
        "rows": journey.rows,
        "aims": journey.aims,
        "commands": commands,
        "megabytes": sizes,
    }


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e6


def _walk(folder: Path, table: str, source: Path) -> dict[str, Seconds]:
    """Seconds and processor time of each command, beginning with nothing but the table."""
    for made in folder.iterdir():
        if made.is_dir():
            shutil.rmtree(made)
        elif made.name != table:
            # A release is more than one file, and all of them must be gone.
            made.unlink()
    environment = os.environ | {
        "PYTHONPATH": str(source),
        "VERIX_LEDGER": str(folder / "ledger.jsonl"),
    }
    return {name: _run(words, folder, environment) for name, words in _commands(table).items()}


def _commands(table: str) -> dict[str, list[str]]:
    verify = ["verify", "job/delivery", "--manifest", "job/manifest.verix"]
    full = [*verify, "--submission", "job/submission"]
    return {
        "prepare": ["prepare", table, "--target", "target", "--quasi", "all", "--out", "job"],
        "anonymize": ["anonymize", "job/submission", "--out", "job/delivery"],
        "verify": [*full, "--out", "job/verdict.json"],
        "verify, models left out": [*full, "--skip", "fingerprint,utility"],
        "verify, thin": [*verify, "--profile", "thin", "--skip", "fingerprint,utility"],
        "release": [
            *["release", "job/delivery", "--manifest", "job/manifest.verix"],
            *["--verdict", "job/verdict.json", "--table", table],
            *["--out", f"released{Path(table).suffix}"],
        ],
    }


def _run(words: list[str], folder: Path, environment: dict[str, str]) -> Seconds:
    command = [sys.executable, "-m", "verix_anon", *words]
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr[-2000:]}")
    used = after.children_user + after.children_system
    return {"wall": wall, "processor": used - before.children_user - before.children_system}


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    best = f"The best of {result['times']} runs, wall seconds, processor seconds in brackets."
    loaded = f"Other processes share the machine: its load was {result['load']:.1f} at the end."
    lines = [f"{best} {loaded}", "Thin verification is measured without models.", ""]
    for journey in result["journeys"]:
        lines += [*_table(journey), ""]
    if result["before"] is not None:
        lines += [f"`before` is {result['before']}, measured in the same run.", ""]
    return lines


def _table(journey: dict[str, Any]) -> list[str]:
    now, before = journey["commands"]["now"], journey["commands"].get("before", {})
    lines = [
        f"`{journey['file']}`, {journey['rows']:,} records:",
        "",
        "| command | before | now | aim |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, took in now.items():
        earlier = _shown(before[name]) if name in before else ""
        aim = f"{journey['aims'][name]:.1f}" if name in journey["aims"] else ""
        lines.append(f"| {name} | {earlier} | {_shown(took)} | {aim} |")
    sizes = journey["megabytes"]
    for part, most in MEGABYTES.items() if "prepare" in journey["aims"] else ():
        earlier = f"{sizes['before'][part]:.1f} MB" if before else ""
        lines.append(f"| {part} | {earlier} | {sizes['now'][part]:.1f} MB | {most} MB |")
    return lines


def _shown(took: Seconds) -> str:
    return f"{took['wall']:.2f} ({took['processor']:.2f})"
