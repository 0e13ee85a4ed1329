"""Every study runs in its quick form and says what the paper says beside it."""

import csv
import json
from pathlib import Path

import pytest

from experiments import __main__
from experiments.data import load
from experiments.studies.detection import published
from verix_anon.errors import TableError


def test_published_tables_agree_with_the_papers_totals() -> None:
    cells = [(p, d) for p in published.PROFILES for d in published.TITLES]
    correct = [published.is_correct("overall", p, d) for p, d in cells]
    assert (len(cells), sum(correct)) == (28, 27)
    fixed = [
        published.GLOBAL_EXCEPTIONS.get(cell, right)
        for cell, right in zip(cells, correct, strict=True)
    ]
    assert sum(fixed) == published.PERFORMANCE["fixed"][0]
    for layers, name in (
        (("L1",), "hash only (paper's layer 1)"),
        (("L3",), "SHAP only, calibrated"),
    ):
        right = sum(all(published.is_correct(layer, p, d) for layer in layers) for p, d in cells)
        assert right == published.BASELINES[name]


def test_an_unknown_study_is_a_clear_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        __main__.main(["detektion"])
    assert stopped.value.code == 2
    assert "there is no study 'detektion'" in capsys.readouterr().err


@pytest.mark.slow
def test_quick(tmp_path: Path) -> None:
    try:
        load("magic"), load("adult")
    except TableError as error:
        pytest.skip(f"the public tables are not here: {error}")
    out, kept = tmp_path / "results", tmp_path / "kept"
    # Those of test_costs.py have a test of their own.
    names = [n for n in __main__.STUDIES if n not in ("scale", "utility", "peers")]
    __main__.main([*names, "--quick", "--jobs", "1", "--out", str(out), "--kept", str(kept)])
    text = (out / "RESULTS.md").read_text(encoding="utf-8")
    for label in ("detection_perf", "detection_full", "trap_injection", "per_feature_wd",
                  "per_feature_full", "baseline_comparison", "hashes"):  # fmt: skip
        assert f"tab:{label}" in text
    for name in names:
        found = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
        assert {"commit", "machine", "packages", "python"} <= set(found)
        with (out / f"{name}.csv").open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) == len(found["rows"])
    detection = json.loads((out / "detection.json").read_text(encoding="utf-8"))
    for row in detection["rows"]:
        if row["approach"] in ("full", "full re-execution"):
            assert row["flagged"] == (0 if row["provider"] == "honest" else row["runs"]), row
    for name in ("coverage", "heatmap-fixed", "heatmap-calibrated", "calibration", "roc", "power"):
        assert (out / "figures" / f"{name}.svg").stat().st_size > 1_000
        assert (out / "figures" / f"{name}.png").stat().st_size > 1_000
    # Nothing is left to run, and the report is the same again.
    # Those of test_costs.py have a test of their own.
    names = [n for n in __main__.STUDIES if n not in ("scale", "utility", "peers")]
    __main__.main([*names, "--quick", "--jobs", "1", "--out", str(out), "--kept", str(kept)])
    assert len((out / "RESULTS.md").read_text(encoding="utf-8")) == pytest.approx(len(text), abs=50)
