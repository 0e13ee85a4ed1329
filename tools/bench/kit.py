"""How long the kit of conform takes a provider: its cases are unpacked, shown and compared."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TIMES, JOBS, AIM = 3, 2, 60.0
"""Runs, cases at a time, and the seconds that a fast provider should stay below"""
ROOT = Path(__file__).parent.parent.parent
ENGINE = [sys.executable, "-m", "verix_anon"]
PROVIDERS = {
    "examples/provider.py": [sys.executable, str(ROOT / "examples" / "provider.py")],
    "verix-anon anonymize": [*ENGINE, "anonymize", "{submission}", "--out", "{delivery}"],
}


def measure(options: Sequence[str] = ()) -> dict[str, object]:
    """The best of some runs for each provider; one that fails a case is an error."""
    return {"jobs": JOBS, "providers": {name: _best(name, options) for name in PROVIDERS}}


def _best(name: str, options: Sequence[str]) -> dict[str, object]:
    return min((_run(name, options) for _ in range(TIMES)), key=lambda run: run["seconds"])


def _run(name: str, options: Sequence[str]) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        words = [*ENGINE, "conform", *options, "--jobs", str(JOBS), "--json", str(found), "--quiet"]
        began = time.perf_counter()
        subprocess.run([*words, *PROVIDERS[name]], env=environment, check=True, capture_output=True)
        seconds = time.perf_counter() - began
        cases = json.loads(found.read_bytes())["cases"]
    return {
        "cases": len(cases),
        "seconds": seconds,
        "slowest_case": max(case["seconds"] for case in cases),
    }


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    command = f"verix-anon conform --jobs {result['jobs']}"
    where = f"`{command}` with the small kit, from its start to its end; the best of {TIMES} runs."
    lines = [
        f"{where} The aim for a fast provider is {AIM:.0f} s.",
        "",
        "| provider | cases | seconds | slowest case |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| `{name}` | {run['cases']} | {run['seconds']:.1f} | {run['slowest_case']:.2f} |"
        for name, run in result["providers"].items()
    ]
    return [*lines, ""]
