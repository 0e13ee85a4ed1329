"""SPSS, Stata and SAS: labels give ordered categories, and what is declared missing is missing."""

import datetime as dt
from pathlib import Path

import pandas as pd
import polars as pl
import pyreadstat
import pytest

import verix_anon
from verix_anon.client.table.roles_file import read_roles, roles_text
from verix_anon.errors import TableError
from verix_anon.files.tables import read_table, read_table_as

WRITTEN = Path(__file__).parent / "written"
DAY, MOMENT = dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5)
FRAME = pl.DataFrame(
    {
        "code": ["007", "12", None],
        "whole": [1.0, None, 3.0],
        "number": [1.5, 2.0, None],
        "happy": [3.0, 1.0, 9.0],
        "partly": [1.0, 2.0, 40.0],
        "day": [DAY, None, DAY],
        "moment": [MOMENT, None, None],
    }
)
HAPPY: dict[int | float, str] = {1: "no", 2: "so-so", 3: "yes", 9: "refused"}


def test_spss(tmp_path: Path) -> None:
    pyreadstat.write_sav(
        FRAME,
        tmp_path / "t.sav",
        variable_value_labels={"happy": HAPPY, "partly": {1: "one"}},
        missing_ranges={"happy": [9], "partly": [{"lo": 30, "hi": 50}]},
    )
    read = read_table_as(tmp_path / "t.sav")
    table = read.table
    assert table.to_pydict() == {
        "code": ["007", "12", None],
        "whole": [1, None, 3],
        "number": [1.5, 2.0, None],
        "happy": ["yes", "no", None],
        "partly": [1, 2, None],
        "day": [DAY, None, DAY],
        "moment": [MOMENT, None, None],
    }
    happy = table.column("happy").chunk(0)
    assert happy.type.ordered
    assert happy.dictionary.to_pylist() == ["no", "so-so", "yes"]
    (note,) = read.notes
    assert "column 'partly' has labels for some of its values only" in note


def test_stata(tmp_path: Path) -> None:
    pyreadstat.write_dta(
        FRAME, tmp_path / "t.dta", variable_value_labels={"happy": {**HAPPY, 2: "no"}}
    )
    table = read_table(tmp_path / "t.dta")
    assert table.column("happy").to_pylist() == ["yes", "no (1)", "refused"]
    assert table.column("happy").type.ordered
    assert table.column("code").to_pylist() == ["007", "12", None]
    assert table.column("day").to_pylist() == [DAY, None, DAY]
    assert table.column("moment").to_pylist() == [MOMENT, None, None]


def test_stata_missing_by_letters(tmp_path: Path) -> None:
    pyreadstat.write_dta(
        pd.DataFrame({"x": pd.Series([1, "a", 2], dtype=object)}),
        tmp_path / "t.dta",
        missing_user_values={"x": ["a"]},
        variable_value_labels={"x": {1: "low", 2: "high", "a": "refused"}},  # type: ignore[dict-item]
    )
    column = read_table(tmp_path / "t.dta").column("x")
    assert column.to_pylist() == ["low", None, "high"]
    assert column.chunk(0).dictionary.to_pylist() == ["low", "high"]


def test_sas(tmp_path: Path) -> None:
    table = read_table(WRITTEN / "readstat.sas7bdat")
    assert table.to_pydict() == {
        "plz": ["01067", "10115", "80331"],
        "age": [33.0, None, 27.5],
        "born": [dt.date(1990, 2, 1), dt.date(1982, 12, 31), dt.date(1996, 2, 29)],
        "edu": ["college", "school", "university"],
    }
    edu = table.column("edu").chunk(0)
    assert edu.dictionary.to_pylist() == ["school", "college", "university"]
    alone = tmp_path / "t.sas7bdat"
    alone.write_bytes((WRITTEN / "readstat.sas7bdat").read_bytes())
    assert read_table(alone).column("edu").to_pylist() == [2, 1, 3]


@pytest.mark.parametrize("name", ["t.sav", "t.zsav", "t.dta", "t.sas7bdat"])
def test_no_such_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(TableError, match="there is no file"):
        read_table(path)
    of_spss = r"cannot be read \(" if name.endswith("sav") else "is SPSS by its content"
    for data, said in (
        (b"", "is empty"),
        (b"$FL2", of_spss),
        (b"a,b\n1,2\n" * 100, "is text by its content"),
        (b"\0" * 5000, r"cannot be read \("),
    ):
        path.write_bytes(data)
        with pytest.raises(TableError, match=rf"{name} {said}"):
            read_table(path)


def test_the_order_of_labels_is_drafted_and_kept(tmp_path: Path) -> None:
    n = 40
    frame = pl.DataFrame({"edu": [float(i % 3) for i in range(n)], "y": ["a", "b"] * (n // 2)})
    labels: dict[str, dict[int | float, str]] = {"edu": {0: "school", 1: "college", 2: "academy"}}
    pyreadstat.write_sav(frame, tmp_path / "t.sav", variable_value_labels=labels)
    table = read_table(tmp_path / "t.sav")
    text = roles_text(table, "t.sav", "y")
    assert '"edu" = ["school", "college", "academy"]' in text
    (tmp_path / "roles.toml").write_text(text)
    assert read_roles(tmp_path / "roles.toml")[1].orders == {
        "edu": ("school", "college", "academy")
    }
    for given in ({"roles": tmp_path / "roles.toml"}, {"target": "y", "quasi": "all"}):
        manifest = verix_anon.prepare(table, **given).manifest
        assert manifest.quasi[0].categories == ("school", "college", "academy")
