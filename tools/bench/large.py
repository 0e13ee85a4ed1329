"""A table that one machine can just hold: each command's seconds and peak memory, file to file.

    VERIX_BENCH_ROWS=2000000 python -m tools.bench large

Not part of `make bench`: at its usual size it takes an hour and some fifty gigabytes of disk.
The submission is anonymized here and on Spark, in its own environment (`make spark-env`), and it is
Spark's delivery that is verified and released: it comes in parts, in the order of the tree.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tools.bench import spark
from tools.bench.tables import SEED

ROWS, COLUMNS, BLOCK = 20_000_000, 16, 1_000_000
GIGABYTES = {"prepare": 10, "anonymize on Spark": 8, "verify": 4, "release": 6}
"""Aims at the usual size."""
ROOT = Path(__file__).parent.parent.parent
JOB, TABLE = "job", "people.parquet"
PREPARE = ["prepare", TABLE, "--target", "y", "--quasi", "all", "--out", JOB]
ANONYMIZE = ["anonymize", "job/submission", "--out", "job/local"]
JUDGED = {
    "spark": "Both engines gave the same root. What Spark wrote was verified and released: it lies"
    " in parts, in the order of the tree. Spark's memory is that of its driver, two executors and"
    " their processes together.",
    "local": "What the local engine wrote was verified and released: Spark's environment"
    " (`make spark-env`) was not there.",
}
"""Whose delivery it is."""


def judging(engine: str) -> dict[str, list[str]]:
    """What is done with the delivery of an engine."""
    judged = [f"job/{engine}", "--manifest", "job/manifest.verix"]
    submission, verdict = ["--submission", "job/submission"], "job/verdict.json"
    table = ["--table", TABLE, "--out", "released.parquet"]
    return {
        "verify": ["verify", *judged, *submission, "--out", verdict],
        "release": ["release", *judged, "--verdict", verdict, *table],
    }


def measure() -> dict[str, object]:
    """Walk the whole journey once, in a folder of its own."""
    n_rows = int(os.environ.get("VERIX_BENCH_ROWS", ROWS))
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        return walk(Path(folder), n_rows)


def walk(folder: Path, n_rows: int) -> dict[str, object]:
    """The table is made, and each command runs in a process of its own."""
    write_table(folder / TABLE, n_rows)
    found = {"prepare": run(folder, PREPARE), "anonymize": run(folder, ANONYMIZE)}
    engine = "local"
    if spark.PYTHON.exists():
        engine = "spark"
        found["anonymize on Spark"] = run_on_spark(folder / JOB, n_rows)
        assert _header(folder, "spark")["root"] == _header(folder, "local")["root"]
    found |= {name: run(folder, words) for name, words in judging(engine).items()}
    return {
        "rows": n_rows,
        "columns": COLUMNS,
        "records": _header(folder, engine)["rows"],
        "leaves": _header(folder, engine)["leaves"],
        "judged": engine,
        "commands": found,
        "bytes": {
            "table": _size(folder / TABLE),
            "submission": _size(folder / JOB / "submission"),
            "delivery": _size(folder / JOB / engine),
            "release": _size(folder / "released.parquet"),
        },
    }


def run_on_spark(job: Path, n_rows: int) -> dict[str, float]:
    """The same submission by the other engine; its memory is that of all its processes."""
    _, wall, taken = spark.run(job, n_rows, "spark")
    return {"wall": wall, "processor": sum(taken.seconds.values()), "peak_bytes": taken.peak}


def _header(folder: Path, engine: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / JOB / engine / "delivery.json").read_bytes())
    return found


def write_table(path: Path, n_rows: int) -> None:
    """Numbers of full precision and a target, a block at a time."""
    blocks = _blocks(n_rows)
    first = next(blocks)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for block in blocks:
            writer.write_table(block)


def _blocks(n_rows: int) -> Iterator[pa.Table]:
    rng = np.random.default_rng(SEED)
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        values = rng.standard_normal((COLUMNS, n))
        label = values[0] + values[1] * values[2] + rng.standard_normal(n) > 0
        columns = {f"x{j}": column for j, column in enumerate(values)}
        yield pa.table({**columns, "y": np.where(label, "yes", "no")})


def run(folder: Path, words: list[str]) -> dict[str, float]:
    """One command: wall and processor seconds, and the most memory that it held."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "VERIX_LEDGER": str(folder / "ledger.jsonl"),
    }
    command = [sys.executable, "-m", "tools.bench.watched", str(folder / "peak"), *words]
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr[-2000:]}")
    used = after.children_user + after.children_system
    return {
        "wall": wall,
        "processor": used - before.children_user - before.children_system,
        "peak_bytes": int((folder / "peak").read_text()),
    }


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    n_rows = result["rows"]
    what = f"{n_rows:,} rows of {result['columns']} numbers of full precision"
    sent = f"{result['records']:,} records were sent and came back in {result['leaves']:,} leaves"
    lines = [
        f"{what}, Parquet in and out; {sent}.",
        "One run, each command in a process of its own; peak memory is what it held at most.",
        JUDGED[result["judged"]],
        "",
        "| command | seconds | processor seconds | peak memory | bytes a row | aim |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, took in result["commands"].items():
        aim = f"{GIGABYTES[name]} GB" if n_rows == ROWS and name in GIGABYTES else ""
        peak = took["peak_bytes"]
        lines.append(
            f"| {name} | {took['wall']:.0f} | {took['processor']:.0f} | {peak / 1e9:.2f} GB"
            f" | {peak / n_rows:.0f} | {aim} |"
        )
    sizes = ", ".join(f"{name} {size / 1e9:.2f} GB" for name, size in result["bytes"].items())
    return [*lines, "", f"Files: {sizes}.", ""]
