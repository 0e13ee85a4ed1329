"""CSV by the rules of spec §2, Parquet, URLs; what cannot be read is said in one sentence."""

import datetime
import gzip
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from verix_anon.errors import TableError
from verix_anon.files.tables import NULL_TOKENS, Reading, read_table, table_aside, write_table

DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12, 0)


def csv(tmp_path: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def column(tmp_path: Path, values: list[str], **options: Any) -> pa.ChunkedArray:
    """A CSV column of these values, read back."""
    text = "id,v\n" + "".join(f"r,{value}\n" for value in values)
    return read_table(csv(tmp_path, text), Reading(**options)).column("v")


@pytest.mark.parametrize(
    ("values", "arrow_type", "read"),
    [
        (["1", "-2", "+3", "0"], pa.int64(), [1, -2, 3, 0]),
        (["9223372036854775807", "1"], pa.int64(), [2**63 - 1, 1]),
        (["9223372036854775808", "1"], pa.string(), ["9223372036854775808", "1"]),
        (["1.5", "2", "-.5", "1.", "1e3", "+2E-1"], pa.float64(), [1.5, 2, -0.5, 1, 1000, 0.2]),
        (["inf", "1.5"], pa.string(), ["inf", "1.5"]),
        (["0x10", "1"], pa.string(), ["0x10", "1"]),
        (["1_000", "1"], pa.string(), ["1_000", "1"]),
        ([" 1", "2"], pa.string(), [" 1", "2"]),
        (["2024-02-29", "2024-02-29"], pa.date32(), [DAY, DAY]),
        (["2024-02-30", "2024-02-29"], pa.string(), ["2024-02-30", "2024-02-29"]),
        (["29.02.2024"], pa.date32(), [DAY]),
        (["2024-02-29 12:00", "2024-02-29T12:00:00.000"], pa.timestamp("us"), [NOON, NOON]),
        (["true", "false"], pa.string(), ["true", "false"]),
        (["a", "1"], pa.string(), ["a", "1"]),
    ],
)
def test_what_a_column_is_read_as(
    tmp_path: Path, values: list[str], arrow_type: pa.DataType, read: list[object]
) -> None:
    found = column(tmp_path, values)
    assert found.type == arrow_type
    assert found.to_pylist() == read


def test_zones_are_read_as_utc(tmp_path: Path) -> None:
    found = column(tmp_path, ["2024-02-29T12:00:00Z", "2024-02-29 14:00:00+02:00"])
    assert found.type == pa.timestamp("us", tz="UTC")
    assert [value.replace(tzinfo=None) for value in found.to_pylist()] == [NOON, NOON]
    mixed = ["2024-02-29T12:00:00Z", "2024-02-29 14:00:00"]
    assert column(tmp_path, mixed).to_pylist() == mixed


def test_null_tokens(tmp_path: Path) -> None:
    found = column(tmp_path, [*NULL_TOKENS, '""', "1"])
    assert found.type == pa.int64()
    assert found.to_pylist() == [None] * 7 + [1]
    others = ["None", "nan", "?", "-", "null "]
    assert column(tmp_path, others).to_pylist() == others


def test_other_null_tokens(tmp_path: Path) -> None:
    found = column(tmp_path, ["?", "1"], null_tokens=["?"])
    assert found.to_pylist() == [None, 1]
    assert column(tmp_path, ["NA", ""], null_tokens=["?"]).to_pylist() == ["NA", ""]


def test_nothing_but_nulls(tmp_path: Path) -> None:
    assert column(tmp_path, ["NA", ""]).to_pylist() == [None, None]


def test_leading_zeros(tmp_path: Path) -> None:
    for values in (["01234", "5"], ["5", "-01"], ["00", "1"], ["01.5", "2"]):
        assert column(tmp_path, values).to_pylist() == values
    assert column(tmp_path, ["01234", "5"], leading_zeros_are_text=False).to_pylist() == [1234, 5]
    assert column(tmp_path, ["0.5", "0"]).to_pylist() == [0.5, 0.0]


def test_quotes_and_newlines(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, 'a,"b ""c"""\n"1,b","x\ny"\n"3","say ""hi"""\n'))
    assert table.to_pydict() == {"a": ["1,b", "3"], 'b "c"': ["x\ny", 'say "hi"']}


def test_a_number_with_a_newline_is_text(tmp_path: Path) -> None:
    assert column(tmp_path, ['"5\n"', "6"]).to_pylist() == ["5\n", "6"]


@pytest.mark.parametrize(
    "text", ["\ufeffa,b\n1,2\n", "a,b\r\n1,2\r\n", "a,b\n1,2", "\n\na,b\n\n1,2\n\n"]
)
def test_marks_and_line_ends(tmp_path: Path, text: str) -> None:
    assert read_table(csv(tmp_path, text)).to_pydict() == {"a": [1], "b": [2]}


def test_tabs_and_gzip(tmp_path: Path) -> None:
    expected = {"a,b": [1], "c": ["x,y"]}
    text = "a,b\tc\n1\tx,y\n"
    assert read_table(csv(tmp_path, text, "t.tsv")).to_pydict() == expected
    assert (
        read_table(csv(tmp_path, gzip.compress(text.encode()), "t.TSV.gz")).to_pydict() == expected
    )
    packed = csv(tmp_path, gzip.compress(b"\xef\xbb\xbfa\n1\n"), "t.csv.gz")
    assert read_table(packed).to_pydict() == {"a": [1]}


def test_only_the_ending_says_what_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "old.tsv.files"
    folder.mkdir()
    assert read_table(csv(folder, "a,b\n1,2\n")).to_pydict() == {"a": [1], "b": [2]}


