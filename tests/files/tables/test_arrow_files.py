"""A Parquet file's columns are read one by one, as they would be all at once."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client.table.tables import table_digest
from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.digest import PART_ROWS
from verix_anon.errors import TableError
from verix_anon.files.tables import Stored, read_table, read_table_as

TABLE = pa.table(
    {
        "a": [1.5, None, float("nan"), -0.0, 7.0],
        "a.b": ["x", "y", None, "x", ""],
        "s": [{"b": 1}, {"b": 2}, None, {"b": 3}, {"b": 4}],
        "d": pa.array(["u", "v", "u", None, "v"]).dictionary_encode(),
        "n": pa.nulls(5),
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=2)
    return tmp_path / "t.parquet"


def test_each_column_is_as_in_the_whole(path: Path) -> None:
    stored = read_table_as(path, whole=False).table
    assert isinstance(stored, Stored)
    whole = read_table(path)
    assert (stored.column_names, stored.num_rows) == (whole.column_names, whole.num_rows)
    for name in stored.column_names:
        # As text: NaN is not equal to itself.
        assert str(stored.column(name).to_pylist()) == str(whole[name].to_pylist())
        one, other = columns_of(stored)[name], columns_of(whole)[name]
        assert (one.type, str(one.to_pylist())) == (other.type, str(other.to_pylist()))
    assert table_digest(stored) == table_digest(whole) == table_digest(TABLE)


def test_texts_that_stand_once_are_written_out_column_by_column(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verix_anon.files.tables.arrow_files.USUAL_PAGES", 0)
    monkeypatch.setattr("verix_anon.files.tables.arrow_files.USUAL", 40)
    monkeypatch.setattr("verix_anon.files.tables.arrow_files.TIMES", 0.03)
    with pytest.raises(TableError, match="unpacks to far more"):
        Stored(str(path))
    monkeypatch.setattr("verix_anon.files.tables.arrow_files.TIMES", 64)
    stored = Stored(str(path))
    assert stored.column("a.b").equals(TABLE["a.b"])
    # What one column takes counts for the next, but reading it again does not.
    monkeypatch.setattr("verix_anon.files.tables.arrow_files.TIMES", 0)
    monkeypatch.setattr("verix_anon.files.tables.arrow_files.USUAL", 3)
    assert stored.column("a.b").equals(TABLE["a.b"])
    monkeypatch.setattr("verix_anon.files.tables.arrow_files.USUAL", 2)
    with pytest.raises(TableError, match=r"t.parquet unpacks to far more"):
        stored.column("a.b")


def test_a_file_that_changes_in_between_is_no_crash(path: Path) -> None:
    stored = Stored(str(path))
    path.write_bytes(b"PAR1" + bytes(64))
    with pytest.raises(TableError, match=r"t.parquet cannot be read"):
        stored.column("a")
    path.unlink()
    with pytest.raises(TableError, match=r"t.parquet cannot be read"):
        stored.column("a")


@pytest.mark.parametrize("n", [PART_ROWS - 1, PART_ROWS, 2 * PART_ROWS + 3])
def test_parts_of_numbers_give_the_digest_of_the_whole(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = pa.array([None if i % 7 == 3 else i / 3 for i in range(n)], pa.float64())
    table = pa.table({"x": values, "y": values.cast(pa.float32())})
    in_parts = table_digest(table)
    monkeypatch.setattr("verix_anon.client.table.digest.PART_ROWS", 8 * n)
    assert table_digest(table) == in_parts
