"""Wherever the disk or the process fails, what has a name is whole, counted, and can be had."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli import faults
from cli.jobs import make

pytestmark = pytest.mark.usefixtures("quick_models")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was judged, and the table that comes of it."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERIX_LEDGER", str(folder / "ledger.jsonl"))
        make(folder, 300)
        assert faults.verify(folder) == 0
        (folder / "new.json").rename(folder / "verdict.json")
        for ending in faults.READERS:
            assert faults.release(folder, ending[1:]) == 0
            (folder / f"released{ending}").rename(folder / f"reference{ending}")
            faults.clean(folder)
    return folder


@pytest.fixture
def spoiled(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(small, tmp_path / "job")
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "job" / "ledger.jsonl"))
    return tmp_path / "job"


QUICK = ("verify", "release")
"""These write as the others do."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.long)
        for name in [*[*faults.COMMANDS][:5], "run"]
    ],
)
def test_a_disk_that_fails_once(spoiled: Path, name: str) -> None:
    command, check = faults.COMMANDS[name]
    for n in range(1, faults.MOST):
        faults.clean(spoiled)
        with faults.failing(n, faults.full_disk) as struck:
            code = command(spoiled)
        check(spoiled)
        faults.check_lines(spoiled)
        # Nothing is left beside what has a name.
        assert [*spoiled.glob(".*"), *spoiled.glob("again/.*")] == []
        if struck.left > 0:
            assert code == 0
            break
        assert code in (0, 2)
        # A job that was prepared is refused a second time; `run` goes on with it.
        if code == 2 and (name == "run" or not (spoiled / "again").exists()):
            assert command(spoiled) == 0
            check(spoiled)
    assert 8 < n < faults.MOST


@pytest.mark.long
@pytest.mark.parametrize("name", faults.COMMANDS)
def test_a_process_that_is_killed(spoiled: Path, name: str) -> None:
    source, tests = Path(faults.__file__).parents[2] / "src", Path(faults.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (source, tests)))}
    ended = subprocess.run(
        [sys.executable, "-m", "cli.faults", str(spoiled), name],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout.split()[-1]) > 8
