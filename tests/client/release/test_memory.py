"""A release takes memory for what it publishes, and for one copy of the table: measured."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client.release import releases
from verix_anon.client import release
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.release import source
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.task import TableRole
from verix_anon.errors import TableError
from verix_anon.files.folder_writer import write_delivery

RESULTS = Path(__file__).resolve().parents[3] / "results"
N_QUASI = 16
SMALL, LARGE = 30_000, 120_000
MOST = 450
"""Bytes of arrays that a row may add; with each step's own copy of the table they were 650."""
RELEASE = """
import sys, tracemalloc
from pathlib import Path
import pyarrow
from verix_anon.client.release import ReleaseOptions, release

folder = Path(sys.argv[1])
tracemalloc.start()
release(
    folder / "delivery", folder / "manifest.verix", None,
    table=folder / "table.parquet", out=folder / "released.parquet",
    options=ReleaseOptions(force=True),
)
# Of numpy and of Arrow; what allocators keep besides depends on the machine.
print(tracemalloc.get_traced_memory()[1], pyarrow.default_memory_pool().max_memory())
"""


def peak(folder: Path, n_rows: int) -> int:
    """The most that numpy and Arrow had at a time, each, in a process that releases from files."""
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=n_rows) for j in range(N_QUASI)}
    table = pa.table({**columns, "y": np.where(rng.random(n_rows) < 0.5, "yes", "no")})
    folder.mkdir()
    pq.write_table(table, folder / "table.parquet")
    job = releases.job(table, Declared(target="y", quasi="all"), k=5)
    write_manifest(job.manifest, folder / "manifest.verix")
    write_delivery(job.delivery, folder / "delivery")
    done = subprocess.run(
        [sys.executable, "-c", RELEASE, str(folder)], capture_output=True, text=True, check=True
    )
    return sum(map(int, done.stdout.split()))


def test_a_row_adds_little(tmp_path: Path) -> None:
    small, large = peak(tmp_path / "small", SMALL), peak(tmp_path / "large", LARGE)
    assert (large - small) / (LARGE - SMALL) < MOST


@pytest.mark.parametrize("representation", ["interval", "mean"])
def test_values_that_are_kept_aside_are_the_same(
    representation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = releases.columns()
    table["weight"] = [None, *table["weight"][1:]]
    job = releases.job(pa.table(table))
    held = job.release(representation=representation)
    monkeypatch.setattr(source, "MOST_HELD", 0)
    aside = job.release(representation=representation)
    assert aside.table.equals(held.table)
    assert aside.sheet == held.sheet


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    job = releases.job(pa.table(releases.columns()))
    monkeypatch.setattr("verix_anon.machine.available_memory", lambda: 1000)
    with pytest.raises(TableError, match="releasing 60 records with 4 quasi-identifiers needs"):
        job.release()


def test_the_estimate_is_not_below_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = json.loads((RESULTS / "bench-large.json").read_bytes())
    needed: list[float] = []
    monkeypatch.setattr(release, "check_memory", lambda bytes_, *_: needed.append(bytes_))
    kept: Any = SimpleNamespace(
        n_genuine=measured["rows"],
        quasi=range(measured["columns"]),
        roles={"y": TableRole.TARGET},
        contract=SimpleNamespace(k=5),
    )
    release._check_memory(kept)
    assert needed[0] >= measured["commands"]["release"]["peak_bytes"]
