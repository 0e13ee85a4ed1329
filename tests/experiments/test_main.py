"""Studies are found by their folders, run, and reported."""

import sys
from pathlib import Path

import pytest

from experiments import __main__, studies
from experiments.core.cells import Cell, Result
from experiments.core.running import Runner
from experiments.core.sources import ROOT
from experiments.studies import part

STUDY = """
PLACE = 1

def cells(*, quick):
    return [{"seed": 3}]

def run(params):
    return {"found": params["seed"]}

def summarize(found):
    return {"rows": [result for _, result in found]}
"""
RENDER = """
from experiments.core.markdown import HOLDS, Claim

def summary(found):
    return [f"**Invented:** {found['rows'][0]['found']}."]

def claims(found):
    return [Claim("It is 3", HOLDS, "3")]

def page(found):
    return ["# Invented", ""]
"""


def test_a_new_folder_is_a_new_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "studies" / "invented"
    folder.mkdir(parents=True)
    (folder / "study.py").write_text(STUDY)
    (folder / "render.py").write_text(RENDER)
    monkeypatch.setattr(studies, "HERE", folder.parent)
    monkeypatch.setattr(studies, "__path__", [str(folder.parent)])
    out = tmp_path / "results"
    __main__.main(["--jobs", "1", "--out", str(out), "--kept", str(tmp_path / "kept")])
    for name in ("", ".study", ".render"):
        del sys.modules[f"experiments.studies.invented{name}"]
    assert (out / "invented.csv").read_text() == "found\n3\n"
    text = (out / "RESULTS.md").read_text()
    claim = "| It is 3 | holds | 3 | [invented](invented.md) |"
    assert text.index(claim) < text.index("- **Invented:** 3. ([invented](invented.md))")
    assert (out / "invented.md").read_text() == "# Invented\n"


def test_the_documents_name_every_study() -> None:
    text = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    assert [name for name in studies.names() if f"\n| `{name}` |" not in text] == []


def test_an_unknown_study_is_a_clear_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        __main__.main(["detektion"])
    assert stopped.value.code == 2
    assert "there is no study 'detektion'" in capsys.readouterr().err


def test_a_time_belongs_to_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scale", "peers"):
        study = part(name, "study")
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
        monkeypatch.setattr(part(name, "study"), "summarize", lambda results: {"rows": []})
        __main__.run_study(name, Runner(jobs=2), tmp_path, quick=True)
    assert seen == [1, 2, 1]
