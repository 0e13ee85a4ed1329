"""The pages of results/ say what its JSON files hold."""

import shutil
from pathlib import Path

import pytest

from experiments import studies
from experiments.core import report
from experiments.core.staleness import RESULTS


@pytest.mark.long
def test_the_pages_are_those_of_the_results(tmp_path: Path) -> None:
    for name in studies.names():
        shutil.copy(RESULTS / f"{name}.json", tmp_path)
    report.render(tmp_path)
    pages = sorted(path.name for path in tmp_path.glob("*.md"))
    assert pages == sorted(["RESULTS.md", *(f"{name}.md" for name in studies.names())])
    for page in pages:
        now = (tmp_path / page).read_text(encoding="utf-8")
        assert (RESULTS / page).read_text(encoding="utf-8") == now, f"{page}: run `make paper`"
