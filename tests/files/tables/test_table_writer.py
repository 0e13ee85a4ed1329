"""What is released as Feather, Excel, SPSS or Stata: values alone, that read back the same."""

import datetime as dt
import zipfile
from decimal import Decimal
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from verix_anon.errors import TableError
from verix_anon.files.tables import read_table, table_aside, table_writer, write_table

DAY, MOMENT = dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5, 7000)
OLD = dt.date(1820, 1, 2)


def table() -> pa.Table:
    return pa.table(
        {
            "whole": [1, None, 3],
            "large": [1, None, 2**60],
            "number": [0.1, 1e300, float("nan")],
            "exact": pa.array([Decimal("1.10"), None, Decimal("-2.00")]),
            "text": ["=1+1", "http://x.y", None],
            "more": ["@SUM(A1)", "{=1}", "+49"],
            "code": ["007", "1", "2"],
            "day": [DAY, None, DAY],
            "old": [OLD, None, DAY],
            "moment": pa.array([MOMENT, None, MOMENT], pa.timestamp("us")),
            "fine": pa.array([1, None, 2], pa.timestamp("us")),
            "zone": pa.array([MOMENT, None, None], pa.timestamp("us", tz="UTC")),
            "flag": [True, None, False],
            "clock": pa.array([dt.time(3, 4), None, None], pa.time64("us")),
            "class": pa.array(["x", None, "y"]).dictionary_encode(),
            "list": [[1, 2], None, []],
        },
        metadata={"owner": "secret"},
    )


@pytest.mark.parametrize("name", ["t.xlsx", "t.sav", "t.dta"])
def test_what_was_written_is_read(tmp_path: Path, name: str) -> None:
    write_table(table(), tmp_path / name)
    is_sheet = name == "t.xlsx"
    assert read_table(tmp_path / name).to_pydict() == {
        "whole": [1, None, 3],
        "large": ["1", None, str(2**60)],
        "number": [0.1, 1e300, None],
        "exact": [1.1, None, -2.0],
        "text": ["=1+1", "http://x.y", None],
        "more": ["@SUM(A1)", "{=1}", "+49"],
        "code": ["007", "1", "2"],
        "day": [DAY, None, DAY],
        "old": [str(OLD), None, str(DAY)] if is_sheet else [OLD, None, DAY],
        "moment": [MOMENT, None, MOMENT],
        "fine": ["1970-01-01 00:00:00.000001", None, "1970-01-01 00:00:00.000002"],
        "zone": [MOMENT, None, None],
        "flag": [True, None, False] if is_sheet else [1, None, 0],
        "clock": ["03:04:00.000000", None, None],
        "class": ["x", None, "y"],
        "list": ["[1, 2]", None, "[]"],
    }
    assert b"secret" not in (tmp_path / name).read_bytes()


@pytest.mark.parametrize("name", ["t.feather", "t.arrow"])
def test_feather_holds_every_type(tmp_path: Path, name: str) -> None:
    given = table().drop_columns(["number"])
    write_table(given, tmp_path / name)
    again = read_table(tmp_path / name)
    assert again.equals(given)
    assert not again.schema.metadata


@pytest.mark.parametrize("name", ["t.feather", "t.xlsx", "t.sav", "t.dta"])
def test_readers_see_what_is_to_be_expanded_as_values(tmp_path: Path, name: str) -> None:
    texts = pa.array(["0..1", "2..3", "2..3"], pa.large_string())
    held = pa.table({"x": texts.dictionary_encode()})
    with table_aside(held, tmp_path / name, overwrite=False, expanded=["x"]) as aside:
        aside.take_name()
    again = read_table(tmp_path / name)
    assert again.to_pydict() == {"x": texts.to_pylist()}
    assert not pa.types.is_dictionary(again.schema.field("x").type)


def test_text_is_text_in_every_cell(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    write_table(table(), path)
    sheet = openpyxl.load_workbook(path).active
    assert sheet is not None
    kinds = {cell.value: cell.data_type for row in sheet.iter_rows() for cell in row}
    for text in ("=1+1", "http://x.y", "@SUM(A1)", "{=1}", "+49", "007"):
        assert kinds[text] == "s"
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert b"<f>" not in parts["xl/worksheets/sheet1.xml"]
    assert b"hyperlink" not in b"".join(parts.values())
    # Who wrote it and when is not told.
    assert b"2000-01-01" in parts["docProps/core.xml"]
    again = tmp_path / "again.xlsx"
    write_table(table(), again)
    assert again.read_bytes() == path.read_bytes()


def test_labels_and_notes_are_not_written(tmp_path: Path) -> None:
    write_table(table(), tmp_path / "t.sav")
    meta = pyreadstat.read_sav(tmp_path / "t.sav", metadataonly=True)[1]
    assert not meta.variable_value_labels
    assert not meta.notes
    assert not meta.file_label
    assert set(meta.column_labels) == {None}


def test_what_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verix_anon.files.tables.spreadsheets.MOST_ROWS", 3)
    for given, name, said in (
        ({"a": [1, 2, 3]}, "t.xlsx", "holds 2 rows below its header.* publish it as .parquet"),
        ({"a": ["x" * 32_768]}, "t.xlsx", "a text of 32,768 characters"),
        ({"a": [float("inf")]}, "t.xlsx", "column 'a' has an infinite value"),
        ({"a b": [1]}, "t.sav", "SPSS has no column 'a b': a name there has up to 64"),
        ({"all": [1]}, "t.sav", "SPSS has no column 'all'"),
        ({"1a": [1]}, "t.dta", "Stata has no column '1a': a name there has up to 32"),
        ({"x" * 33: [1]}, "t.dta", "Stata has no column"),
        ({"x" * 65: [1]}, "t.sav", "SPSS has no column"),
        ({"ä" * 33: [1]}, "t.sav", "SPSS has no column"),
        ({"": [1]}, "t.dta", "Stata has no column ''"),
        ({"using": [1]}, "t.dta", "Stata has no column 'using'"),
        ({"a": [1], "A": [1]}, "t.sav", "takes 'a' and the same in other letters for one name"),
        ({"a": ["x" * 40_000]}, "t.sav", "a text of 40,000 bytes, and SPSS holds 32,767"),
    ):
        with pytest.raises(TableError, match=rf"{name} cannot be written: .*{said}"):
            write_table(pa.table(given), tmp_path / name)
    assert not list(tmp_path.iterdir())
    with pytest.raises(TableError, match=r"ends in \.csv, .*\.dta"):
        write_table(table(), tmp_path / "t.docx")


@pytest.mark.parametrize(("n_texts", "n_rows"), [(0, 64), (1, 64), (4, 16), (40, 8)])
def test_the_more_texts_the_fewer_rows_are_encoded_together(
    n_texts: int, n_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_writer, "MOST_ROWS", 64)
    monkeypatch.setattr(table_writer, "LEAST_ROWS", 8)
    texts = {f"t{i}": [f"{i} {row}" for row in range(100)] for i in range(n_texts)}
    table = pa.table({"number": range(100), **texts})
    write_table(table, tmp_path / "t.parquet")
    written = pq.ParquetFile(tmp_path / "t.parquet")
    assert written.metadata.row_group(0).num_rows == n_rows
    assert written.metadata.num_row_groups == -(-100 // n_rows)
    assert written.read().equals(table)
