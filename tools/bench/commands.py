"""What a user waits for: each command from file to file, in a fresh process.

An earlier commit may be measured in the same run, on the same tables, from a worktree of its own:

    python -m tools.bench commands --before COMMIT

The large table takes a quarter of an hour. It is measured only if asked for, with --large, and
never at an earlier commit.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from experiments.data import load
from tools.bench.tables import submission

TIMES = 3
FILES = ("submission", "delivery")
ROOT = Path(__file__).parent.parent.parent

Seconds = dict[str, float]


class Journey(NamedTuple):
    """A table, how it is made, the aims in seconds and MB, and what 0.2.0 took on two cores."""

    file: str
    rows: int
    write: Callable[[Path, int], None]
    aims: dict[str, float]
    earlier: dict[str, float]
    times: int = TIMES


def _write_adult(path: Path, n_rows: int) -> None:
    pyarrow.csv.write_csv(load("adult").slice(0, n_rows), path)


def _write_numbers(path: Path, n_rows: int) -> None:
    """The table of the other benchmarks, as an owner would have it."""
    sent = submission(n_rows, 16)
    columns = {f"x{j}": values for j, values in enumerate(sent.records.values)}
    labels = np.where(sent.records.target == 1, "yes", "no")
    pq.write_table(pa.table({**columns, "target": labels}), path)


JOURNEYS = (
    Journey(
        "adult.csv",
        48_842,
        _write_adult,
        {"all four": 6.0, "run": 4.0},
        {"prepare": 4.2, "anonymize": 1.2, "verify": 3.3, "release": 1.3, "all four": 10.1},
    ),
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
            "run": 8.0,
            "submission": 90.0,
            "delivery": 75.0,
        },
        {
            "prepare": 7.8,
            "anonymize": 1.9,
            "verify": 3.7,
            "verify, models left out": 2.0,
            "verify, thin": 3.3,
            "release": 3.5,
        },
    ),
)
LARGE = Journey(
    "many.parquet",
    20_000_000,
    _write_numbers,
    {"prepare": 80.0, "release": 100.0},
    {"prepare": 131.0, "anonymize": 40.0, "verify": 42.0, "release": 183.0},
    times=1,
)
FIRST_AIMS = {"the demo, first run ever": 40.0, "of which compiling": 10.0}
IMPORTED = re.compile(r"^import time: +([0-9]+) \| +[0-9]+ \| +(\S+)$", re.MULTILINE)
FOUR = ("prepare", "anonymize", "verify", "release")


def measure(
    before: str | None = None, journeys: Sequence[Journey] = JOURNEYS, *, large: bool = False
) -> dict[str, object]:
    """The best of some runs of each command, now and at an earlier commit if one is named."""
    journeys = (*journeys, LARGE) if large else journeys
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sources = {"now": ROOT / "src"}
        if before is not None:
            _git("worktree", "add", "--detach", str(place / "before"), before)
            sources["before"] = place / "before" / "src"
        try:
            first = first_run(place)
            now = {"now": sources["now"]}
            found = [_measure(j, place, now if j is LARGE else sources) for j in journeys]
            imports = imported(place / "work", journeys[0])
        finally:
            if before is not None:
                _git("worktree", "remove", "--force", str(place / "before"))
    load, times = os.getloadavg()[1], journeys[0].times
    told = {"before": before, "times": times, "load": load, "journeys": found}
    return told | {"first": first, "imports": imports}


def first_run(place: Path) -> dict[str, float]:
    """Seconds of the demo with neither bytecode nor kernels of an earlier run, and with both."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONPYCACHEPREFIX": str(place / "bytecode"),
        "NUMBA_CACHE_DIR": str(place / "kernels"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    first, second = (_run(["demo"], place, environment)["wall"] for _ in range(2))
    return dict(zip(FIRST_AIMS, (first, first - second), strict=True))


def imported(folder: Path, journey: Journey) -> dict[str, dict[str, Any]]:
    """What each command imports: modules, seconds, and the packages that take most of them."""
    journey.write(folder / journey.file, journey.rows)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONPROFILEIMPORTTIME": "1"}
    found = {}
    for name, words, told in _walked(folder, journey.file, environment, with_run=True):
        del words
        packages = Counter[str]()
        for microseconds, module in IMPORTED.findall(told):
            packages[module.split(".")[0]] += int(microseconds)
        found[name] = {
            "modules": len(IMPORTED.findall(told)),
            "seconds": packages.total() / 1e6,
            "most": {package: n / 1e6 for package, n in packages.most_common(4)},
        }
    return found


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True)


def _measure(journey: Journey, place: Path, sources: dict[str, Path]) -> dict[str, object]:
    folder = place / "work"
    folder.mkdir(exist_ok=True)
    journey.write(folder / journey.file, journey.rows)
    commands: dict[str, dict[str, Seconds]] = {name: {} for name in sources}
    sizes: dict[str, dict[str, float]] = {}
    # Once more than is counted: the first run ever compiles. Versions take turns, so that what
    # else the machine does disturbs both alike.
    for turn in range(journey.times + 1) if journey.times > 1 else (1,):
        for version, source in sources.items():
            took = _walk(folder, journey.file, source, with_run=version == "now")
            best = commands[version]
            for name, seconds in took.items() if turn else ():
                if name not in best or seconds["wall"] < best[name]["wall"]:
                    best[name] = seconds
            sizes[version] = {part: _megabytes(folder / "job" / part) for part in FILES}
    for best in commands.values():
        four = [best[name] for name in FOUR]
        best["all four"] = {key: sum(each[key] for each in four) for key in four[0]}
    return {
        "file": journey.file,
        "rows": journey.rows,
        "aims": journey.aims,
        "earlier": journey.earlier,
        "commands": commands,
        "megabytes": sizes,
    }


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e6


