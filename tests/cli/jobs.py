"""The command in this process, and jobs of the owner's to try it on."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from verix_anon import cli
from verix_anon.datasets import census

JOB = ("--target", "income", "--quasi", "all", "--unsafe-seed", "7", "--quiet")


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


def exit_code(*arguments: object) -> int:
    """Run the command, and give the code with which it ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["verix-anon", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return int(ended.value.code or 0)


def make(folder: Path, n_rows: int) -> None:
    """A table, a prepared job and an honest delivery."""
    job = folder / "job"
    pq.write_table(census(n_rows), folder / "people.parquet")
    assert exit_code("prepare", folder / "people.parquet", "--out", job, *JOB) == 0
    assert exit_code("anonymize", job / "submission", "--out", job / "delivery") == 0


def verify_arguments(folder: Path) -> list[object]:
    job = folder / "job"
    manifest, submission = job / "manifest.verix", job / "submission"
    return ["verify", job / "delivery", "--manifest", manifest, "--submission", submission]


def release_arguments(folder: Path) -> list[object]:
    job = folder / "job"
    made: list[object] = ["release", job / "delivery", "--manifest", job / "manifest.verix"]
    return [*made, "--verdict", folder / "verdict.json", "--table", folder / "people.parquet"]
