"""The owner's work beside growing the tree, by part, size and width of the table."""

import json
import subprocess
import sys
from typing import Any

MILLION = 1_000_000
SIZES = ((10_000, 16), (100_000, 16), (MILLION, 16), (10_000_000, 16))
WIDTHS = ((100_000, 8), (100_000, 32), (100_000, 64), (100_000, 128))
EXACT_LAYERS = ("commitment", "sentinels", "twins", "replay")
HEAD = (
    *("rows", "columns", "grow", "engine", "exact", "exact / grow", "decides", "decides / grow"),
    *("decides / engine", "full", "thin", "peak GB"),
)

Job = dict[str, Any]


def measure() -> dict[str, object]:
    """Every job in a process of its own, so that its peak memory is its own."""
    jobs = {f"{n_rows}x{n_quasi}": _job(n_rows, n_quasi) for n_rows, n_quasi in SIZES + WIDTHS}
    return {"jobs": jobs}


def _job(n_rows: int, n_quasi: int) -> Job:
    command = [sys.executable, "-m", "tools.bench.job", str(n_rows), str(n_quasi)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    job: Job = json.loads(done.stdout)
    return job


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    jobs: dict[str, Job] = result["jobs"]
    million = jobs[f"{MILLION}x16"]
    lines = [
        "Seconds, in memory. `grow` is growing the tree with our own engine in the same process,",
        "by the contract that is the default. `engine` is all that the engine does, with bounds",
        "and hashing. `exact` is commitment, sentinels, twins and replay with the submission at",
        "hand, one after the other; `decides` is `exact` with the splits. `full` and `thin` are",
        "whole verifications with and without the submission, models included. Their layers run",
        "side by side.",
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{' ---: |' * len(HEAD)}",
    ]
    for job in jobs.values():
        layers = job["full"]["layers"]
        exact = sum(layers[name] for name in EXACT_LAYERS)
        audited = exact + layers["splits"]
        lines.append(
            f"| {job['rows']:,} | {job['columns']} | {job['grow']:.3f} | {job['again']:.3f}"
            f" | {exact:.3f} | {exact / job['grow']:.2f} | {audited:.3f}"
            f" | {audited / job['grow']:.2f} | {audited / job['again']:.2f}"
            f" | {job['full']['whole']:.2f} | {job['thin']['whole']:.2f}"
            f" | {job['peak_bytes'] / 1e9:.2f} |"
        )
    lines += [
        "",
        "By part at 1,000,000 x 16:",
        "",
        "| part | full | thin |",
        "| --- | ---: | ---: |",
    ]
    lines += [
        f"| {name} | {seconds:.3f} | {million['thin']['layers'][name]:.3f} |"
        for name, seconds in million["full"]["layers"].items()
    ]
    lines += ["", f"`prepare` at 1,000,000 x 16: {million['prepare']:.1f} s, of which"]
    shown = ", ".join(f"{k} {v:.2f} s" for k, v in million["prepare_stages"].items())
    witnesses = million["prepare_stages"]["witnesses"] / million["grow"]
    lines += [f"{shown}; witnesses are {witnesses:.2f} of growing the tree.", ""]
    splits = million["full"]["layers"]["splits"] / million["grow"]
    return [
        *lines,
        f"- Auditing all splits is {splits:.2f} of growing the tree; the aim is 0.25.",
        f"- Joining at release takes {million['join']:.2f} s; the aim is 1 s.",
        "",
    ]
