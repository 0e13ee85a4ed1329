"""Every benchmark of `make bench` runs in a small form, so that none breaks unseen.

The desk, the kit, the service, Spark and large tables have files of their own.
"""

import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from tools.bench import __main__ as bench
from tools.bench import commands, engine, owner, primitives, reading, series


def small(file: str) -> commands.Journey:
    aims, earlier = {"prepare": 4.0, "all four": 9.0}, {"prepare": 8.0}
    return commands.Journey(file, 2_000, commands._write_numbers, aims, earlier, times=2)


@pytest.mark.long
def test_commands_and_an_earlier_commit_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run(["git", "-C", commands.ROOT, "rev-parse"], capture_output=True).returncode:
        pytest.skip("needs the repository's history")
    # Its worktree is told from those of benchmarks that run at the same time.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # The second time, all that a release wrote must be gone.
    found = commands.measure("HEAD", [small("people.parquet")])
    journey = found["journeys"][0]  # type: ignore[index]
    for version in ("now", "before"):
        took = journey["commands"][version]
        expected = {*commands._commands("people.parquet"), "all four"}
        assert set(took) == expected - ({"run"} if version == "before" else set())
        assert took["all four"]["wall"] > max(took[name]["wall"] for name in commands.FOUR)
        assert min(journey["megabytes"][version].values()) > 0
    page = "\n".join(commands.render(found))
    assert "`before` is HEAD" in page
    assert "| verify, thin | " in page
    assert found["first"]["of which compiling"] > 1  # type: ignore[index]
    assert set(found["imports"]) == set(commands._commands("people.parquet"))  # type: ignore[call-overload]
    # Without an earlier commit, beside what an earlier version is known to have taken.
    journey["commands"].pop("before")
    assert "| prepare | 8.0 | " in "\n".join(commands.render(found | {"before": None}))
    worktrees = subprocess.run(
        ["git", "-C", commands.ROOT, "worktree", "list"], capture_output=True, text=True
    ).stdout
    assert str(tmp_path) not in worktrees


def test_a_walk_begins_with_nothing_but_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("people.csv", "released.csv", "released.schema.json", "job/verdict.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    seen: list[list[str]] = []

    def look(*_: object) -> tuple[dict[str, float], str]:
        seen.append(sorted(path.name for path in tmp_path.iterdir()))
        return {}, ""

    monkeypatch.setattr(commands, "_run_told", look)
    commands._walk(tmp_path, "people.csv", tmp_path, with_run=True)
    assert seen[0] == ["people.csv"]


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)prepare failed: .*people\.csv"):
        commands._walk(tmp_path, "people.csv", commands.ROOT / "src", with_run=True)


def test_the_first_table_is_a_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "load", lambda name: pa.table({"age": [1, 2, 3]}))
    commands.JOURNEYS[0].write(tmp_path / "adult.csv", 2)
    assert (tmp_path / "adult.csv").read_text().split() == ['"age"', "1", "2"]


@pytest.mark.long
def test_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MILLION", 2_000)
    monkeypatch.setattr(engine, "SMALL", 1_000)
    found = engine.measure()
    assert "| 1,000 | 16 | " in "\n".join(bench.render_engine(found | {"copy_gb_per_second": 10}))


@pytest.mark.long
def test_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "MILLION", 2_000)
    monkeypatch.setattr(owner, "SIZES", ((2_000, 16),))
    monkeypatch.setattr(owner, "WIDTHS", ())
    assert "| 2,000 | 16 | " in "\n".join(owner.render(owner.measure()))


def test_primitives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primitives, "MILLION", 2_000)
    monkeypatch.setattr(primitives, "HASHES", 100)
    assert "| random values | 20,000 | " in "\n".join(primitives.render(primitives.measure()))


def test_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ROWS", 2_000)
    monkeypatch.setattr(reading, "TIMES", 1)
    assert "2,000 x 16 as CSV" in "\n".join(reading.render(reading.measure()))


def test_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "PEOPLE", 500)
    assert "12 releases of 500 people" in "\n".join(series.render(series.measure()))
