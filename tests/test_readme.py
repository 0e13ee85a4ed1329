"""The README runs: its Python, and its commands on a table of one's own."""

import re
import shlex
from pathlib import Path

import pyarrow.csv
import pytest

from verix import cli
from verix.datasets import census

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Not the README's own: set-up, and what only shows a list.
NOT_RUN = ("make ", "pip ", ".venv/bin/")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    arguments = shlex.split(command, comments=True)
    monkeypatch.setattr("sys.argv", arguments)
    try:
        cli.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_python(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    k, n_rows = capsys.readouterr().out.split()
    assert int(k) >= 5
    assert int(n_rows) == 5_000


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    pyarrow.csv.write_csv(census(2_000), "people.csv")
    commands = [
        line.removeprefix("$ ")
        for block in blocks("console")
        for line in block.splitlines()
        if line.startswith("$ ") and not line.removeprefix("$ ").startswith(NOT_RUN)
    ]
    assert [command.split()[1] for command in commands] == [
        "init", "prepare", "anonymize", "verify", "release",
    ]  # fmt: skip
    for command in commands:
        assert run(command, monkeypatch) == 0, command
    assert (tmp_path / "released.csv").is_file()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("adversary", ["lazy", "dumb", "approximate"])
def test_demo_with_an_adversary(
    adversary: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"verix demo --rows 2000 --adversary {adversary}", monkeypatch) == 1
    assert "VIOLATION" in capsys.readouterr().out


def test_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verix demo --rows 2000", monkeypatch) == 0
    assert "VERIFIED" in capsys.readouterr().out
