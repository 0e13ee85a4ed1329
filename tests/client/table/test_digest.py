"""The same content gives the same digest; any difference gives another."""

import io
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client.table.tables import table_digest
from verix_anon.client.table.digest import plain_column
from verix_anon.errors import TableError

DATA: dict[str, Any] = {
    "whole": [1, 2, 3],
    "real": [1.5, None, -0.0],
    "text": ["a", None, "ü"],
    "flag": [True, False, True],
    "day": [date(2020, 1, 1), None, date(1960, 5, 5)],
    "moment": [datetime(2020, 1, 1, 12, 30), None, datetime(1960, 1, 1, 0, 0, 0, 5)],
    "nothing": [None, None, None],
}


def test_every_library_gives_the_same() -> None:
    table = pa.table(DATA)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    digests = {
        table_digest(made)
        for made in (
            table,
            pq.read_table(buffer),
            pl.DataFrame(DATA),
            pd.DataFrame(DATA),
            table.to_pandas(types_mapper=pd.ArrowDtype),
        )
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([1, 2], pa.int8()), pa.array([1, 2], pa.uint64())),
        (pa.array([0.5, 2], pa.float32()), pa.array([0.5, 2], pa.float64())),
        (pa.array([0.0, np.nan]), pa.array([-0.0, None], pa.float64())),
        (
            pa.array(["a", "b", "a"]).dictionary_encode(),
            pa.array(["a", "b", "a"], pa.large_string()),
        ),
        (pa.array([1, 1]).dictionary_encode(), pa.array([1, 1])),
        (pa.array(["x", "y", "z"])[1:], pa.array(["y", "z"])),
        (pa.array([1, 2, None])[1:], pa.array([2, None])),
        (pa.array([b"x"], pa.binary(1)).cast(pa.binary()), pa.array([b"x"], pa.large_binary())),
        (pa.array([1000], pa.timestamp("ms")), pa.array([1_000_000], pa.timestamp("us", "UTC"))),
        (pa.array([date(2020, 1, 1)], pa.date64()), pa.array([date(2020, 1, 1)], pa.date32())),
        (pa.array([time(1)], pa.time32("s")), pa.array([time(1)], pa.time64("us"))),
        (pa.array([timedelta(1)], pa.duration("s")), pa.array([timedelta(1)], pa.duration("ns"))),
        (
            pa.array([[1, None]], pa.list_(pa.int8())),
            pa.array([[1, None]], pa.large_list(pa.int64())),
        ),
        (pa.nulls(2), pa.array([None, None], pa.string())),
    ],
)
def test_forms_of_one_content(first: pa.Array, second: pa.Array) -> None:
    assert table_digest(pa.table({"x": first})) == table_digest(pa.table({"x": second}))


def test_chunks_do_not_count() -> None:
    chunked = pa.chunked_array([["a", "b"], [], ["c"]], pa.string())
    assert table_digest(pa.table({"x": chunked})) == table_digest(pa.table({"x": ["a", "b", "c"]}))


@pytest.mark.parametrize(
    "other",
    [
        {"x": [1, 2], "y": ["a", "c"]},
        {"x": [2, 1], "y": ["a", "b"]},
        {"y": ["a", "b"], "x": [1, 2]},
        {"x": [1, 2], "z": ["a", "b"]},
        {"x": [1, 2]},
        {"x": [1, None], "y": ["a", "b"]},
        {"x": [1, 0], "y": ["a", "b"]},
        {"x": [1.0, 2.0], "y": ["a", "b"]},
        {"x": [1, 2], "y": ["ab", ""]},
        {"x": [1, 2], "y": ["ab", None]},
        {"x": [1, 2], "y": ["a", None]},
        {"x": ["1", "2"], "y": ["a", "b"]},
        {"x": [1, 2, 3], "y": ["a", "b", "c"]},
    ],
)
def test_any_difference_shows(other: dict[str, Any]) -> None:
    assert table_digest(pa.table(other)) != table_digest(pa.table({"x": [1, 2], "y": ["a", "b"]}))


@pytest.mark.parametrize(
    ("values", "plain"),
    [
        (pa.array([2**64 - 1, 1], pa.uint64()), pa.uint64()),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("ns")),
        (pa.array([2**62], pa.timestamp("s")), pa.timestamp("s")),
        (pa.array([Decimal("1.50")]), pa.large_string()),
        (pa.array([{"a": 1}]), pa.large_string()),
        (pa.array([datetime(2020, 1, 1, tzinfo=UTC)]), pa.timestamp("us")),
    ],
)
def test_what_fits_no_plain_type_keeps_its_value(values: pa.Array, plain: pa.DataType) -> None:
    assert plain_column(values).type == plain
    assert len(table_digest(pa.table({"x": values}))) == 32


def test_empty_tables_differ_by_their_names() -> None:
    first, second = (pa.table({name: pa.array([], pa.int64())}) for name in "ab")
    assert table_digest(first) != table_digest(second)


def test_what_is_no_table() -> None:
    with pytest.raises(TableError, match="not list"):
        table_digest([1, 2])
