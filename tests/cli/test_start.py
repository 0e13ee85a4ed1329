"""What commands leave out at their start, and put back."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.jobs import Run
from verix_anon.cli.app import left_out
from verix_anon.cli.output import CLOSED_PIPE
from verix_anon.cli.verify import _tell
from verix_anon.client.verdict import Finding, Status


def test_what_is_left_out_cannot_be_imported_and_is_put_back(tmp_path: Path) -> None:
    (tmp_path / "rarely_used.py").touch()
    sys.path.insert(0, str(tmp_path))
    try:
        with left_out("rarely_used"), pytest.raises(ImportError):
            importlib.import_module("rarely_used")
        rarely_used = importlib.import_module("rarely_used")

        with left_out("rarely_used"):
            # What is loaded already stays: somebody uses it.
            assert sys.modules["rarely_used"] is rarely_used
        assert sys.modules["rarely_used"] is rarely_used
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["rarely_used"]


def test_verify_loads_no_scikit_learn(job: Path) -> None:
    """Its models do not use it, and loading it takes longer than training them."""
    code = """
import sys
from verix_anon.cli import main
try:
    main()
except SystemExit as left:
    assert left.code == 0, left.code
assert "xgboost" in sys.modules
print(sorted({"sklearn", "scipy.stats"} & sys.modules.keys()))
"""
    words = ["verify", "delivery", "--manifest", "manifest.verix", "--submission", "submission"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=job / "job",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("status", "words"),
    [(Status.PASS, "All deciding layers passed."), (Status.FAIL, "Not passed: replay: fail.")],
)
def test_a_person_who_waits_is_told_what_was_decided(
    status: Status,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [Finding(layer="replay", status=status, summary="")]
    _tell(False, found)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    _tell(True, found)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    _tell(False, found)
    assert capsys.readouterr().err.startswith(words)


@pytest.mark.parametrize("command", [[], ["keys"], ["verify"]])
def test_help_that_nobody_reads_is_no_violation(command: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    call = [sys.executable, "-m", "verix_anon", *command, "--help"]
    try:
        ended = subprocess.run(call, stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert (ended.returncode, ended.stderr) == (CLOSED_PIPE, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_is_no_bug() -> None:
    call = [sys.executable, "-m", "verix_anon", "--version"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"verix-anon: the output cannot be written (")


def test_help_fills_its_lines_and_shows_no_type_of_a_flag(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    code, out, _ = run("verify", "--help")
    assert code == 0
    assert "bool" not in out
    assert "Without it, the manifest\n allows a smaller check, and each" in "\n".join(
        line.rstrip() for line in out.splitlines()
    )
