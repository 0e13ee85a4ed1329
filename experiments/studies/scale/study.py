"""What a job costs each party, by rows and by columns (paper §6.4 and §6.5), really run.

Every size is prepared, anonymized and verified, each by a process of its own, which hand each
other the files of the protocol; so a peak of memory is that of one party, every layer is run
on a real delivery, and the bytes are those of the files.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from experiments.core import provenance
from experiments.core.cells import Params, Result
from experiments.core.sources import ROOT

__all__ = ["ALONE", "cells", "run", "summarize"]

PLACE = 8
ALONE = True
"""Times are measured with nothing beside."""

K = 5
TIMES = 3
"""How often a thing is measured, the fastest counting."""
COLUMNS = 16
PAPER_SIZES = (10_000, 50_000, 100_000, 250_000, 500_000, 1_000_000)
RESOURCE_ROWS = (2_000, 4_000, 8_000, 16_000, 32_000)
BEYOND_ROWS = (10_000_000,)
RESOURCE_COLUMNS = (8, 16, 32, 64, 128)
BEYOND_COLUMNS = (256, 512)
FIXED_ROWS = 8_000


def cells(*, quick: bool) -> list[Params]:
    """Every size of the paper's two tables, and beyond."""
    if quick:
        sizes = {(1_000, 8), (2_000, 16)}
    else:
        rows = (*RESOURCE_ROWS, *PAPER_SIZES, *BEYOND_ROWS)
        sizes = {(n, COLUMNS) for n in rows}
        sizes |= {(FIXED_ROWS, n) for n in (*RESOURCE_COLUMNS, *BEYOND_COLUMNS)}
    # A time belongs to a machine: it must not be taken for that of another.
    where = provenance.machine()
    return [
        {"rows": n, "columns": c, "k": K, "times": 1 if quick else TIMES, "machine": where}
        for n, c in sorted(sizes)
    ]


def run(params: Params) -> Result:
    """One job, from the owner's table to both verdicts."""
    result: Result = {"rows": params["rows"], "columns": params["columns"]}
    with tempfile.TemporaryDirectory() as folder:
        for part in ("prepare", "provide", "verify"):
            found = _run_part(part, params, Path(folder))
            result[part] = found
            if "refused" in found:
                break
    return result


def _run_part(part: str, params: Params, folder: Path) -> Result:
    words = [part, *(str(params[name]) for name in ("rows", "columns", "k", "times")), str(folder)]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "experiments.studies.scale.job", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()[-2000:]}")
    found: Result = json.loads(done.stdout.splitlines()[-1])
    return found


def summarize(results: Sequence[tuple[Params, Result]]) -> Result:
    """The jobs as they are, and one flat row for each."""
    jobs = [job for _, job in results]
    whole = [job for job in jobs if "refused" not in json.dumps(job)]
    return {
        "k": K,
        "jobs": whole,
        "refused": [job for job in jobs if job not in whole],
        "rows": [_row(job) for job in whole],
    }


def _row(job: Result) -> Result:
    prepare, provide, verify = job["prepare"], job["provide"], job["verify"]
    full, thin = verify["full"], verify["thin"]
    layers, commit = full["layers"], provide["commit"]
    hashing = sum(commit.values())
    # The parts apart from each other, so that a share cannot come out above all.
    build = provide["grow"] + hashing
    return {
        "rows": job["rows"],
        "columns": job["columns"],
        "prepare": prepare["seconds"],
        "grow": provide["grow"],
        "build": provide["anonymize"],
        "hashing": hashing,
        "hashing_share": hashing / build,
        "nodes_hashing_share": commit["nodes"] / build,
        "paper_hashing_share": provide["paper_commit"] / provide["grow"],
        "depth": provide["depth"],
        "nodes": provide["nodes"],
        "leaves": provide["leaves"],
        **{f"full_{name}": seconds for name, seconds in layers.items()},
        "full_whole": full["whole"],
        "full_decides": full["decides"],
        **{f"thin_{name}": seconds for name, seconds in thin["layers"].items()},
        "thin_whole": thin["whole"],
        "thin_decides": thin["decides"],
        "audit": full["decides"],
        "reexecute": verify["reexecute"],
        "read_delivery": verify["read_delivery"],
        "read_submission": verify["read_submission"],
        "encoded_bytes": prepare["encoded_bytes"],
        "prepare_peak": prepare["peak"],
        "provide_peak": provide["peak"],
        "thin_peak": thin["peak"],
        "full_peak": full["peak"],
        "libraries_peak": provide["libraries_peak"],
        "provide_peak_ratio": provide["peak"] / prepare["encoded_bytes"],
        "submission_bytes": sum(prepare["bytes"].values()),
        "delivery_bytes": sum(provide["bytes"].values()),
    }
