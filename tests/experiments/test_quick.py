"""Every study runs in its quick form and says what the paper says beside it."""

import csv
import json
from pathlib import Path

import pytest

from experiments import __main__, studies
from experiments.data import load
from verix_anon.errors import TableError

TABLES = (
    "detection_perf",
    "detection_full",
    "trap_injection",
    "per_feature_wd",
    "per_feature_full",
    "baseline_comparison",
    "hashes",
    "scalability",
    "resource",
    "k_sweep",
    "utility_summary",
    "stats_summary",
)


@pytest.mark.long
def test_quick(tmp_path: Path) -> None:
    try:
        load("magic"), load("adult")
    except TableError as error:
        pytest.skip(f"the public tables are not here: {error}")
    out, kept = tmp_path / "results", tmp_path / "kept"
    words = ["--quick", "--jobs", "2", "--out", str(out), "--kept", str(kept)]
    __main__.main(words)
    first = (out / "RESULTS.md").read_text(encoding="utf-8")
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(out.glob("*.md")))
    assert [label for label in TABLES if f"tab:{label}" not in text] == []
    found = {name: json.loads((out / f"{name}.json").read_text()) for name in studies.names()}
    for name, of in found.items():
        assert {"commit", "machine", "packages", "python"} <= set(of)
        with (out / f"{name}.csv").open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) == len(of["rows"])
        if (studies.HERE / name / "figures.py").is_file():
            for figure in studies.part(name, "figures").FIGURES:
                assert (out / "figures" / f"{figure}.svg").stat().st_size > 1_000
                assert (out / "figures" / f"{figure}.png").stat().st_size > 1_000
    for row in found["detection"]["rows"]:
        if row["approach"] in ("full", "full re-execution"):
            assert row["flagged"] == (0 if row["provider"] == "honest" else row["runs"]), row
    for row in found["contracts"]["rows"]:
        assert row["full"] == (0 if row["provider"] == "honest" else row["deviated"]), row
    for row in found["scale"]["rows"]:
        assert 0 < row["hashing_share"] < 1
        assert row["nodes"] == 2 * row["leaves"] - 1
        assert row["provide_peak"] > row["libraries_peak"] > 0
    ours = next(row for row in found["peers"]["rows"] if row["tool"] == "verix")
    assert ours["smallest"] >= ours["k"]
    # Nothing is left to run, and the report is the same again.
    n_kept = len(list(kept.rglob("*.json")))
    __main__.main(words)
    assert len(list(kept.rglob("*.json"))) == n_kept
    again = (out / "RESULTS.md").read_text(encoding="utf-8")
    assert len(again) == pytest.approx(len(first), abs=50)
