"""What the README promises beyond its commands and links, which run with the other pages."""

import re
from pathlib import Path

import pytest

from verix_anon import cli

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def demo(arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["verix-anon", "demo", *arguments.split()])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_first_screen() -> None:
    """The pipeline, commands, a verdict with one failing layer, ten lines of Python."""
    lines = README.splitlines()
    screen = "\n".join(lines[: next(i for i, line in enumerate(lines) if line.startswith("## "))])
    assert "table -> prepare -> submission" in screen
    assert screen.count("\n$ ") == 3
    statuses = re.findall(r"^ +\w+ +(pass|fail) +decides", screen, re.MULTILINE)
    assert sorted(statuses) == ["fail", "pass", "pass", "pass", "pass"]
    (python,) = re.findall(r"```python\n(.*?)```", screen, re.DOTALL)
    assert len(python.splitlines()) <= 10
    assert "## What a pass proves, and what it does not" in README


@pytest.mark.parametrize("adversary", ["lazy", "dumb", "approximate"])
def test_demo_with_an_adversary(
    adversary: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo(f"--rows 2000 --adversary {adversary}", monkeypatch) == 1
    assert "VIOLATION" in capsys.readouterr().out


def test_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo("--rows 2000", monkeypatch) == 0
    assert "VERIFIED" in capsys.readouterr().out
