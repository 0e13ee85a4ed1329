"""Cells are run once, kept by content, and gone on with after a stop."""

import json
from pathlib import Path

import pytest

from experiments.core import cells
from experiments.core.cells import Cell, Params, Result
from experiments.core.running import Runner


class Study:
    """A study that counts how often it is run."""

    def __init__(self) -> None:
        self.ran: list[Params] = []

    def run(self, params: Params) -> Result:
        self.ran.append(params)
        if params["seed"] == 13:
            raise RuntimeError("a bad day")
        return {"twice": 2 * int(params["seed"]), "tuple": (1, 2)}


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    made = Study()
    monkeypatch.setattr(cells, "code_digest", lambda name: "digest of " + name)
    monkeypatch.setattr("experiments.core.running.part", lambda study, name: made)
    return made


def wanted(*seeds: int) -> list[Cell]:
    return [Cell("study", {"seed": seed}) for seed in seeds]


def test_results_come_in_order(study: Study, tmp_path: Path) -> None:
    found = Runner(kept=tmp_path).run(wanted(3, 1, 2))
    assert [r["twice"] for r in found] == [6, 2, 4]


def test_a_kept_cell_is_not_run_again(study: Study, tmp_path: Path) -> None:
    first = Runner(kept=tmp_path).run(wanted(1, 2))
    again = Runner(kept=tmp_path).run(wanted(2, 1, 3))
    assert [p["seed"] for p in study.ran] == [1, 2, 3]
    # Fresh or kept, a result is the same plain JSON.
    assert again[1] == first[0] == {"twice": 2, "tuple": [1, 2]}


def test_goes_on_after_a_stop(study: Study, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        Runner(kept=tmp_path).run(wanted(1, 13, 2))
    Runner(kept=tmp_path).run(wanted(1, 2))
    assert [p["seed"] for p in study.ran] == [1, 13, 2]


def test_other_code_is_another_cell(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Runner(kept=tmp_path).run(wanted(1))
    monkeypatch.setattr(cells, "code_digest", lambda name: "changed")
    Runner(kept=tmp_path).run(wanted(1))
    assert len(study.ran) == 2


def test_a_damaged_file_is_run_again(study: Study, tmp_path: Path) -> None:
    Runner(kept=tmp_path).run(wanted(1))
    (file,) = (tmp_path / "study").iterdir()
    file.write_text('{"twice": ')
    assert Runner(kept=tmp_path).run(wanted(1))[0]["twice"] == 2
    assert json.loads(file.read_text())["twice"] == 2


def test_progress_counts_what_is_kept(study: Study, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    Runner(kept=tmp_path).run(wanted(1))
    Runner(kept=tmp_path, progress=lambda *step: seen.append(step)).run(wanted(1, 2))
    assert seen == [("study", 1, 2), ("study", 2, 2)]
