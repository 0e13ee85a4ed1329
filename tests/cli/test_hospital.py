"""A hospital's table goes from file to published file by the drafted roles, without an edit."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from cli.jobs import Run
from tools import hospital
from verix_anon.files.tables import read_table


def walk(folder: Path, run: Run, language: str, n_rows: int, *options: str) -> tuple[str, str]:
    """Return the published file's text, and what release said."""
    table, roles, job = folder / "table.csv", folder / "roles.toml", folder / "job"
    hospital.write(table, n_rows, language=language)
    made = ["--manifest", job / "manifest.verix"]
    checked = ["--submission", job / "submission", "--out", job / "verdict.json"]
    for arguments in (
        ["init", table, "--out", roles],
        ["prepare", table, "--roles", roles, "--out", job, "--quiet"],
        ["anonymize", job / "submission", "--out", job / "delivery"],
        ["verify", job / "delivery", *made, *checked, "--skip", "fingerprint,utility"],
    ):
        code, _, err = run(*arguments)
        assert code == 0, err
    given = ["--verdict", job / "verdict.json", "--table", table, "--out", folder / "out.csv"]
    code, out, err = run("release", job / "delivery", *made, *given, *options)
    assert code == 0, err
    return (folder / "out.csv").read_bytes().decode(
        "cp1252" if language == "de" else "utf-8"
    ), out + err


@pytest.mark.parametrize("language", ["de", pytest.param("en", marks=pytest.mark.long)])
def test_the_draft_publishes_no_sentence_no_name_and_no_exact_cost(
    tmp_path: Path, run: Run, language: str
) -> None:
    text, said = walk(tmp_path, run, language, 1_500, "--pseudonym", "who")
    rows = hospital.rows(1_500, language=language)
    names = hospital.COLUMNS[language]
    at = {name: i for i, name in enumerate(names)}
    header = re.split("[,;]", text.lstrip("\ufeff").splitlines()[0].replace('"', ""))
    assert header[0] == "who"
    dropped = {*names[:4], names[13], names[19]}
    assert not dropped.intersection(header)
    assert {*names} - dropped <= {*header}
    for name in (*hospital.DOCTORS, *hospital.SURNAMES, "Dr."):
        assert name not in text
    remarks = {row[at[names[19]]] for row in rows} - {""}
    assert not any(remark in text for remark in remarks)
    published = read_table(tmp_path / "out.csv")
    assert isinstance(published, pa.Table)
    costs = published[names[18]].to_pylist()
    assert len(costs) == 1_500
    assert all(cost % 200 == 0 for cost in costs)
    exact = {row[at[names[18]]] for row in rows}
    assert not any(cost in text for cost in exact if len(cost) > 6)
    # Between the codes of a sex there is nothing.
    assert not any(".." in cell for cell in published[names[5]].to_pylist())
    assert "linked rows: by who; over all rows of a person k is" in said
    assert "Column 'who' links the rows of each person" in said
