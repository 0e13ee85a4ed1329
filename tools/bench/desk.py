"""How long the desk's pages take to answer while a large table is verified beside them.

A job of a million rows is prepared, anonymized, verified and tried by commands; then the desk is
asked to verify it once more, and every page is asked for, again and again, until that has ended.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pyarrow.parquet as pq

from tools.bench.tables import submission, table_of

ROWS, COLUMNS, SECONDS, AIM = 1_000_000, 16, 60.0, 1.0
ROOT = Path(__file__).parent.parent.parent
COMMAND = [sys.executable, "-m", "verix_anon"]
JOB, TABLE = "job", "people.parquet"
STEPS = ("table", "columns", "privacy", "send", "verdict", "release")
PAGES = ("/", *(f"/jobs/{JOB}/{step}" for step in STEPS))
FOR_VERDICT = ["job/delivery", "--manifest", "job/manifest.verix"]
WORK = [
    ["init", TABLE, "--target", "y", "--out", "job/roles.toml"],
    ["prepare", TABLE, "--roles", "job/roles.toml", "--out", JOB],
    ["anonymize", "job/submission", "--out", "job/delivery"],
    ["verify", *FOR_VERDICT, "--submission", "job/submission", "--out", "job/verdict.json"],
]
TRIED = ["explore", TABLE, "--roles", "job/roles.toml", "--k", "5,10", "--json"]


def measure(n_rows: int = ROWS) -> dict[str, Any]:
    """Each page's answers while the work runs: how many, the median and the slowest."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        variables = environment(folder)
        pq.write_table(table_of(submission(n_rows, COLUMNS)), folder / TABLE)
        (folder / JOB).mkdir()
        for words in WORK:
            subprocess.run(
                [*COMMAND, *words], cwd=folder, env=variables, check=True, capture_output=True
            )
        tried = subprocess.run(
            [*COMMAND, *TRIED], cwd=folder, env=variables, check=True, capture_output=True
        )
        (folder / JOB / "explore.json").write_bytes(tried.stdout)
        with _served(folder, variables) as client:
            taken = _asked(client)
    pages = {
        page: {"answers": len(took), "median": sorted(took)[len(took) // 2], "slowest": max(took)}
        for page, took in taken.items()
    }
    return {"rows": n_rows, "columns": COLUMNS, "pages": pages}


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "VERIX_LEDGER": str(folder / "ledger.jsonl"),
    }


@contextmanager
def _served(folder: Path, variables: dict[str, str]) -> Iterator[httpx2.Client]:
    """A browser that the desk of the folder has let in."""
    process = subprocess.Popen(
        [*COMMAND, "desk", str(folder), "--no-browser"],
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = next(word for line in process.stdout for word in line.split() if "/enter?" in word)
        with httpx2.Client(base_url=url.split("/enter", 1)[0], timeout=SECONDS) as client:
            assert client.get(url).status_code == 303
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)


def _asked(client: httpx2.Client) -> dict[str, list[float]]:
    found = re.search(r'name="csrf" content="([^"]+)"', client.get("/").text)
    assert found is not None
    started = client.post(
        f"/jobs/{JOB}/verdict",
        data={"csrf": found[1]},
        headers={"Origin": str(client.base_url).rstrip("/")},
    )
    assert started.status_code == 303, started.text
    taken: dict[str, list[float]] = {page: [] for page in PAGES}
    while "data-events" in client.get(f"/jobs/{JOB}/verdict").text:
        for page, took in taken.items():
            began = time.perf_counter()
            answer = client.get(page)
            took.append(time.perf_counter() - began)
            assert answer.status_code == 200, page
    return taken


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    what = f"{result['rows']:,} rows of {result['columns']} columns"
    how = (
        f"Every page of a job of {what} was asked for, again and again, while the desk verified it."
    )
    lines = [
        f"{how} The aim is {AIM:.0f} s for the slowest.",
        "",
        "| page | answers | median | slowest |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| `{page}` | {found['answers']} | {found['median']:.3f} s | {found['slowest']:.3f} s |"
        for page, found in result["pages"].items()
    ]
    return [*lines, ""]
