"""pycanon, in an environment of its own, finds the k, l and t that the privacy sheet states."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from client.release.releases import job
from experiments.studies.peers.tools import setup
from verix_anon.client.table.roles import Declared
from verix_anon.datasets import census

TOOL = Path(setup.__file__).parent / "check_pycanon.py"
ENVIRONMENT = "pycanon"


@pytest.mark.long
@pytest.mark.parametrize("asked", [{}, {"l": 2}, {"l": {"marital_status": 2}}])
@pytest.mark.parametrize("form", ["interval", "set", "mean"])
def test_the_sheet_says_what_pycanon_finds(
    tmp_path: Path, asked: dict[str, Any], form: str
) -> None:
    python = setup.python_of(ENVIRONMENT)
    if python is None:
        pytest.skip("pycanon's environment is not there; `make peers` makes it")
    table = census(1_500, seed=4)
    declared = Declared(target="income", quasi="all", sensitive=["marital_status"])
    people = job(table, declared, k=5, min_leaf=5, traps=100)
    path = tmp_path / "released.csv"
    sheet = people.release(out=path, representation=form, **asked).sheet
    words = [str(python), str(TOOL), str(path), "income", "marital_status"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    # The other sensitive column is left out of the quasi-identifiers, here as there.
    assert found["k"] == sheet.k
    for measured in sheet.diversity:
        assert found[measured.column]["l"] == measured.distinct_l
        assert found[measured.column]["t"] == pytest.approx(measured.closeness_t, abs=1e-6)
