"""The page of test times: totals per tier, the slowest 30, and nothing of a run that failed."""

import json
from pathlib import Path

import pytest

from tools import test_times


def report(path: Path, names: list[str], *, failures: int = 0, seconds: float = 60.0) -> Path:
    """Write the report of tests that took one second more each."""
    cases = "".join(
        f'<testcase classname="tests.tools.test_test_times" name="{name}" time="{i}.0" />'
        for i, name in enumerate(names, start=1)
    )
    head = f'errors="0" failures="{failures}" skipped="0" tests="{len(names)}" time="{seconds}"'
    path.write_text(f"<testsuites><testsuite {head}>{cases}</testsuite></testsuites>")
    return path


def test_totals_and_the_slowest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = report(tmp_path / "short.xml", [f"test_{i}" for i in range(40)], seconds=90.0)
    long = report(tmp_path / "long.xml", ["test_whole[a|b]"])
    code = test_times.main(["--read", str(short), str(long), "--out", str(tmp_path)])
    assert code == 0
    page = (tmp_path / "test-times.md").read_text()
    assert capsys.readouterr().out.strip() == page.strip()
    assert "| `make test` | 40 | 0 | 1.5 | 13.7 |" in page
    assert "| `make test-all` | 1 | 0 | 1.0 | 0.0 |" in page
    assert "| 40.0 | `make test` | `tests/tools/test_test_times.py::test_39` |" in page
    found = json.loads((tmp_path / "test-times.json").read_text())
    assert [test["seconds"] for test in found["slowest"]] == [40.0 - i for i in range(30)]
    assert {"commit", "machine", "packages", "python"} <= set(found)


def test_names_stay_in_their_cell(tmp_path: Path) -> None:
    both = [report(tmp_path / f"{i}.xml", ["test_whole[a|b]"]) for i in range(2)]
    assert "::test_whole[a\\|b]` |" in test_times.render(test_times.measure(both))


def test_a_failed_run_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = report(tmp_path / "good.xml", ["test_a"])
    bad = report(tmp_path / "bad.xml", ["test_a"], failures=1)
    for second in (bad, tmp_path / "none.xml"):
        assert test_times.main(["--read", str(good), str(second), "--out", str(tmp_path)]) == 1
        assert "`make test-all`" in capsys.readouterr().err
    assert not (tmp_path / "test-times.md").exists()


def test_both_tiers_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run(name: str, path: Path) -> None:
        ran.append(name)
        report(path, [f"test_{name}"])

    monkeypatch.setattr(test_times, "run", run)
    assert test_times.main(["--out", str(tmp_path)]) == 0
    assert ran == ["test", "test-all"]
    makefile = (test_times.ROOT / "Makefile").read_text()
    for name, marker in test_times.TIERS.items():
        words = marker if " " not in marker else f'"{marker}"'
        assert f"\n{name}: " in makefile
        assert f"$(PYTEST) -m {words}\n" in makefile
