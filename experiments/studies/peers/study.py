"""Other anonymizers beside verix on the whole Adult table: time, classes, loss, and who checks.

Tools are compared at the same k, and where they can, at the same l and share of records left out.
Every tool gets the same rows and quasi-identifiers as CSV and gives back what it publishes, row by
row. Classes are read off that: records whose published values are equal. Loss and the models are
then measured the same way for all, on the range of the true values of each class, which is
generous to tools that publish wider ones. pycanon, which is none of ours, says what k was reached.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from experiments import data
from experiments.core import provenance
from experiments.core.cells import Params, Result
from experiments.core.owner import two_classes
from experiments.core.sources import ROOT
from experiments.studies.peers.tools import setup
from verix_anon.client import models
from verix_anon.client.release import privacy
from verix_anon.client.table.encode import decode
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.verify.utility import auc, f1

__all__ = ["ALONE", "OURS", "cells", "run", "summarize"]

PLACE = 10
ALONE = True
"""Times are measured with nothing beside."""

ROWS = 48_842
KS = (2, 5, 10, 25, 50, 100)
FEW = (5, 25, 100)
OURS = ("verix", "verix_paper")
"""The default, and the system of the paper"""
WANTED: Sequence[tuple[str, Sequence[int], int, float]] = (
    ("verix", KS, 1, 0.0),
    ("verix_paper", KS, 1, 0.0),
    ("ai_privacy_toolkit", FEW, 1, 0.0),
    ("anonypy", FEW, 1, 0.0),
    ("anjana", FEW, 1, 0.05),
    ("anjana", (5,), 1, 0.0),
    ("anjana", (5,), 2, 0.05),
    ("verix", (5,), 1, 0.05),
    ("verix", (5,), 2, 0.0),
    ("verix", (5,), 2, 0.05),
)
"""Each tool, the values of k it has time for, l of the target, and the share it may leave out"""
LIMIT = 180
"""Seconds after which a peer is stopped."""
CHECKER = "pycanon"
TOOLS = Path(setup.__file__).parent
TEST_SHARE = 0.2

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def cells(*, quick: bool) -> list[Params]:
    """A tool at a value of k; peers that are not installed are cells too, and say so."""
    return [
        {
            "tool": tool,
            "k": k,
            "l": least,
            "suppress": share,
            "rows": 1_000 if quick else ROWS,
            # Only peers are stopped: ours runs the whole way several times over.
            "limit": 3_600 if tool in OURS else 20 if quick else LIMIT,
            "tools": _installed(tool),
            "checker": _installed(CHECKER),
            "machine": provenance.machine(),
        }
        for tool, ks, least, share in WANTED
        for k in (ks[:1] if quick else ks)
    ]


def _installed(tool: str) -> str:
    """What stands for the version of a peer and of what drives it; empty if it is not there."""
    if tool in OURS:
        return tool
    if setup.python_of(tool) is None:
        return ""
    script = next(TOOLS.glob(f"*_{tool}.py"))
    pinned = (setup.environment(tool) / "installed").read_bytes()
    return hashlib.sha256(script.read_bytes() + pinned).hexdigest()[:16]


def run(params: Params) -> Result:
    """One tool at one k, measured and checked."""
    if not params["tools"]:
        return {"outcome": "absent"}
    sample = _sample(int(params["rows"]))
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "table.csv", Path(folder) / "published.csv"
        pyarrow.csv.write_csv(sample.table, source)
        try:
            words = [*_command(params), str(source), str(params["k"]), str(out)]
            printed = _run(words, int(params["limit"]))
        except subprocess.TimeoutExpired:
            return {"outcome": "too long", "limit": params["limit"]}
        except subprocess.CalledProcessError as error:
            return {"outcome": "failed", "reason": error.stderr.strip().splitlines()[-1][:300]}
        checked = _check(out) if params["checker"] else None
        return {"outcome": "done", **printed, "checked_k": checked, **_measured(sample, out)}


def _command(params: Params) -> list[str]:
    tool = str(params["tool"])
    asked = [f"--l={params['l']}", f"--suppress={params['suppress']}"]
    if tool in OURS:
        return [sys.executable, "-m", "experiments.studies.peers.job", f"--tool={tool}", *asked]
    # The other peers know neither.
    asked = asked if tool == "anjana" else []
    return [str(setup.python_of(tool)), str(TOOLS / f"run_{tool}.py"), *asked]


def _run(words: Sequence[str], limit: int) -> Result:
    done = subprocess.run(  # noqa: S603
        words, capture_output=True, text=True, check=True, timeout=limit, cwd=ROOT
    )
    found: Result = json.loads(done.stdout.splitlines()[-1])
    return found


def _check(published: Path) -> int:
    """The k that pycanon finds."""
    words = [str(setup.python_of(CHECKER)), str(TOOLS / "check_pycanon.py"), str(published)]
    return int(_run(words, 600)["k"])


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """The table as every tool gets it, and as models take it."""

    table: pa.Table
    values: Floats
    """(n_rows, n_quasi)"""
    target: npt.NDArray[np.uint8]
    widest: Floats
    """The range of each column."""


def _sample(rows: int) -> _Sample:
    """Adult, missing values imputed as verix does, for not every tool can have them."""
    table = data.load("adult").slice(0, rows)
    encoded = read_owner_table(table, Declared(target="target", quasi="all"))
    columns = [column for column in encoded.columns if column.name != "target"]
    filled = {c.name: decode(c, values) for c, values in zip(columns, encoded.matrix, strict=True)}
    whole = {
        name: array.cast(pa.int64()) if pa.types.is_floating(array.type) else array
        for name, array in filled.items()
    }
    values = encoded.matrix.T
    return _Sample(
        table=pa.table({**whole, "target": encoded.target}),
        values=values,
        target=encoded.target,
        widest=np.column_stack([values.min(axis=0), values.max(axis=0)]),
    )


def _measured(sample: _Sample, published: Path) -> Result:
    """Classes, loss and models of what a tool published."""
    table = pyarrow.csv.read_csv(
        published,
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=False),
    )
    row = table["row"].to_numpy().astype(np.int64)
    class_of = _classes(table.drop_columns(["row"]))
    n_classes = int(class_of.max()) + 1
    low = np.full((n_classes, sample.values.shape[1]), np.inf)
    high = -low
    np.minimum.at(low, class_of, sample.values[row])
    np.maximum.at(high, class_of, sample.values[row])
    count = np.bincount(class_of)
    width = privacy.widths(low, high, (sample.widest[:, 0], sample.widest[:, 1])).mean(axis=1)
    n_left_out = sample.target.size - row.size
    # A record that is left out tells nothing: its loss is 1.
    ncp = (privacy.weighted(width, count) * row.size + n_left_out) / sample.target.size
    middle = low / 2 + high / 2
    return {
        "classes": n_classes,
        "smallest": int(count.min()),
        "least_values": _least_values(sample.target[row], class_of),
        "left_out": n_left_out,
        "ncp": ncp,
        **_tested(sample, row, middle[class_of]),
    }


def _least_values(target: npt.NDArray[np.uint8], class_of: Ints) -> int:
    """The fewest values of the target in a class: the l that was reached."""
    pairs = np.unique(np.column_stack([class_of, target]), axis=0)
    return int(np.bincount(pairs[:, 0]).min())


def _classes(published: pa.Table) -> Ints:
    """Which records are published alike, numbered from 0."""
    numbers = np.zeros(published.num_rows, np.int64)
    for column in published.columns:
        codes = np.unique(np.asarray(column.to_pylist(), dtype=str), return_inverse=True)[1]
        pairs = numbers * (int(codes.max()) + 1) + codes
        numbers = np.unique(pairs, return_inverse=True)[1]
    return numbers.astype(np.int64)


def _tested(sample: _Sample, row: Ints, seen: Floats) -> dict[str, float]:
    """A model fitted to four fifths of what was published, tested on the other records, raw."""
    rng = np.random.default_rng(0)
    is_test = rng.random(sample.target.size) < TEST_SHARE
    fitted = ~is_test[row]
    answers = models.predict(
        seen[fitted], two_classes(sample.target[row[fitted]]), sample.values[is_test]
    )
    return {"f1": f1(sample.target[is_test], answers), "auc": auc(sample.target[is_test], answers)}


def summarize(results: Sequence[tuple[Params, Result]]) -> Result:
    """A row for each tool and k, and how much faster verix is than the fastest peer."""
    rows = [
        {name: params[name] for name in ("tool", "k", "l", "suppress")}
        | {"n": params["rows"], **_flat(result)}
        for params, result in results
    ]
    ks = sorted({int(params["k"]) for params, _ in results})
    return {"limit": LIMIT, "ratios": [r for k in ks if (r := _ratio(rows, k))], "rows": rows}


def _flat(result: Result) -> Result:
    flat = {name: value for name, value in result.items() if name not in ("parts", "sheet")}
    return flat | {f"{name}_seconds": value for name, value in result.get("parts", {}).items()}


def _ratio(rows: Sequence[Result], k: int) -> Result | None:
    """How verix stands against the fastest peer that finished at this k; None without one."""
    done = [row for row in rows if row["k"] == k and row["outcome"] == "done"]
    plain = [row for row in done if row["l"] == 1]
    ours = next((row for row in plain if row["tool"] == "verix" and not row["suppress"]), None)
    peers = [row for row in plain if row["tool"] not in OURS]
    if ours is None or not peers:
        return None
    fastest = min(peers, key=lambda row: row["seconds"])
    seconds = fastest["seconds"]
    return {
        "k": k,
        "peer": fastest["tool"],
        "peer_seconds": seconds,
        "engine": seconds / ours["engine"],
        "plain": seconds / ours["plain"],
        "whole": seconds / ours["seconds"],
        "cold": seconds / ours["cold"],
    }
