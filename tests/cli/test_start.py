"""What commands leave out at their start, and put back."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from verix_anon.cli.app import left_out
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
