"""`report`, `verify --report`, `release --privacy-sheet`: files, exit codes, and mistakes."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.jobs import Run, exit_code, make, release_arguments, verify_arguments
from verix_anon.files import optional_packages

pytestmark = pytest.mark.usefixtures("quick_models")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, quick_models: None) -> Path:
    """A table, a job, an honest delivery and its verdict; not to be changed."""
    folder = tmp_path_factory.mktemp("judged")
    make(folder, 600)
    assert exit_code(*verify_arguments(folder), "--out", folder / "verdict.json") == 0
    return folder


@pytest.fixture
def job(judged: Path, tmp_path: Path) -> Path:
    shutil.copytree(judged, tmp_path / "copy")
    return tmp_path / "copy"


def test_verify_writes_a_report(job: Path, run: Run) -> None:
    page = job / "audit.html"
    code, out, _ = run(*verify_arguments(job), "--report", page)
    assert code == 0
    assert "VERIFIED" in out
    assert "The work was done as agreed." in page.read_text(encoding="utf-8")
    # JSON on stdout stays JSON.
    code, out, _ = run(*verify_arguments(job), "--report", page, "--overwrite", "--json")
    assert json.loads(out)["outcome"] == "VERIFIED"


def test_violation_writes_a_report_and_keeps_its_exit_code(job: Path, run: Run) -> None:
    header = json.loads((job / "job/delivery/delivery.json").read_text())
    header["root"] = "0" * 64
    (job / "job/delivery/delivery.json").write_text(json.dumps(header))
    assert run(*verify_arguments(job), "--report", job / "audit.html")[0] == 1
    assert "The work was not done as agreed." in (job / "audit.html").read_text()
    (job / "job/delivery/nodes.parquet").unlink()
    code, _, _ = run(*verify_arguments(job), "--report", job / "audit.html", "--overwrite")
    assert code == 1
    assert "not a delivery" in (job / "audit.html").read_text()


def test_report_of_a_verdict(job: Path, run: Run) -> None:
    code, out, _ = run("report", job / "verdict.json")
    assert code == 0
    assert out == f"Written to {job / 'verdict.html'}.\n"
    page = (job / "verdict.html").read_text(encoding="utf-8")
    assert "VERIFIED" in page
    assert run("report", job / "verdict.json", "--out", job / "b.html")[0] == 0
    assert (job / "b.html").read_text(encoding="utf-8") == page


def test_report_of_a_violation_is_no_failure(job: Path, run: Run) -> None:
    header = json.loads((job / "job/delivery/delivery.json").read_text())
    header["root"] = "0" * 64
    (job / "job/delivery/delivery.json").write_text(json.dumps(header))
    assert run(*verify_arguments(job), "--out", job / "bad.json")[0] == 1
    assert run("report", job / "bad.json")[0] == 0


@pytest.mark.parametrize("way", ["--privacy-sheet", "--json"])
def test_report_with_the_privacy_sheet(job: Path, run: Run, way: str) -> None:
    sheet = job / "sheet.json"
    arguments = [*release_arguments(job), "--out", job / "released.csv"]
    if way == "--privacy-sheet":
        code, out, err = run(*arguments, "--privacy-sheet", sheet)
        assert "k reached" in out
    else:
        code, out, err = run(*arguments, "--json")
        sheet.write_text(out)
    assert code == 0, err
    document = json.loads(sheet.read_text())
    assert document["format"] == "verix/sheet/2"
    verdict = json.loads((job / "verdict.json").read_text())
    assert document["root"] == verdict["root"]
    code, _, err = run("report", job / "verdict.json", "--release", sheet)
    assert code == 0, err
    page = (job / "verdict.html").read_text(encoding="utf-8")
    assert "A table was released" in page
    # Warnings that come from the release and not from the measuring are there too.
    assert "unsafe seed" in page


def test_sheet_of_another_delivery(job: Path, run: Run) -> None:
    sheet = job / "sheet.json"
    assert run(*release_arguments(job), "--out", job / "a.csv", "--privacy-sheet", sheet)[0] == 0
    sheet.write_text(json.dumps(json.loads(sheet.read_text()) | {"root": "0" * 64}))
    code, _, err = run("report", job / "verdict.json", "--release", sheet)
    assert code == 2
    assert "another delivery" in err


def test_the_sheet_beside_the_verdict_is_used(job: Path, run: Run) -> None:
    sheet, page = job / "sheet.json", job / "verdict.html"
    assert run(*release_arguments(job), "--out", job / "a.csv", "--privacy-sheet", sheet)[0] == 0
    code, out, _ = run("report", job / "verdict.json")
    assert code == 0
    assert out == f"Written to {page}, with the privacy sheet {sheet}.\n"
    assert "A table was released" in page.read_text(encoding="utf-8")
    assert run("report", job / "verdict.json", "--out", sheet, "--overwrite")[0] == 2
    other = json.dumps(json.loads(sheet.read_text()) | {"root": "0" * 64})
    for text, why in ((other, "of another delivery"), ("{}", "not a privacy sheet")):
        sheet.write_text(text)
        code, out, err = run("report", job / "verdict.json", "--overwrite")
        assert (code, out) == (0, f"Written to {page}.\n")
        assert "is left out" in err
        assert why in err
        assert "No release known" in page.read_text(encoding="utf-8")


def test_nothing_is_replaced_unasked(job: Path, run: Run) -> None:
    page, verdict = job / "audit.html", job / "verdict.json"
    page.write_text("mine")
    for arguments in (
        ["report", verdict, "--out", page],
        [*verify_arguments(job), "--report", page],
        ["demo", "--rows", 200, "--report", page],
    ):
        code, _, err = run(*arguments)
        assert code == 2
        assert "exists already" in err
        assert page.read_text() == "mine"
    assert run("report", verdict, "--out", page, "--overwrite")[0] == 0
    assert page.read_text() != "mine"


def test_no_input_is_replaced(job: Path, run: Run) -> None:
    verdict, manifest = job / "verdict.json", job / "job/manifest.verix"
    before = verdict.read_bytes(), manifest.read_bytes()
    sheet = job / "sheet.json"
    sheet.write_text("{}")
    both = [*verify_arguments(job), "--out", job / "v.json"]
    for arguments in (
        ["report", verdict, "--out", verdict],
        ["report", verdict, "--release", sheet, "--out", sheet],
        [*verify_arguments(job), "--report", manifest],
        [*verify_arguments(job), "--report", job / "job/delivery"],
        [*verify_arguments(job), "--report", job / "job/audit.jsonl"],
        [*both, "--report", job / "v.json"],
        [*release_arguments(job), "--out", job / "r.csv", "--privacy-sheet", job / "r.csv"],
        [*release_arguments(job), "--out", job / "r.csv", "--privacy-sheet", verdict],
    ):
        code, _, err = run(*arguments, "--overwrite")
        assert code == 2, arguments
        assert "is, or holds, the input" in err
    assert (verdict.read_bytes(), manifest.read_bytes()) == before
    assert not (job / "v.json").exists()
    assert not (job / "r.csv").exists()


@pytest.mark.parametrize("text", ["", "{}", "no JSON", '{"format": "verix/contract/2"}', "[]"])
def test_not_a_verdict(job: Path, run: Run, text: str) -> None:
    (job / "other.json").write_text(text)
    code, _, err = run("report", job / "other.json")
    assert code == 2
    assert err.count("\n") == 1
    assert not (job / "other.html").exists()


def test_missing_files(job: Path, run: Run) -> None:
    code, _, err = run("report", job / "none.json")
    assert code == 2
    assert "cannot be read" in err
    code, _, err = run("report", job / "verdict.json", "--release", job / "none.json")
    assert code == 2
    assert "privacy sheet" in err
    code, _, err = run("report", job / "verdict.json", "--out", job / "no/where.html")
    assert code == 2
    assert "no folder" in err


@pytest.mark.parametrize("command", ["verify", "report", "demo"])
def test_missing_extra(job: Path, run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Said before any work is done: no verdict, no line in the audit log."""
    log = (job / "job/audit.jsonl").read_bytes()
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None)
    arguments = {
        "verify": [*verify_arguments(job), "--out", job / "v.json", "--report", job / "a.html"],
        "report": ["report", job / "verdict.json"],
        "demo": ["demo", "--rows", 200, "--report", job / "a.html"],
    }[command]
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert re.search(r"-m pip install .*\[report\]", err)
    assert err.count("\n") == 1
    assert not (job / "v.json").exists()
    assert (job / "job/audit.jsonl").read_bytes() == log


def test_verify_without_a_report_needs_no_extra(
    job: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None)
    assert run(*verify_arguments(job))[0] == 0


def test_demo_writes_a_report(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    code, out, _ = run("demo", "--rows", 400, "--adversary", "lazy", "--report", page)
    assert code == 1
    assert f"The audit report is {page}." in out
    assert "VIOLATION" in page.read_text(encoding="utf-8")
    assert "No release known" in page.read_text(encoding="utf-8")
    page.unlink()
    assert run("demo", "--rows", 400, "--report", page)[0] == 0
    assert "A table was released" in page.read_text(encoding="utf-8")


def test_help_has_an_example(run: Run) -> None:
    code, out, _ = run("report", "--help")
    assert code == 0
    assert "Example" in out
    assert "--release" in out


def test_reading_a_verdict_to_report_it_does_not_need_the_models() -> None:
    """A report is made where the verdict is read, which need not be where it was given."""
    code = (
        "import sys, verix_anon.client.report.page, verix_anon.client.privacy_sheet;"
        "print(*{'xgboost', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
