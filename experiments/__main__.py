"""Run studies and render what they found.

    python -m experiments                 every study, then results/RESULTS.md and the figures
    python -m experiments detection       one of them
    python -m experiments --quick         every study on few seeds and small samples
    python -m experiments render          only the report and the figures, from results/
    python -m experiments --status        which results are of this version, and which are stale

A run that was stopped goes on where it was: cells are kept in .cache/experiments.
"""

import argparse
import csv
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from experiments.core import provenance, report, staleness
from experiments.core.cells import Cell, Result
from experiments.core.running import KEPT, Runner
from experiments.core.sources import ROOT
from experiments.studies import names, part
from verix_anon.errors import Error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the studies named on the command line, or all."""
    known = names()
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(known)}, render")
    parser.add_argument("--quick", action="store_true", help="few seeds, small samples")
    parser.add_argument("--status", action="store_true", help="say which results are stale")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, help="where results go (default: results/)")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where cells are kept")
    given = parser.parse_args(arguments)
    if given.status:
        found = staleness.statuses()
        print(staleness.report(found))
        sys.exit(any(each.is_stale for each in found))
    unknown = set(given.names) - {*known, "render"}
    if unknown:
        parser.error(f"there is no study {min(unknown)!r}; there are {', '.join(known)}")
    out = given.out or (ROOT / ("build/quick" if given.quick else "results"))
    out.mkdir(parents=True, exist_ok=True)
    try:
        for name in [n for n in given.names or known if n != "render"]:
            runner = Runner(jobs=given.jobs, kept=given.kept, progress=Bar())
            run_study(name, runner, out, quick=given.quick)
    except Error as error:
        sys.exit(f"error: {error}")
    report.render(out)
    print(f"{out / 'RESULTS.md'}", file=sys.stderr)


def run_study(name: str, runner: Runner, out: Path, *, quick: bool) -> Result:
    """Run one study, and write its results as JSON and its rows as CSV."""
    study = part(name, "study")
    began = time.perf_counter()
    params = study.cells(quick=quick)
    if getattr(study, "ALONE", False):
        # A study of time has the machine to itself, one cell after the other.
        runner = replace(runner, jobs=1)
    results = runner.run([Cell(name, p) for p in params])
    found: Result = {
        "study": name,
        "quick": quick,
        **provenance.facts(),
        "seconds": round(time.perf_counter() - began, 1),
        "n_cells": len(params),
        "seed_values": sorted({p["seed"] for p in params if "seed" in p}),
        **study.summarize(list(zip(params, results, strict=True))),
    }
    (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write_rows(out / f"{name}.csv", found["rows"])
    return found


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Rows as CSV; a column that a row lacks is empty there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


class Bar:
    """Progress on stderr: one line that is rewritten, or one per tenth where that cannot be."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.shown = -1

    def __call__(self, study: str, done: int, total: int) -> None:
        """Show how much is done and how long the rest may take."""
        tenth = 10 * done // max(total, 1)
        if not sys.stderr.isatty() and tenth == self.shown:
            return
        self.shown = tenth
        spent = time.perf_counter() - self.began
        text = f"{study}: {done:,} of {total:,} cells, {spent:,.0f} s"
        last = done == total or not sys.stderr.isatty()
        print(f"\r{text}", end="\n" if last else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
