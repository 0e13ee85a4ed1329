"""From init to a release by the commands, on a sheet of Excel and on a query of SQLite."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyreadstat
import pytest
import xlsxwriter

from cli.jobs import Run
from verix_anon.client.manifest import read_manifest
from verix_anon.client.table.columns import reading_of
from verix_anon.files.tables import Reading, read_table

ROWS = [(i, 20 + i % 40, f"0{i % 5}067", "yes" if i % 3 else "no") for i in range(200)]
NAMES = ("nr", "age", "plz", "cured")


def workbook(path: Path) -> None:
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet("Remarks").write_string(0, 0, "as of May")
        sheet = book.add_worksheet("People")
        for i, row in enumerate([NAMES, *ROWS]):
            sheet.write_row(i, 0, row)


def base(path: Path) -> None:
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"CREATE TABLE people ({', '.join(NAMES)})")
        made.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", ROWS)
        made.commit()


@pytest.mark.parametrize(
    ("table", "option", "out"),
    [
        ("people.xlsx", ("--sheet", "People"), "released.xlsx"),
        ("sqlite:///people.db", ("--query", "SELECT * FROM people ORDER BY nr"), "released.sav"),
    ],
)
def test_the_journey(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
    table: str,
    option: tuple[str, str],
    out: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    workbook(tmp_path / "people.xlsx")
    base(tmp_path / "people.db")
    code, _, err = run("init", table, "--out", "roles.toml")
    assert code == 2
    assert option[0] in err
    assert run("init", table, *option, "--target", "cured", "--out", "roles.toml")[0] == 0
    # What was said once is known from here on.
    assert run("prepare", table, "--roles", "roles.toml", "--out", "job")[0] == 0
    reading = reading_of(read_manifest(tmp_path / "job" / "manifest.verix"))
    assert reading is not None
    assert option[1] in (reading.sheet, reading.query)
    assert run("anonymize", "job/submission", "--out", "job/delivery")[0] == 0
    of_job = ("--manifest", "job/manifest.verix")
    submission = ("--submission", "job/submission")
    assert run("verify", "job/delivery", *of_job, *submission, "--out", "verdict.json")[0] == 0
    of_release = ("--verdict", "verdict.json", "--table", table, "--out", out)
    if option[0] == "--sheet":
        code, _, err = run("release", "job/delivery", *of_job, *of_release, "--sheet", "Nowhere")
        assert (code, "Nowhere" in err) == (2, True)
    assert (
        run("release", "job/delivery", *of_job, *of_release, "--privacy-sheet", "sheet.json")[0]
        == 0
    )
    read = Reading(sheet="Table") if out.endswith(".xlsx") else None
    released = read_table(tmp_path / out, read)
    assert released.column_names == ["age", "plz", "cured"]
    assert sorted(released.column("cured").to_pylist()) == sorted(row[3] for row in ROWS)
    assert pa.types.is_string(released.column("plz").type)
    assert (tmp_path / "sheet.json").exists()
    if out.endswith(".sav"):
        assert not pyreadstat.read_sav(out, metadataonly=True)[1].variable_value_labels
