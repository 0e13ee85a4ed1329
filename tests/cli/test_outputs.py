"""What cannot be written is told before anything is read, and mistakes in words that help."""

from pathlib import Path

import pyarrow as pa
import pytest

from cli.jobs import JOB, Run
from verix_anon.files.tables import write_table

MANIFEST = ("--manifest", "no.verix")
COMMANDS = {
    "init": ("init", "no.csv", "--out"),
    "overview": ("init", "no.csv", "--overview"),
    "explore": ("explore", "no.csv", "--roles", "no.toml", "--out"),
    "prepare": ("prepare", "no.csv", *JOB, "--out"),
    "anonymize": ("anonymize", "no", "--out"),
    "verdict": ("verify", "no", *MANIFEST, "--out"),
    "report": ("verify", "no", *MANIFEST, "--report"),
    "log": ("verify", "no", *MANIFEST, "--log"),
    "table": ("release", "no", *MANIFEST, "--table", "no.csv", "--out"),
    "sheet": ("release", "no", *MANIFEST, "--table", "no.csv", "--out", "a.csv", "--privacy-sheet"),
    "preview": ("release", "no", *MANIFEST, "--table", "no.csv", "--preview"),
    "convert": ("convert", "no.csv", "--out"),
}
ENDINGS = {"table": ".csv", "convert": ".csv"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_cannot_be_written_is_told_first(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = f"/proc/self/out{ENDINGS.get(name, '')}"
    code, _, err = run(*COMMANDS[name], out)
    assert code == 2
    assert f"{out} cannot be written" in err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
def test_the_sample_beside_an_overview_replaces_no_table(
    run: Run, tmp_path: Path, overwrite: tuple[str, ...]
) -> None:
    table = tmp_path / "sample.arrow"
    write_table(pa.table({"x": range(50), "y": [0, 1] * 25}), table)
    before, made = table.read_bytes(), ("--overview", tmp_path / "overview.json")
    code, _, err = run("init", table, "--out", tmp_path / "roles.toml", *made, *overwrite)
    assert (code, "sample.arrow" in err) == (2, True)
    for folder in (".", "/"):
        assert run("init", table, "--overview", folder, *overwrite).code == 2
    assert [*tmp_path.iterdir()] == [table]
    assert table.read_bytes() == before


def test_a_jobs_folder_in_place_of_its_submission(job: Path, run: Run) -> None:
    code, _, err = run("anonymize", job / "job", "--out", job / "out")
    assert code == 2
    assert f"did you mean {job / 'job/submission'}?" in err


def test_a_table_without_rows_has_no_roles(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,sex\n")
    code, _, err = run("init", tmp_path / "t.csv", "--out", tmp_path / "roles.toml")
    assert (code, (tmp_path / "roles.toml").exists()) == (2, False)
    assert "verix-anon: the table has no rows" in err


def test_a_jobs_folder_in_place_of_its_delivery(job: Path, run: Run, tmp_path: Path) -> None:
    log = ("--log", tmp_path / "audit.jsonl")
    manifest = job / "job/manifest.verix"
    code, _, err = run("verify", job / "job", "--manifest", manifest, *log)
    assert (code, (tmp_path / "audit.jsonl").exists()) == (2, False)
    assert f"did you mean {job / 'job/delivery'}?" in err


def test_prepare_without_roles_says_what_to_do(job: Path, run: Run) -> None:
    code, _, err = run("prepare", job / "people.parquet", "--out", job / "new")
    assert code == 2
    assert "run verix-anon init first and give --roles" in err


def test_reasons_against_a_release_stand_in_a_line_each(job: Path, run: Run) -> None:
    out = ("--table", job / "people.parquet", "--out", job / "r.csv")
    manifest = ("--manifest", job / "job/manifest.verix")
    assert run("release", job / "job/delivery", *manifest, *out, "--force")[0] == 0
    other = (*out[:-1], job / "again.csv", "--exact-ends")
    code, _, err = run("release", job / "job/delivery", *manifest, *other)
    lines = [line for line in err.splitlines() if line.startswith("verix-anon: ")]
    assert (code, len(lines)) == (2, 2)
    assert "there is no verdict" in lines[0]
    assert "this table was released before" in lines[1]
    assert "verix-anon convert" in lines[1]


def test_a_look_after_a_release(job: Path, run: Run) -> None:
    given = ("--manifest", job / "job/manifest.verix", "--table", job / "people.parquet", "--force")
    delivery = job / "job/delivery"
    assert run("release", delivery, *given, "--out", job / "r.csv")[0] == 0
    look = given[:-1]
    code, _, err = run("release", delivery, *look, "--preview", job / "look.json")
    assert code == 2
    assert "released before" not in err
    code, _, err = run("release", delivery, *given, "--preview", job / "look.json", "--exact-ends")
    assert code == 0, err
    assert "released 1 time before" in (job / "look.json").read_text()


def test_another_format_of_the_same_release(job: Path, run: Run) -> None:
    given = ("--manifest", job / "job/manifest.verix", "--table", job / "people.parquet", "--force")
    assert run("release", job / "job/delivery", *given, "--out", job / "r.csv")[0] == 0
    code, out, err = run("convert", job / "r.csv", "--out", job / "r.xlsx")
    assert code == 0, err
    assert f"Written to {job / 'r.xlsx'}." in out
    code, _, err = run("release", job / "job/delivery", *given, "--out", job / "r.parquet")
    assert code == 0, err
    assert "released before" not in err