def _walk(folder: Path, table: str, source: Path, *, with_run: bool) -> dict[str, Seconds]:
    """Seconds and processor time of each command, beginning with nothing but the table."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    walked = _walked(folder, table, environment, with_run=with_run)
    return {name: took for name, took, _ in walked}


def _walked(
    folder: Path, table: str, environment: dict[str, str], *, with_run: bool
) -> Iterator[tuple[str, Seconds, str]]:
    """Each command, what it took, and what it said on stderr."""
    for made in folder.iterdir():
        if made.is_dir():
            shutil.rmtree(made)
        elif made.name != table:
            # A release is more than one file, and all of them must be gone.
            made.unlink()
    for name, words in _commands(table).items():
        if with_run or name != "run":
            # A table is released once: the journey in one command has a ledger of its own.
            ledger = {"VERIX_LEDGER": str(folder / f"ledger of {words[0] == 'run'}.jsonl")}
            yield name, *_run_told(words, folder, environment | ledger)


def _commands(table: str) -> dict[str, list[str]]:
    verify = ["verify", "job/delivery", "--manifest", "job/manifest.verix"]
    full = [*verify, "--submission", "job/submission"]
    columns = ["--target", "target", "--quasi", "all"]
    ending = Path(table).suffix
    return {
        "prepare": ["prepare", table, *columns, "--out", "job"],
        "anonymize": ["anonymize", "job/submission", "--out", "job/delivery"],
        "verify": [*full, "--out", "job/verdict.json"],
        "verify, models left out": [*full, "--skip", "fingerprint,utility"],
        "verify, thin": [*verify, "--profile", "thin", "--skip", "fingerprint,utility"],
        "release": [
            *["release", "job/delivery", "--manifest", "job/manifest.verix"],
            *["--verdict", "job/verdict.json", "--table", table],
            *["--out", f"released{ending}"],
        ],
        "run": ["run", table, *columns, "--out", "whole", "--release", f"whole{ending}"],
    }


def _run(words: list[str], folder: Path, environment: dict[str, str]) -> Seconds:
    return _run_told(words, folder, environment)[0]


def _run_told(words: list[str], folder: Path, environment: dict[str, str]) -> tuple[Seconds, str]:
    command = [sys.executable, "-m", "verix_anon", *words]
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr[-2000:]}")
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return {"wall": wall, "processor": used}, done.stderr


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    best = f"The best of {result['times']} runs, wall seconds, processor seconds in brackets."
    loaded = f"Other processes share the machine: its load was {result['load']:.1f} at the end."
    lines = [f"{best} {loaded}", "Thin verification is measured without models.", ""]
    for journey in result["journeys"]:
        lines += [*_table(journey), ""]
    if result["before"] is not None:
        lines += [f"`before` is {result['before']}, measured in the same run.", ""]
    if not all("before" in journey["commands"] for journey in result["journeys"]):
        large = "" if result["before"] is None else f"At {LARGE.rows:,} records, "
        lines += [f"{large}`before` is version 0.2.0, measured earlier on two quiet cores.", ""]
    lines += ["| first run | now | aim |", "| --- | ---: | ---: |"]
    for name, aim in FIRST_AIMS.items():
        lines.append(f"| {name} | {result['first'][name]:.1f} | {aim:.0f} |")
    heading = "What each command imports, in seconds of `python -X importtime`:"
    lines += ["", heading, "", "| command | modules | seconds | most of them |"]
    lines += ["| --- | ---: | ---: | --- |"]
    for name, found in result["imports"].items():
        most = ", ".join(f"{package} {took:.2f}" for package, took in found["most"].items())
        lines.append(f"| {name} | {found['modules']} | {found['seconds']:.2f} | {most} |")
    return [*lines, ""]


def _table(journey: dict[str, Any]) -> list[str]:
    now, before = journey["commands"]["now"], journey["commands"].get("before", {})
    lines = [
        f"`{journey['file']}`, {journey['rows']:,} records:",
        "",
        "| command | before | now | aim |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, took in now.items():
        stated = journey["earlier"].get(name) if not before else None
        earlier = _shown(before[name]) if name in before else f"{stated:.1f}" if stated else ""
        aim = f"{journey['aims'][name]:.1f}" if name in journey["aims"] else ""
        lines.append(f"| {name} | {earlier} | {_shown(took)} | {aim} |")
    sizes = journey["megabytes"]
    for part in FILES:
        earlier = f"{sizes['before'][part]:.1f} MB" if before else ""
        aim = f"{journey['aims'][part]:.0f} MB" if part in journey["aims"] else ""
        lines.append(f"| {part} | {earlier} | {sizes['now'][part]:.1f} MB | {aim} |")
    return lines


def _shown(took: Seconds) -> str:
    return f"{took['wall']:.2f} ({took['processor']:.2f})"
