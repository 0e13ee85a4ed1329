"""A table that one machine can just hold: each command's seconds and peak memory, file to file.

    VERIX_BENCH_ROWS=2000000 python -m tools.bench large

Not part of `make bench`: at its usual size it takes an hour and some fifty gigabytes of disk.
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

from tools.bench.tables import SEED

ROWS, COLUMNS, BLOCK = 20_000_000, 16, 1_000_000
GIGABYTES = {"prepare": 10, "verify": 4, "release": 6}
"""Aims at the usual size."""
ROOT = Path(__file__).parent.parent.parent
JOB, TABLE = "job", "people.parquet"
FOR_VERDICT = ["job/delivery", "--manifest", "job/manifest.verix"]
COMMANDS = {
    "prepare": ["prepare", TABLE, "--target", "y", "--quasi", "all", "--out", JOB],
    "anonymize": ["anonymize", "job/submission", "--out", "job/delivery"],
    "verify": [
        *["verify", *FOR_VERDICT, "--submission", "job/submission"],
        *["--out", "job/verdict.json"],
    ],
    "release": [
        *["release", *FOR_VERDICT, "--verdict", "job/verdict.json"],
        *["--table", TABLE, "--out", "released.parquet"],
    ],
}


def measure() -> dict[str, object]:
    """Walk the whole journey once, in a folder of its own."""
    n_rows = int(os.environ.get("VERIX_BENCH_ROWS", ROWS))
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        return walk(Path(folder), n_rows)


def walk(folder: Path, n_rows: int) -> dict[str, object]:
    """The table is made, and each command runs in a process of its own."""
    write_table(folder / TABLE, n_rows)
    found = {name: run(folder, words) for name, words in COMMANDS.items()}
    header = json.loads((folder / JOB / "delivery" / "delivery.json").read_bytes())
    return {
        "rows": n_rows,
        "columns": COLUMNS,
        "records": header["rows"],
        "leaves": header["leaves"],
        "commands": found,
        "bytes": {
            "table": _size(folder / TABLE),
            "submission": _size(folder / JOB / "submission"),
            "delivery": _size(folder / JOB / "delivery"),
            "release": _size(folder / "released.parquet"),
        },
    }


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
