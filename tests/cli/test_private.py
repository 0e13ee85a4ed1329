"""What holds values, roles or findings is for its owner's eyes; only the release is for others."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.jobs import JOB, Run, release_arguments, verify_arguments

pytestmark = pytest.mark.usefixtures("quick_models")


@pytest.fixture(autouse=True)
def _careless() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """The mode of all under a folder."""
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    return {str(path.relative_to(folder)): oct(mode) for path, mode in found.items()}


def test_prepare_and_init(run: Run, prepared: Path, tmp_path: Path) -> None:
    table = prepared / "people.parquet"
    made = ("--out", tmp_path / "roles.toml", "--overview", tmp_path / "overview.json")
    assert run("init", table, "--target", "income", *made).code == 0
    assert run("prepare", table, "--out", tmp_path / "job", *JOB).code == 0
    assert modes(tmp_path) == {
        "ledger.jsonl": "0o600",
        "overview.json": "0o600",
        "roles.toml": "0o600",
        "sample.arrow": "0o600",
        "job": "0o700",
        "job/manifest.verix": "0o600",
        "job/submission": "0o700",
        "job/submission/contract.json": "0o600",
        "job/submission/records.parquet": "0o600",
        "job/submission/submission.json": "0o600",
    }


def test_verify_and_release(run: Run, job: Path) -> None:
    job.chmod(0o755)
    made = ["--out", job / "verdict.json", "--report", job / "report.html"]
    assert run(*verify_arguments(job), *made).code == 0
    made = ["--out", job / "released.csv", "--privacy-sheet", job / "sheet.json"]
    assert run(*release_arguments(job), *made).code == 0
    found = modes(job)
    assert found["released.csv"] == "0o666"
    for name in ("verdict.json", "report.html", "sheet.json", "job/audit.jsonl"):
        assert found[name] == "0o600", name