def test_wide_and_long(tmp_path: Path) -> None:
    """More than one block, and values that only look like numbers in the first."""
    rows = "".join(f"{i},{i}\n" for i in range(200_000)) + "x,7\n"
    table = read_table(csv(tmp_path, "a,b\n" + rows))
    assert table.schema.types == [pa.string(), pa.int64()]
    assert table.num_rows == 200_001


def test_header_only(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "a,b\n"))
    assert table.column_names == ["a", "b"]
    assert table.num_rows == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "is empty; it has no header"),
        (b"\n\n", "is empty; it has no header"),
        (b"a,b,a\n1,2,3\n", "column name 'a' occurs twice"),
        (b"a,b\n1,2\n1,2,3\n", "line 3 has 3 fields, the header 2"),
        (b"a,b\n1\n", "line 2 has 1 field, the header 2"),
        (b"a,b\n\x81\xfe,2\n", "neither UTF-8 nor Windows-1252 text; give its encoding"),
        (b"a,b\n" + "é,2\n".encode() * 100_000 + b"\xff\xfe,2\n", "line 100,002 is not UTF-8"),
        (b"x" * 200_000 + b"\n1\n", "field larger than field limit"),
    ],
)
def test_not_csv(tmp_path: Path, text: bytes, sentence: str) -> None:
    with pytest.raises(TableError) as caught:
        read_table(csv(tmp_path, text))
    assert sentence in str(caught.value)
    assert "table.csv" in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("size", [3, 30, 400])
def test_broken_gzip(tmp_path: Path, size: int) -> None:
    whole = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(1000)))
    spoiled = bytearray(whole)
    spoiled[size] ^= 0x55
    for data, said in (
        (whole[:size], "cannot be read"),
        (bytes(spoiled), "cannot be read"),
        (b"a,b\n1,2\n", "is not packed by gzip"),
    ):
        with pytest.raises(TableError, match=said):
            read_table(csv(tmp_path, data, "t.csv.gz"))


def test_names_and_places(tmp_path: Path) -> None:
    for name in ("table", "csv"):
        with pytest.raises(TableError, match=r"the name of one ends in \.csv"):
            read_table(tmp_path / name)
    with pytest.raises(TableError, match="is an archive; unpack it"):
        read_table(tmp_path / "table.csv.zip")
    for name in ("nothing.csv", "nothing.parquet", "no/folder.csv.gz"):
        with pytest.raises(TableError, match="there is no file"):
            read_table(tmp_path / name)
    for name in ("folder.csv", "folder.parquet"):
        (tmp_path / name).mkdir()
        with pytest.raises(TableError, match="is a folder, not a table"):
            read_table(tmp_path / name)
    with pytest.raises(TableError, match="cannot be read"):
        read_table(tmp_path / ("x" * 300 + ".csv"))
    with pytest.raises(TableError, match="cannot be read"):
        read_table(csv(tmp_path, b"PAR1", "broken.parquet"))


def test_urls(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    with memory.open("/tables/t.csv", "wb") as file:
        file.write(b"a,b\n1,x\n")
    with memory.open("/tables/t.parquet", "wb") as file:
        pq.write_table(pa.table({"a": [1]}), file)
    try:
        assert read_table("memory://tables/t.csv").to_pydict() == {"a": [1], "b": ["x"]}
        assert read_table("memory://tables/t.parquet").to_pydict() == {"a": [1]}
        with pytest.raises(TableError, match="there is no file"):
            read_table("memory://tables/nothing.csv")
        with pytest.raises(TableError, match="cannot be opened"):
            read_table("nonsense://tables/t.csv")
        with pytest.raises(TableError, match="written to local folders"):
            write_table(pa.table({"a": [1]}), "memory://tables/new.csv")
    finally:
        memory.rm("/tables", recursive=True)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.PQ"])
def test_what_was_written_is_read(tmp_path: Path, name: str) -> None:
    table = pa.table(
        {
            "whole": [1, None, 3],
            "number": [0.1, 1e300, None],
            "text": ["a,b\t", 'say "hi"\nthere', None],
            "code": ["007", "1", "2"],
            "day": [DAY, None, DAY],
            "moment": pa.array([NOON, None, NOON], pa.timestamp("us")),
            'odd, "name"': ["x", "y", "z"],
        }
    )
    write_table(table, tmp_path / name)
    again = read_table(tmp_path / name)
    assert again.to_pydict() == table.to_pydict()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(TableError, match="exists already"):
        write_table(table, tmp_path / name)
    write_table(table.slice(0, 1), tmp_path / name, overwrite=True)
    assert read_table(tmp_path / name).num_rows == 1


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_readers_see_what_is_to_be_expanded_as_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("verix_anon.files.tables.table_writer.PART_ROWS", 2)
    texts = pa.array(["0..1", "2..3", "2..3", "0..1", "0..1"], pa.large_string())
    columns = {"x": texts}
    if name == "t.parquet":
        columns["kept"] = pa.array(["a", "b", "a", "b", "a"]).dictionary_encode()
        columns["took"] = pa.array([1, 2, 3, 4, 5], pa.duration("s"))
    held = pa.table(columns | {"x": texts.dictionary_encode()})
    with table_aside(held, tmp_path / name, overwrite=False, expanded=["x"]) as aside:
        assert not (tmp_path / name).exists()
        aside.take_name()
    again = read_table(tmp_path / name)
    assert again.to_pydict() == pa.table(columns).to_pydict()
    if name == "t.parquet":
        assert again.schema == pa.table(columns).schema


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"ends in \.csv, \.tsv, \.parquet, \.pq"):
        write_table(pa.table({"a": [1]}), tmp_path / "t.xls")
    with pytest.raises(TableError, match=r"t\.csv cannot be written"):
        write_table(pa.table({"a": [[1, 2]]}), tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())
