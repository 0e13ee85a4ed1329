"""How long the desk's pages and previews take, and the pages while a large table is verified.

A job of a million rows goes by commands up to the preview of its release. Then every page and every
preview is asked for a few times. At last the desk is asked to verify the job once more, and every
page is asked for, again and again, until that has ended. The page of a series has a small one.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tools.bench.tables import submission, table_of

ROWS, COLUMNS, SECONDS, TIMES = 1_000_000, 16, 60.0, 5
PAGE_AIM, PREVIEW_AIM, BESIDE_AIM = 0.5, 2.0, 1.0
"""Seconds that the slowest answer may take; the last of a page beside the work."""
ROOT = Path(__file__).parent.parent.parent
COMMAND = [sys.executable, "-m", "verix_anon"]
JOB, TABLE = "job", "people.parquet"
STEPS = ("table", "columns", "privacy", "send", "verdict", "release")
MONTH, MONTH_ROWS, SERIES = "month.parquet", 2_000, "monthly"
PAGES = ("/", *(f"/jobs/{JOB}/{step}" for step in STEPS), f"/series/{SERIES}")
MONTH_ROLES = """[columns]
id = "identifier"
x0 = "quasi"
x1 = "quasi"
ward = "sensitive"
[contract]
task = "none"
person = "id"
"""
WARDS = 12
PROTECTION = {"k": "10", "rule": "importance-spread", "traps": "adaptive", "min_leaf": "k"}
PREVIEWS: dict[str, dict[str, str] | None] = {
    f"/jobs/{JOB}/table?table={TABLE}&delimiter=,": None,
    f"/jobs/{JOB}/columns/advice": {"person": "record"},
    f"/jobs/{JOB}/columns/groups?column=ward": None,
    f"/jobs/{JOB}/privacy/preview": PROTECTION,
}
"""What follows a choice at once, with the fields of the form; None: it is only asked for."""
FOR_VERDICT = ["job/delivery", "--manifest", "job/manifest.verix"]
WORK = [
    ["init", TABLE, "--target", "y", "--out", "job/roles.toml"],
    ["prepare", TABLE, "--roles", "job/roles.toml", "--out", JOB],
    ["anonymize", "job/submission", "--out", "job/delivery"],
    ["verify", *FOR_VERDICT, "--submission", "job/submission", "--out", "job/verdict.json"],
]
MORE = [
    ["init", TABLE, "--target", "y", "--overview", "job/overview.json"],
    [
        *("release", *FOR_VERDICT, "--verdict", "job/verdict.json", "--table", TABLE),
        *("--preview", "job/preview.json"),
    ],
    ["series", "new", SERIES, "--roles", "month.toml"],
    ["run", MONTH, "--series", SERIES, "--out", "first", "--release", "first.csv"],
]
TRIED = ["explore", TABLE, "--roles", "job/roles.toml", "--k", "5,10", "--json"]


def measure(n_rows: int = ROWS) -> dict[str, Any]:
    """Of pages and previews, and of pages beside the work: how many answers, median, slowest."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        variables = environment(folder)
        wards = np.random.default_rng(0).integers(0, WARDS, n_rows)
        table = table_of(submission(n_rows, COLUMNS - 1))
        table = table.append_column("ward", pa.array([f"ward {i}" for i in wards.tolist()]))
        pq.write_table(table, folder / TABLE)
        month = table.slice(0, MONTH_ROWS).select(["x0", "x1", "ward"])
        pq.write_table(month.append_column("id", pa.array(range(MONTH_ROWS))), folder / MONTH)
        (folder / "month.toml").write_text(MONTH_ROLES)
        (folder / JOB).mkdir()
        for words in [*WORK, *MORE]:
            subprocess.run(
                [*COMMAND, *words], cwd=folder, env=variables, check=True, capture_output=True
            )
        tried = subprocess.run(
            [*COMMAND, *TRIED], cwd=folder, env=variables, check=True, capture_output=True
        )
        (folder / JOB / "explore.json").write_bytes(tried.stdout)
        with _served(folder, variables) as client:
            csrf = _csrf(client)
            pages = {page: _times(partial(client.get, page)) for page in PAGES}
            previews = {
                path: _times(
                    partial(client.get, path)
                    if form is None
                    else partial(_post, client, path, {"csrf": csrf, **form})
                )
                for path, form in PREVIEWS.items()
            }
            beside = _beside(client, csrf)
    parts = {"pages": pages, "previews": previews, "beside": beside}
    summed = {
        part: {
            path: {
                "answers": len(took),
                "median": sorted(took)[len(took) // 2],
                "slowest": max(took),
            }
            for path, took in times.items()
        }
        for part, times in parts.items()
    }
    return {"rows": n_rows, "columns": COLUMNS, **summed}


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


def _csrf(client: httpx2.Client) -> str:
    found = re.search(r'name="csrf" content="([^"]+)"', client.get("/").text)
    assert found is not None
    return found[1]


def _post(client: httpx2.Client, path: str, form: dict[str, str]) -> httpx2.Response:
    origin = str(client.base_url).rstrip("/")
    return client.post(path, data=form, headers={"Origin": origin})


def _times(ask: Callable[[], httpx2.Response]) -> list[float]:
    return [_seconds(ask) for _ in range(TIMES)]


def _seconds(ask: Callable[[], httpx2.Response]) -> float:
    began = time.perf_counter()
    answer = ask()
    took = time.perf_counter() - began
    assert answer.status_code == 200, answer.text
    assert 'class="problem"' not in answer.text, answer.text
    return took


def _beside(client: httpx2.Client, csrf: str) -> dict[str, list[float]]:
    started = _post(client, f"/jobs/{JOB}/verdict", {"csrf": csrf})
    assert started.status_code == 303, started.text
    taken: dict[str, list[float]] = {page: [] for page in PAGES}
    while "data-events" in client.get(f"/jobs/{JOB}/verdict").text:
        for page, took in taken.items():
            took.append(_seconds(partial(client.get, page)))
    return taken


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    what = f"{result['rows']:,} rows of {result['columns']} columns"
    return [
        f"A job of {what}. Each page and each preview was asked for {TIMES} times.",
        "",
        *_table(result["pages"], "page", PAGE_AIM),
        *_table(result["previews"], "preview", PREVIEW_AIM),
        "Every page was then asked for, again and again, while the desk verified the job.",
        "",
        *_table(result["beside"], "page", BESIDE_AIM),
    ]


def _table(times: dict[str, Any], what: str, aim: float) -> Iterator[str]:
    yield f"The aim for the slowest {what} is {aim:g} s."
    yield ""
    yield f"| {what} | answers | median | slowest |"
    yield "| --- | ---: | ---: | ---: |"
    for path, found in times.items():
        slowest = f"{found['slowest']:.3f} s"
        yield f"| `{path}` | {found['answers']} | {found['median']:.3f} s | {slowest} |"
    yield ""
