"""The studies of scale, utility and peers in their quick form, and the report on them."""

import csv
import json
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from experiments import __main__
from experiments.core.cells import Cell, Params, Result, Runner
from experiments.core.inference import wilcoxon
from experiments.data import load
from experiments.studies.peers import study as peers
from experiments.studies.peers.render import sections as peers_sections
from experiments.studies.scale import published as published_scale
from experiments.studies.scale import study as scale
from experiments.studies.utility import gaps
from experiments.studies.utility import study as utility
from verix_anon.errors import TableError

STUDIES = ("scale", "utility", "peers")


def test_the_papers_tables_agree_with_each_other() -> None:
    paper, sweep = published_scale.UTILITY["adult"], published_scale.K_SWEEP.values()
    assert np.mean([row.f1 for row in sweep]) == pytest.approx(paper.f1, abs=1e-3)
    assert np.mean([row.blind_f1 for row in sweep]) == pytest.approx(paper.blind_f1, abs=1e-3)
    for row in published_scale.UTILITY.values():
        assert row.f1 - row.blind_f1 == pytest.approx(row.gap, abs=1.1e-3)
    wire = published_scale.WIRE
    assert wire["leaf map"] + wire["tree"] + wire["root"] == pytest.approx(88e6, rel=1e-6)
    assert tuple(published_scale.VERIFY_SECONDS) == scale.PAPER_SIZES
    assert tuple(published_scale.RESOURCE_ROWS) == scale.RESOURCE_ROWS
    assert tuple(published_scale.RESOURCE_COLUMNS) == scale.RESOURCE_COLUMNS
    assert tuple(published_scale.K_SWEEP) == utility.KS


def test_a_time_belongs_to_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for study in (scale, peers):
        name = study.__name__.split(".")[-2]
        here = {Cell(name, params).key for params in study.cells(quick=True)}
        with monkeypatch.context() as patch:
            patch.setattr("experiments.core.provenance.machine", lambda: "another")
            there = {Cell(name, params).key for params in study.cells(quick=True)}
        assert here.isdisjoint(there)


def test_a_study_of_time_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def run(self: Runner, cells: list[Cell]) -> list[Result]:
        seen.append(self.jobs)
        return [{} for _ in cells]

    monkeypatch.setattr(Runner, "run", run)
    for name in ("scale", "utility", "peers"):
        module = {"scale": scale, "utility": utility, "peers": peers}[name]
        monkeypatch.setattr(module, "summarize", lambda results: {"rows": []})
        __main__.run_study(name, Runner(jobs=2), tmp_path, quick=True)
    assert seen == [1, 2, 1]


def made_up(gap: float, seeds: int) -> list[tuple[Params, Result]]:
    """Runs of two data sets where target-driven is better by `gap`, and more so at a later seed."""
    arms = sorted({arm for pair in gaps.CONTRASTS.values() for arm in pair})
    results: list[tuple[Params, Result]] = []
    for data in ("adult", "magic"):
        for seed in range(seeds):
            runs = []
            for k in (2, 5, 10):
                for method, traps, view in arms:
                    better = gap * (1 + seed + k / 100) * (method == "target-driven")
                    loss = 0.5 - better
                    runs.append(
                        {"k": k, "method": method, "traps": traps, "view": view, "ncp": 0.1,
                         "f1": 0.5 + better, "auc": 0.7 + better, "logloss": loss}
                    )  # fmt: skip
            raw = {"f1": 0.9, "auc": 0.9, "logloss": 0.1}
            results.append(({}, {"dataset": data, "seed": seed, "raw": raw, "runs": runs}))
    return results


def test_gaps_are_positive_where_the_first_is_better() -> None:
    found = gaps.summarize(made_up(0.01, seeds=3))
    for measure in ("f1", "auc", "logloss"):
        single = found["single"]["blind"][measure]["adult"]
        assert single["gap"] == pytest.approx(0.01 * (1 + (0.02 + 0.05 + 0.1) / 3))
        assert (single["positive"], single["n"]) == (3, 3)
        over_seeds = found["clustered"]["blind"][measure]["adult"]
        assert over_seeds["mean"] == pytest.approx(0.01 * (2 + (0.02 + 0.05 + 0.1) / 3))
        assert over_seeds["positive"] == over_seeds["seeds"] == 3
    assert found["clustered"]["means"]["f1"]["adult"]["mean"] == 0
    pooled = found["pooled"]["blind"]["f1"]
    differences = [0.01 * (1 + k / 100) for k in (2, 5, 10)] * 2
    assert (pooled["n"], pooled["positive"]) == (6, 6)
    assert pooled["p"] == pytest.approx(wilcoxon(differences)[1])
    assert found["across"]["blind"]["f1"]["positive"] == 2


