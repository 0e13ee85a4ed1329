"""Tables that were made to be too much: refused in a sentence, within bounded memory."""

import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from verix_anon.errors import TableError
from verix_anon.files.tables import read_table, subprocess_reader

SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


def with_sheet(path: Path, content: bytes, head: str = "") -> Path:
    """A real workbook whose only sheet is replaced."""
    openpyxl.Workbook().save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/worksheets/sheet1.xml"] = content
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def refused(path: Path, said: str, peak: Callable[[], int]) -> None:
    before = peak()
    with pytest.raises(TableError, match=said) as caught:
        read_table(path)
    assert path.name in str(caught.value)
    assert len(str(caught.value)) < 500
    # In bytes: the readers' processes are waited for, and so are counted.
    assert peak() - before < 1_700 << 20


@pytest.fixture
def peak() -> Callable[[], int]:
    import resource

    def most() -> int:
        who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(resource.getrusage(one).ru_maxrss for one in who) << 10

    return most


def test_a_sheet_that_unpacks_to_gigabytes(tmp_path: Path, peak: Callable[[], int]) -> None:
    path = with_sheet(tmp_path / "bomb.xlsx", b"<row/>" * (30 << 20))
    refused(path, "unpacks to more than 100 times its", peak)


def test_a_sheet_that_lies_about_its_size(tmp_path: Path, peak: Callable[[], int]) -> None:
    path = with_sheet(tmp_path / "bomb.xlsx", b"<row/>" * (30 << 20))
    data = bytearray(path.read_bytes())
    size = struct.pack("<I", 6 * (30 << 20))
    assert data.count(size) == 2
    at = data.find(size)
    while at >= 0:
        data[at : at + 4] = struct.pack("<I", 1000)
        at = data.find(size)
    path.write_bytes(data)
    refused(path, "cannot be read", peak)


def test_more_parts_than_any_workbook_has(
    tmp_path: Path, peak: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess_reader, "MOST_ENTRIES", 3)
    refused(with_sheet(tmp_path / "t.xlsx", b"<x/>"), "unpacks to more than", peak)


def test_two_cells_far_apart(tmp_path: Path, peak: Callable[[], int]) -> None:
    cells = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c>'
    path = with_sheet(tmp_path / "t.xlsx", f"{SHEET}{cells}</row></sheetData></worksheet>".encode())
    refused(path, "takes more than .* GB to read", peak)


def test_entities_that_multiply(tmp_path: Path, peak: Callable[[], int]) -> None:
    laughs = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    head = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]>'
    cell = '<row r="1"><c r="A1" t="inlineStr"><is><t>&l9;</t></is></c></row>'
    path = with_sheet(tmp_path / "t.xlsx", f"{head}{SHEET}{cell}</sheetData></worksheet>".encode())
    before = peak()
    with suppress(TableError):
        assert len(read_table(path).column_names[0]) < 100
    assert peak() - before < 1_700 << 20


def sav(n_columns: int, n_rows: int) -> bytes:
    """The header of an SPSS file, and nothing that it promises."""
    head = b"$FL2" + b"@(#) SPSS DATA FILE".ljust(60)
    head += struct.pack("<iiiii", 2, n_columns, 0, 0, n_rows) + struct.pack("<d", 100.0)
    return head + b"01 Jan 2000:00:00".ljust(17) + b" " * 64 + b"\0" * 3


@pytest.mark.parametrize(("n_columns", "n_rows"), [(2**31 - 1, 1), (1, 2**31 - 1), (-1, -1)])
def test_headers_of_spss_that_lie(
    tmp_path: Path, peak: Callable[[], int], n_columns: int, n_rows: int
) -> None:
    path = tmp_path / "t.sav"
    variable = struct.pack("<iiiiii8s", 2, 0, 0, 0, 0x050802, 0x050802, b"X       ")
    labels = struct.pack("<ii", 3, 2**31 - 1)
    for body in (b"", variable, variable + labels, variable + struct.pack("<ii", 999, 0)):
        path.write_bytes(sav(n_columns, n_rows) + body)
        try:
            table = read_table(path)
        except TableError:
            refused(path, "t.sav", peak)
        else:
            assert table.num_rows == 0


def test_headers_of_stata_that_lie(tmp_path: Path, peak: Callable[[], int]) -> None:
    path = tmp_path / "t.dta"
    for n_columns, n_rows in ((0xFFFF, 2**31 - 1), (1, 2**31 - 1)):
        head = struct.pack("<BBBBHi", 114, 2, 1, 0, n_columns, n_rows)
        path.write_bytes(head + b"\0" * (81 + 18) + b"\xff" + b"x\0" * 200)
        refused(path, "t.dta", peak)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_more_columns_than_a_table_has(tmp_path: Path, name: str) -> None:
    wide = pa.table({str(i): pa.array([], pa.int8()) for i in range(20_000)})
    if name == "t.parquet":
        pq.write_table(wide, tmp_path / name, store_schema=False)
    else:
        with pa.ipc.new_file(tmp_path / name, wide.schema) as writer:
            writer.write_table(wide)
    with pytest.raises(TableError, match=rf"{name} has 20,000 columns, and a table may have 16,3"):
        read_table(tmp_path / name)


def test_arrow_files_that_lead_out_of_their_buffers(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    table = pa.table({"text": ["abcdefgh"] * 8})
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)
    data = bytearray(path.read_bytes())
    at = data.find(struct.pack("<ii", 8, 16))
    data[at : at + 4] = struct.pack("<i", 2**30)
    path.write_bytes(data)
    with pytest.raises(TableError, match=r"t\.arrow cannot be read"):
        read_table(path)
