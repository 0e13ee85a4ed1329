"""Types and names that libraries allow, and that few tables have."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

from client.release.releases import Job, columns, job
from verix_anon.client.prepare import prepare
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.roles_file import roles_text
from verix_anon.errors import TableError
from verix_anon.files.tables import write_table

NESTED = {
    "struct": pa.struct([("a", pa.int64())]),
    "list": pa.list_(pa.int64()),
    "map": pa.map_(pa.string(), pa.int64()),
}
VALUES: dict[str, object] = {"struct": {"a": 1}, "list": [1, 2], "map": [("a", 1)]}


def with_views(names: list[str]) -> pa.Table:
    """The usual table, some of its columns as views of text."""
    table = pa.table(columns())
    for name in names:
        text = pa.array([str(value) for value in table[name].to_pylist()], pa.string_view())
        table = table.set_column(table.column_names.index(name), name, text)
    return table


def texts() -> list[str]:
    table = pa.table(columns())
    return [name for name in table.column_names if pa.types.is_string(table[name].type)]


def test_views_of_text_are_text(tmp_path: Path) -> None:
    assert texts()
    made: Job = job(with_views(texts()))
    released = made.release()
    write_table(released.table, tmp_path / "out.csv")
    assert pyarrow.csv.read_csv(tmp_path / "out.csv").num_rows == made.table.num_rows
    assert "string_view" not in str(released.table.schema)


def nested(kind: str) -> pa.Table:
    n_rows = len(next(iter(columns().values())))
    return pa.table({**columns(), "x": pa.array([VALUES[kind]] * n_rows, NESTED[kind])})


@pytest.mark.parametrize("kind", NESTED)
def test_nested_columns_are_never_drafted_as_quasi_identifiers(kind: str) -> None:
    line = next(
        line
        for line in roles_text(nested(kind), "t.parquet").splitlines()
        if line.startswith('"x"')
    )
    assert line == '"x" = "identifier"  # each cell holds several values'


@pytest.mark.parametrize("kind", NESTED)
def test_a_nested_target_is_refused(kind: str) -> None:
    with pytest.raises(TableError, match="which is neither a number, a date nor text"):
        prepare(nested(kind).select(["age", "x"]), target="x", quasi="all")


def test_a_column_whose_name_is_empty() -> None:
    table = pl.DataFrame({"": range(40), "y": ["a", "b"] * 20})
    made = job(table, Declared(target="y", quasi=[""]))
    assert made.release().table.columns == ["", "y"]