def test_logloss_by_hand() -> None:
    target, probability = np.array([1, 0], np.uint8), np.array([0.5, 0.25])
    assert utility.logloss(target, probability) == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)
    assert np.isfinite(utility.logloss(target, np.array([0.0, 1.0])))


def test_peers_that_are_absent_slow_or_broken_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    params: dict[str, str | int | float] = {
        "tool": "anonypy", "k": 5, "rows": 300, "limit": 1, "tools": "", "checker": ""
    }  # fmt: skip
    assert peers.run(params) == {"outcome": "absent"}

    def stop(words: object, limit: int) -> Result:
        raise subprocess.TimeoutExpired("peer", limit)

    def fail(words: object, limit: int) -> Result:
        raise subprocess.CalledProcessError(1, "peer", stderr="Traceback\nNameError: gone\n")

    sample = peers._Sample(
        pa.table({"age": [1]}), np.zeros((1, 1)), np.zeros(1, np.uint8), np.zeros((1, 2))
    )
    monkeypatch.setattr(peers, "_sample", lambda rows: sample)
    outcomes = []
    for broken in (stop, fail):
        monkeypatch.setattr(peers, "_run", broken)
        outcomes.append(peers.run({**params, "tools": "there"}))
    assert outcomes[0] == {"outcome": "too long", "limit": 1}
    assert outcomes[1] == {"outcome": "failed", "reason": "NameError: gone"}
    rows: list[tuple[Params, Result]] = [
        ({"tool": "anonypy", "k": 5, "rows": 300}, one) for one in outcomes
    ]
    found = {
        "study": "peers", "commit": "", "date": "", "n_cells": 2, "machine": "", "python": "",
        "packages": {"xgboost-cpu": ""}, **peers.summarize(rows),
    }  # fmt: skip
    (tmp_path / "peers.json").write_text(json.dumps(found))
    text = "\n".join(peers_sections(tmp_path))
    assert "stopped after 1 s" in text
    assert "failed: NameError: gone" in text


def test_classes_are_records_published_alike() -> None:
    published = pa.table({"age": ["1..2", "1..2", "3..4", "1..2"], "sex": ["*", "*", "*", "m"]})
    numbers = peers._classes(published)
    assert numbers[0] == numbers[1]
    assert len({int(numbers[i]) for i in (0, 2, 3)}) == 3


@pytest.mark.slow
def test_quick(tmp_path: Path) -> None:
    try:
        load("magic"), load("adult")
    except TableError as error:
        pytest.skip(f"the public tables are not here: {error}")
    out, kept = tmp_path / "results", tmp_path / "kept"
    __main__.main([*STUDIES, "--quick", "--jobs", "2", "--out", str(out), "--kept", str(kept)])
    text = (out / "RESULTS.md").read_text(encoding="utf-8")
    for label in ("scalability", "resource", "k_sweep", "utility_summary", "stats_summary"):
        assert f"tab:{label}" in text
    found = {name: json.loads((out / f"{name}.json").read_text()) for name in STUDIES}
    for name, of in found.items():
        with (out / f"{name}.csv").open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) == len(of["rows"])
    for row in found["scale"]["rows"]:
        assert 0 < row["hashing_share"] < 1
        assert row["nodes"] == 2 * row["leaves"] - 1
        assert row["provide_peak"] > row["libraries_peak"] > 0
    ours = next(row for row in found["peers"]["rows"] if row["tool"] == "verix")
    assert ours["smallest"] >= ours["k"]
    for name in ("scale-verify", "scale-resource", "utility-f1", "utility-gaps", "peers"):
        assert (out / "figures" / f"{name}.svg").stat().st_size > 1_000
