"""How long check.html takes: the proof of one record of a large table, and a large released file.

The page is opened from a file in Chromium, as a reader opens it. The proof is timed from the moment
it is dropped until the answer is shown, the file from the same moment until its digest is shown.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tools.bench import desk
from tools.bench.tables import submission, table_of
from tools.browser import chromium
from verix_anon.checker import write_page

ROWS, COLUMNS, MEGABYTES, TIMES = 1_000_000, 16, 100, 5
AIM = 0.5
"""Seconds until the answer about a proof"""
PROOF = "proof.json"
PROVE = ["prove", "job/delivery", *("--manifest", "job/manifest.verix"), "--table", desk.TABLE]


def measure(n_rows: int = ROWS, megabytes: int = MEGABYTES) -> dict[str, Any]:
    """The sizes of the page and the proof, and the seconds of every try."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pq.write_table(table_of(submission(n_rows, COLUMNS)), folder / desk.TABLE)
        (folder / desk.JOB).mkdir()
        proving = [*PROVE, "--record", str(n_rows // 2), "--out", PROOF, "--json"]
        for words in [*desk.WORK, proving]:
            done = subprocess.run(
                [*desk.COMMAND, *words],
                cwd=folder,
                env=desk.environment(folder),
                check=True,
                capture_output=True,
            )
        root = json.loads((folder / "job/verdict.json").read_bytes())["root"]
        splits = len(json.loads(done.stdout)[0]["splits"])
        large = folder / "released.csv"
        large.write_bytes(b"0123456789abcde\n" * (megabytes << 16))
        page = write_page(folder / PROOF)
        with chromium() as browser:

            def answered(path: Path, root: str, shown: str) -> float:
                """A page of its own for each try, as at a reader's first visit."""
                context = browser.new_context(offline=True)
                opened = context.new_page()
                opened.goto(page.as_uri())
                opened.locator("#root").evaluate("(field, value) => field.value = value", root)
                began = time.perf_counter()
                opened.set_input_files("#files", str(path))
                opened.wait_for_selector(shown)
                seconds = time.perf_counter() - began
                context.close()
                return seconds

            return {
                "rows": n_rows,
                "columns": COLUMNS,
                "page_bytes": page.stat().st_size,
                "proof_bytes": (folder / PROOF).stat().st_size,
                "splits": splits,
                "megabytes": megabytes,
                "proof_seconds": _tries(lambda: answered(folder / PROOF, root, "article.yes")),
                "file_seconds": _tries(lambda: answered(large, "", "article")),
            }


def _tries(work: Callable[[], float]) -> list[float]:
    return [work() for _ in range(TIMES)]


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    proof, file = sorted(result["proof_seconds"]), sorted(result["file_seconds"])
    page = f"check.html has {result['page_bytes'] / 1000:.0f} KB."
    tries = f"Each try has a fresh page in Chromium. The median and the slowest of {TIMES} tries."
    one = f"the proof of one record of {result['rows']:,} x {result['columns']}"
    rows = [
        (f"{one}, {result['splits']} splits", f"{result['proof_bytes'] / 1000:.1f} KB", proof),
        ("a released file", f"{result['megabytes']} MB", file),
    ]
    lines = [f"{page} {tries}", "", "| what is dropped | size | median | slowest |"]
    lines.append("| --- | ---: | ---: | ---: |")
    for what, size, seconds in rows:
        lines.append(f"| {what} | {size} | {seconds[TIMES // 2]:.2f} s | {seconds[-1]:.2f} s |")
    return [*lines, "", f"The aim for the proof is {AIM} s.", ""]
