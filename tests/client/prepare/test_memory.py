"""Preparing a table takes a bounded number of bytes for each of its rows."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tools import cases
from verix_anon import PrepareOptions, prepare

SMALL, LARGE, N_QUASI = 2_000, 300_000, 16
BYTES = 600
"""For each row: the table once, and a few columns. What is sent takes 172 of them, with traps."""
PREPARE = """
import sys
from tools.bench.tables import peak_bytes
from verix_anon import PrepareOptions, prepare, write_submission

for path in sys.argv[1:]:
    options = PrepareOptions(unsafe_seed=1, witnesses=0, threads=2)
    prepared = prepare(path, quasi="all", task="none", options=options)
    write_submission(prepared.submission, path + ".submission")
    print(peak_bytes())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_bytes_for_each_row(tmp_path: Path) -> None:
    rng, paths = np.random.default_rng(0), []
    for n_rows in (SMALL, LARGE):
        paths.append(tmp_path / f"{n_rows}.parquet")
        columns = {f"x{j}": rng.normal(size=n_rows) for j in range(N_QUASI)}
        pq.write_table(pa.table(columns), paths[-1], row_group_size=n_rows // 3)
    done = subprocess.run(
        [sys.executable, "-c", PREPARE, *paths], capture_output=True, text=True, check=True
    )
    before, after = map(int, done.stdout.split())
    assert (after - before) / (LARGE - SMALL) < BYTES


@pytest.mark.parametrize(
    ("options", "digest"),
    [
        ({}, "de17dd5234a173f64fc6bc262afa11584a3f0c7fe8fdb516dec13bb580802835"),
        ({"places": 20}, "c63f864e114364d418866ef240988cf818985e5ffdd119173d03d839bdd1c1d0"),
        ({"traps": "none"}, "852a83dc7b49c649febdf719f3a6555cd38360fed0ba63cbf46ff2c67cc59b57"),
    ],
)
def test_bytes_of_a_seed(options: dict[str, object], digest: str) -> None:
    """However columns come and go, a submission of a seed is what it was before they did."""
    made = prepare(
        cases.table(3000).drop(["y"]),
        quasi="all",
        task="none",
        options=PrepareOptions(unsafe_seed=1, **options),  # type: ignore[arg-type]
    )
    assert made.submission.digest().hex() == digest
