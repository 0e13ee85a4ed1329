"""Whatever gives a stream of Arrow data is a table: lazy frames, relations, readers."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import verix_anon
from client.table.tables import table_digest
from verix_anon.client.table.roles_file import roles_text
from verix_anon.errors import TableError
from verix_anon.files.tables import write_table
from verix_anon.files.tables.table_sources import collected

TABLE = pa.table(
    {
        "age": [20 + i % 30 for i in range(120)],
        "plz": [f"0{i % 4}067" for i in range(120)],
        "income": ["high" if i % 3 else "low" for i in range(120)],
    }
)


class Stream:
    """Nothing but the interface, and only once."""

    def __init__(self) -> None:
        self.reader = TABLE.to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader.__arrow_c_stream__(requested_schema)


def relation() -> object:
    return duckdb.connect().from_arrow(TABLE)


KINDS: list[Callable[[], object]] = [
    lambda: pl.LazyFrame(pl.from_arrow(TABLE)),
    relation,
    TABLE.to_reader,
    Stream,
]


@pytest.mark.parametrize("make", KINDS, ids=["lazy", "duckdb", "reader", "stream"])
def test_all_of_them_are_tables(make: Callable[[], object], tmp_path: Path) -> None:
    assert table_digest(make()) == table_digest(TABLE)
    drafted = roles_text(make(), "memory", "income").replace("large_string", "string")
    assert drafted == roles_text(TABLE, "memory", "income")
    write_table(make(), tmp_path / "t.parquet")
    assert verix_anon.read_table(tmp_path / "t.parquet").to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("make", KINDS, ids=["lazy", "duckdb", "reader", "stream"])
def test_from_prepare_to_release(make: Callable[[], object]) -> None:
    prepared = verix_anon.prepare(make(), target="income", quasi="all")
    delivery = verix_anon.LocalProvider().anonymize(prepared.submission)
    verdict = verix_anon.verify(delivery, prepared.manifest, submission=prepared.submission)
    released = verix_anon.release(delivery, prepared.manifest, verdict, table=make())
    kind = pl.DataFrame if isinstance(make(), pl.LazyFrame) else pa.Table
    assert isinstance(released.table, kind)
    usual = verix_anon.release(delivery, prepared.manifest, verdict, table=TABLE)
    found, expected = (
        sorted(pa.table(collected(each.table)).to_pylist(), key=str) for each in (released, usual)
    )
    assert found == expected


def test_queries_that_fail() -> None:
    lazy = pl.LazyFrame({"a": ["x"]}).select(pl.col("a").cast(pl.Int64))
    with pytest.raises(TableError, match="the table cannot be read"):
        collected(lazy)
    with pytest.raises(TableError, match="a table is a pandas, polars or pyarrow table, not"):
        table_digest(pa.chunked_array([[1]]))
