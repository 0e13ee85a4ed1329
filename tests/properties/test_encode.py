"""What was encoded decodes to the user's values, and every library gives the same bytes."""

import datetime as dt
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from verix_anon.client.table.encode import decode
from verix_anon.client.table.owner_table import OwnerTable, read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.protocol.contract import Kind

EPOCH = dt.datetime(1970, 1, 1)
UNITS = {"day": 86_400_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}


def moments(unit: str) -> st.SearchStrategy[dt.datetime]:
    """Datetimes on a grid; within 2**53 microseconds, or the years 1 to 9999 if coarser."""
    reach = 2**53 if unit == "us" else 6 * 10**16
    counts = st.integers(-reach // UNITS[unit], reach // UNITS[unit])
    return counts.map(lambda count: EPOCH + dt.timedelta(microseconds=count * UNITS[unit]))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "float": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "int": (pa.int64(), st.integers(-(2**53), 2**53)),
    "small": (pa.uint8(), st.integers(0, 255)),
    "text": (pa.string(), TEXT),
    "digits": (pa.string(), st.integers(-20, 20).map(str)),
    "bool": (pa.bool_(), st.booleans()),
    "code": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "whole": (pa.float64(), st.integers(-(2**53), 2**53).map(float)),
    "date": (pa.date32(), st.dates()),
    **{unit: (pa.timestamp("us"), moments(unit)) for unit in UNITS},
    "zoned": (pa.timestamp("us", tz="Asia/Tokyo"), moments("s")),
}  # fmt: skip
DECLARED = {"code": Kind.CATEGORICAL, "whole": Kind.CATEGORICAL}


@st.composite
def tables(draw: st.DrawFn, gaps: bool) -> tuple[pa.Table, Declared]:
    n_rows = 2 * draw(st.integers(2, 12))
    columns: dict[str, pa.Array] = {}
    kinds: dict[str, Kind] = {}
    for i, kind in enumerate(
        draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=5))
    ):
        arrow_type, values = COLUMNS[kind]
        # Half as many values as rows at most, or text would be refused as an identifier.
        pool = draw(st.lists(values, min_size=1, max_size=n_rows // 2))
        cell = st.sampled_from([*pool, None] if gaps else pool)
        cells = draw(st.lists(cell, min_size=n_rows - 1, max_size=n_rows - 1))
        columns[f"{kind}{i}"] = pa.array([*cells, pool[0]], arrow_type)
        if kind in DECLARED:
            kinds[f"{kind}{i}"] = DECLARED[kind]
    target = draw(st.permutations([0, 1] * (n_rows // 2)))
    place = draw(st.integers(0, len(columns)))
    order = [*[*columns][:place], "y", *[*columns][place:]]
    columns["y"] = pa.array(target, pa.int8())
    table = pa.table({name: columns[name] for name in order})
    return table, Declared(target="y", quasi="all", kinds=kinds)


def as_given(column: pa.ChunkedArray) -> list[Any]:
    """What decoding gives back: numbers as floats, labels as text, moments in UTC."""
    if pa.types.is_timestamp(column.type):
        return [m and m.replace(tzinfo=None) for m in column.cast(pa.timestamp("us")).to_pylist()]
    return list(column.to_pylist())


def same_value(decoded: object, given: object) -> bool:
    if isinstance(given, bool):
        return decoded == str(given).lower()
    if isinstance(decoded, str) and isinstance(given, int | float):
        return int(decoded) == given
    if isinstance(given, dt.datetime) and not isinstance(decoded, dt.datetime):
        assert isinstance(decoded, dt.date)
        return dt.datetime.combine(decoded, dt.time()) == given
    if isinstance(decoded, dt.datetime) and not isinstance(given, dt.datetime):
        return False
    return decoded == given


@settings(max_examples=120, deadline=None)
@given(tables(gaps=True))
def test_decoding_gives_the_values_back(case: tuple[pa.Table, Declared]) -> None:
    table, declared = case
    result = read_owner_table(table, declared)
    assert [column.name for column in result.columns] == table.column_names
    assert result.target.tolist() == table["y"].to_pylist()
    quasi = [column for column in result.columns if column.name != "y"]
    for column, values in zip(quasi, result.matrix, strict=True):
        given_values = as_given(table[column.name])
        decoded = decode(column, values).to_pylist()
        assert all(
            same_value(mine, theirs)
            for mine, theirs in zip(decoded, given_values, strict=True)
            if theirs is not None
        )
        assert result.n_missing.get(column.name, 0) == given_values.count(None)
        # What was filled in is a value that occurs.
        present = {v for v, theirs in zip(decoded, given_values, strict=True) if theirs is not None}
        assert set(decoded) == present


def everything(result: OwnerTable) -> list[object]:
    return [
        result.columns,
        result.matrix.tobytes(),
        result.target.tobytes(),
        result.n_missing,
        result.roles,
    ]


@settings(max_examples=80, deadline=None)
@given(tables(gaps=True), st.integers(1, 3))
def test_libraries_and_chunks_do_not_matter(case: tuple[pa.Table, Declared], step: int) -> None:
    table, declared = case
    expected = everything(read_owner_table(table, declared))
    chunked = pa.concat_tables([table.slice(at, step) for at in range(0, table.num_rows, step)])
    assert everything(read_owner_table(chunked, declared)) == expected
    assert everything(read_owner_table(pl.from_arrow(table), declared)) == expected
    arrow_backed = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert everything(read_owner_table(arrow_backed, declared)) == expected


@settings(max_examples=80, deadline=None)
@given(tables(gaps=False))
def test_numpy_backed_pandas_does_not_matter(case: tuple[pa.Table, Declared]) -> None:
    # Without gaps only: numpy has no missing integers, and pandas makes floats of them.
    table, declared = case
    assert everything(read_owner_table(table.to_pandas(), declared)) == everything(
        read_owner_table(table, declared)
    )
