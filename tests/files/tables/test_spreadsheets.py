"""Spreadsheets as programs write them: typed cells, several sheets, headers that are none."""

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
import xlsxwriter

from verix_anon.errors import TableError
from verix_anon.files.tables import Reading, read_table, read_table_as

WRITTEN = Path(__file__).parent / "written"
DAY, MOMENT = dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5)


def workbook(path: Path, sheets: Mapping[str, Sequence[Any]]) -> Path:
    """As openpyxl writes it, which knows dates from times by their types."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_cells_have_types(tmp_path: Path) -> None:
    rows = [
        ["whole", "number", "text", "code", "day", "moment", "flag", "empty", 2020],
        [1, 1.5, "a", "007", DAY, MOMENT, True, None, "x"],
        [None, 2, None, "12", None, None, None, None, "y"],
        [3, None, "NA", "1", DAY, MOMENT, False, None, None],
    ]
    read = read_table_as(workbook(tmp_path / "t.xlsx", {"People": rows}))
    table = read.table
    assert table.to_pydict() == {
        "whole": [1, None, 3],
        "number": [1.5, 2.0, None],
        "text": ["a", None, None],
        "code": ["007", "12", "1"],
        "day": [DAY, None, DAY],
        "moment": [MOMENT, None, MOMENT],
        "flag": [True, None, False],
        "empty": [None, None, None],
        "2020": ["x", "y", None],
    }
    assert table.schema.field("whole").type == pa.int64()
    assert table.schema.field("day").type == pa.date32()
    assert read.notes == ()


@pytest.mark.parametrize("name", ["xlwt.xls", "odfpy.ods"])
def test_what_other_libraries_wrote(name: str) -> None:
    table = read_table(WRITTEN / name)
    assert table.to_pydict() == {
        "plz": ["01067", "10115", "80331"],
        "age": [33, 41, 27],
        "born": [dt.date(1990, 2, 1), dt.date(1982, 12, 31), dt.date(1996, 2, 29)],
        "note": ["x", None, "ü"],
    }
    assert table.schema.field("age").type == pa.int64()


def test_sheets_are_named(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", {"One": [["a"], [1]], "Zwei": [["a"], [2]], "Nothing": []})
    with pytest.raises(TableError, match=r"several sheets: 'One', 'Zwei'; say which.*--sheet"):
        read_table(path)
    with pytest.raises(TableError, match=r"no sheet 'one'; its sheets are 'One', 'Zwei', 'Noth"):
        read_table(path, Reading(sheet="one"))
    with pytest.raises(TableError, match=r"t\.xlsx has nothing in its sheet 'Nothing'"):
        read_table(path, Reading(sheet="Nothing"))
    assert read_table(path, Reading(sheet="Zwei")).to_pydict() == {"a": [2]}
    only = workbook(tmp_path / "o.xlsx", {"Nothing": [], "One": [["a"], [1]]})
    assert read_table(only).to_pydict() == {"a": [1]}


def test_text_and_numbers_in_one_column_are_text_with_a_warning(tmp_path: Path) -> None:
    rows = [["plz", "n"], ["01067", 1], [None, None], [1067, "-"], ["80331", 3], ["10115", 4]]
    read = read_table_as(workbook(tmp_path / "t.xlsx", {"S": rows}))
    table = read.table
    assert table.to_pydict() == {
        "plz": ["01067", "1067", "80331", "10115"],
        "n": ["1", "-", "3", "4"],
    }
    first, second = read.notes
    assert "column 'plz' mixes numbers and text, such as '1067' in row 4" in first
    assert "has lost its leading zeros" in first
    assert "'-' in row 4: all of it is read as text" in second


def test_errors_and_padded_numbers_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        padded = book.add_format({"num_format": "00000"})
        sheet.write_row(0, 0, ["plz", "x"])
        for i in range(1, 4):
            sheet.write_number(i, 0, 1066 + i, padded)
        sheet.write_formula(1, 1, "=1/0", None, "#DIV/0!")
        sheet.write_formula(2, 1, "=NA()", None, "#N/A")
        sheet.write_number(3, 1, 5)
    read = read_table_as(path)
    table = read.table
    assert table.to_pydict() == {"plz": [1067, 1068, 1069], "x": [None, None, 5]}
    errors, zeros = read.notes
    assert errors.startswith("2 cells hold an error")
    assert "leading zeros, by a format such as 00000" in zeros


def merged(path: Path) -> Path:
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        sheet.merge_range(0, 0, 0, 1, "Person")
        sheet.write_row(1, 0, ["age", "sex"])
        sheet.write_row(2, 0, [33, "f"])
    return path


def test_headers_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"row 1 .*\('Person'\).* has merged cells; say how"):
        read_table(merged(tmp_path / "m.xlsx"))
    report = [["Report of May"], [], ["age", "sex"], [33, "f"]]
    with pytest.raises(TableError, match=r"'Report of May'\) .* names 1 of 2 columns; say how"):
        read_table(workbook(tmp_path / "r.xlsx", {"S": report}))
    assert read_table(tmp_path / "r.xlsx", Reading(skip=1)).to_pydict() == {
        "age": [33],
        "sex": ["f"],
    }
    short = Reading(skip=2, footer=1)
    assert read_table(tmp_path / "r.xlsx", short).to_pydict() == {"age": [], "sex": []}
    twice = [["a", "b", "a"], [1, 2, 3]]
    with pytest.raises(TableError, match=r"d\.xlsx has the column name 'a' twice"):
        read_table(workbook(tmp_path / "d.xlsx", {"S": twice}))


def test_rows_above_and_below_are_counted_as_the_sheet_does(tmp_path: Path) -> None:
    rows: list[list[Any]] = [[], [], ["a"], [1], [], ["x"], [2]]
    read = read_table_as(workbook(tmp_path / "t.xlsx", {"S": rows}))
    table = read.table
    assert table.to_pydict() == {"a": ["1", "x", "2"]}
    assert "'x' in row 6" in read.notes[0]


def test_files_that_are_no_spreadsheets(tmp_path: Path) -> None:
    for data, said in (
        (b"<html><table>", "is a web page by its content, whatever its name says"),
        (b"a;b\n1;2\n", "is text by its content"),
        (b"", "is empty"),
        (b"PK\3\4 and no more", "cannot be read"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "cannot be read"),
    ):
        for name in ("t.xls", "t.xlsx", "t.ods"):
            path = tmp_path / name
            path.write_bytes(data)
            with pytest.raises(TableError, match=rf"{name} {said}"):
                read_table(path)
