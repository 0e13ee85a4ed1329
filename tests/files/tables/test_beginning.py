"""The first rows of a table: the same as of all of it, read in a bounded part of the file."""

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from verix_anon.client.table.encode import kind_of
from verix_anon.errors import TableError
from verix_anon.files.tables import Reading, first_rows, read_beginning, read_table_as

ROWS = "".join(f'{i};"Zeile\n{i}; ""ä""";0{i % 9 + 1}.11.2024;{i},5\n' for i in range(20_000))
TEXT = f"Titel\n\nnr;was;tag;wert\n{ROWS}Summe;;;\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "windows-1252", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_they_are_those_of_the_whole(tmp_path: Path, encoding: str, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    data = TEXT.encode(encoding)
    path.write_bytes(gzip.compress(data, 1) if ending.endswith("gz") else data)
    found = read_beginning(path, Reading(), 20)
    assert found is not None
    whole = read_table_as(path)
    assert found.table.equals(whole.table.slice(0, 20))
    for name in ("delimiter", "encoding", "decimal", "dates", "skip"):
        assert getattr(found.reading, name) == getattr(whole.reading, name)


@pytest.mark.parametrize("encoding", ["utf-16", "windows-1252", "utf-8"])
def test_what_is_said_of_the_encoding_counts(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode(encoding))
    found = read_beginning(path, Reading(encoding=encoding, footer=1), 5)
    assert found is not None
    assert found.table["was"][1].as_py() == 'Zeile\n1; "ä"'
    assert (found.reading.encoding, found.reading.footer) == (encoding, 1)
    with pytest.raises(TableError, match="there is none called"):
        read_beginning(path, Reading(encoding="utf-1632"), 5)


def test_a_small_table_is_read_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\nall,\n")
    found = read_beginning(tmp_path / "t.csv", Reading(), 20)
    assert found is not None
    assert found.table.num_rows == read_table_as(tmp_path / "t.csv").table.num_rows


def test_only_the_beginning_is_read(tmp_path: Path) -> None:
    """A terabyte takes as long as a kilobyte."""
    path = tmp_path / "t.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n" + b"1,2\n" * 100_000)
        file.truncate(1 << 40)
    found = read_beginning(path, Reading(), 20)
    assert found is not None
    assert found.table.to_pydict() == {"a": [1] * 20, "b": [2] * 20}


def test_a_row_that_goes_beyond_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n1,"' + "x\n" * 200_000)
    found = read_beginning(tmp_path / "t.csv", Reading(), 20)
    assert found is not None
    assert (found.table.column_names, found.table.num_rows) == (["a", "b"], 0)


def test_parquet_by_its_first_pages(tmp_path: Path) -> None:
    table = pa.table({"a": range(100_000), "b": ["x", None] * 50_000})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1000)
    found = read_beginning(tmp_path / "t.parquet", Reading(), 20)
    assert found is not None
    assert found.table.equals(table.slice(0, 20))
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    found = read_beginning(tmp_path / "empty.parquet", Reading(), 20)
    assert found is not None
    assert found.table.schema == table.schema
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")
    with pytest.raises(TableError, match=r"broken\.parquet"):
        read_beginning(tmp_path / "broken.parquet", Reading(), 20)


def test_other_kinds_are_read_if_they_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"a": range(100)})
    pyarrow.feather.write_feather(table, str(tmp_path / "t.feather"))
    found = read_beginning(tmp_path / "t.feather", Reading(), 20)
    assert found is not None
    assert found.table.num_rows == 20
    monkeypatch.setattr("verix_anon.files.tables.WHOLE_BYTES", 100)
    assert read_beginning(tmp_path / "t.feather", Reading(), 20) is None


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.xlsx", "none.py"])
def test_what_is_not_there_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(TableError):
        read_beginning(tmp_path / name, Reading(), 20)


def test_cells_are_shown_as_text(tmp_path: Path) -> None:
    moment = pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns"))
    table = pa.table({"t": moment, "x": ["y" * 500, ""], "n": [1.5, None]})
    pq.write_table(table, tmp_path / "t.parquet")
    found = first_rows(tmp_path / "t.parquet", Reading())
    assert found is not None
    assert [kind_of(each) for each in found.types] == ["datetime", "categorical", "numeric"]
    (first, second) = found.rows
    assert first[0] is not None
    assert first[0].startswith("2023-11-14 22:13:20.123456789")
    assert len(first[1] or "") == 201
    assert (first[2], second) == ("1.5", (None, "", None))


def test_a_table_of_many_columns_is_shown_in_part(tmp_path: Path) -> None:
    pq.write_table(pa.table({f"c{i}": [i] for i in range(300)}), tmp_path / "t.parquet")
    found = first_rows(tmp_path / "t.parquet", Reading())
    assert found is not None
    assert (len(found.names), len(found.rows[0]), found.n_columns) == (100, 100, 300)


def test_values_that_python_does_not_have_are_shown_all_the_same(tmp_path: Path) -> None:
    offsets = pa.py_buffer(b"\0\0\0\0\2\0\0\0")
    table = pa.table(
        {
            "no text": pa.Array.from_buffers(
                pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")]
            ),
            "day": pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
            "second": pa.array([2**52]).cast(pa.timestamp("ms")),
            "zone": pa.array([0]).cast(pa.timestamp("us", "Nowhere/Zone")),
            "lasts": pa.array([2**62]).cast(pa.duration("ns")),
            "none": pa.array([None], pa.string()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", store_schema=True)
    found = first_rows(tmp_path / "t.parquet", Reading())
    assert found is not None
    (row,) = found.rows
    assert row[0] == "\N{REPLACEMENT CHARACTER}"
    assert [cell is None for cell in row] == [False] * 5 + [True]


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """Whoever opened it would wait for ever."""
    for name in ("t.csv", "t.parquet", "t.xlsx"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(TableError, match=f"{name} is not a file"):
            read_beginning(tmp_path / name, Reading(), 20)
