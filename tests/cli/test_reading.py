"""How a table is read goes from init to release, by the roles file and the manifest."""

from pathlib import Path

import pyarrow.csv
import pytest

from cli.jobs import Run
from verix_anon.client.manifest import read_manifest
from verix_anon.client.table.columns import reading_of
from verix_anon.files.tables import Reading

SAID = "semicolons, Windows-1252, decimal comma, thousands point"


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """As Excel writes it where decimals have commas; no visit is after the 12th."""
    rows = [
        f"{i % 12 + 1:02}.{i % 7 + 1:02}.2020;{i % 9 + 1}.{i + 100},50;{i % 5:05};{answer}"
        for i, answer in enumerate(["ja", "ja", "nö"] * 40)
    ]
    text = "\r\n".join(["visit;cost;zip;cured", *rows])
    (tmp_path / "clinic.csv").write_bytes(text.encode("cp1252"))
    return tmp_path / "clinic.csv"


def test_from_init_to_release(clinic: Path, run: Run) -> None:
    folder = clinic.parent
    roles, job = folder / "roles.toml", folder / "job"
    code, _, err = run("init", clinic, "--target", "cured", "--out", roles)
    assert code == 0
    assert f"Read {clinic}: {SAID}." in err
    assert "Question: column 'visit' has dates such as " in err
    prepare = ["prepare", clinic, "--roles", roles, "--out", job, "--quiet"]
    code, _, err = run(*prepare)
    assert code == 2
    assert '--date-format "visit=dd.mm.yyyy" or --date-format "visit=mm.dd.yyyy"' in err

    roles.write_text(roles.read_text().replace('# "visit" = "dd.mm', '"visit" = "dd.mm'))
    code, _, err = run(*prepare)
    assert code == 0, err
    assert f"{SAID}, dates dd.mm.yyyy." in err
    kept = reading_of(read_manifest(job / "manifest.verix"))
    assert kept == Reading(
        delimiter=";",
        encoding="Windows-1252",
        decimal=",",
        thousands=".",
        dates={"visit": "dd.mm.yyyy"},
    )
    made = ["--manifest", job / "manifest.verix"]
    assert run("anonymize", job / "submission", "--out", job / "delivery").code == 0
    verified = run(
        *["verify", job / "delivery", *made, "--submission", job / "submission"],
        *["--out", job / "verdict.json", "--skip", "fingerprint,utility"],
    )
    assert verified.code in (0, 3), verified.err
    release = ["release", job / "delivery", *made, "--verdict", job / "verdict.json", "--force"]
    code, _, err = run(*release, "--table", clinic, "--out", folder / "out.csv")
    assert code == 0, err
    assert f"{SAID}, dates dd.mm.yyyy." in err
    assert pyarrow.csv.read_csv(folder / "out.csv").num_rows == 120


def test_options_are_answers(clinic: Path, run: Run) -> None:
    text = run("init", clinic, "--date-format", "visit=mm.dd.yyyy", "--thousands", ".").out
    assert '[reading.dates]\n"visit" = "mm.dd.yyyy"' in text
    assert "QUESTION" not in text
    text = run("init", clinic, "--date-format", "dd.mm.yyyy", "--delimiter", "tab").out
    assert '"visit;cost;zip;cured"' in text
    code, _, err = run("init", clinic, "--decimal", ";")
    assert code == 2
    assert "decimal must be one of" in err


def test_options_win_over_the_roles_file(clinic: Path, run: Run) -> None:
    roles = clinic.parent / "roles.toml"
    run("init", clinic, "--target", "cured", "--date-format", "dd.mm.yyyy", "--out", roles)
    made = ["prepare", clinic, "--roles", roles, "--quiet", "--date-format", "visit=mm.dd.yyyy"]
    code, _, err = run(*made, "--out", clinic.parent / "job")
    assert code == 0, err
    assert "dates mm.dd.yyyy." in err


def test_a_section_that_says_what_cannot_be(clinic: Path, run: Run) -> None:
    roles = clinic.parent / "roles.toml"
    for section, sentence in [
        ('colour = "red"', "unknown field 'colour'"),
        ("skip = true", "skip must be a whole number"),
        ('delimiter = "ab"', "delimiter must be one character"),
        ('decimal = "."\nthousands = "."', "cannot both be '.'"),
    ]:
        roles.write_text(f"[columns]\n[reading]\n{section}\n")
        code, _, err = run("prepare", clinic, "--roles", roles, "--out", clinic.parent / "job")
        assert code == 2
        assert sentence in err
