"""Tables of one quasi-identifier in every library, encoded, and their digests."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.owner_table import OwnerTable, read_columns, read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Digest, Kind

CATEGORICAL = {"x": Kind.CATEGORICAL}
NUMERIC = {"x": Kind.NUMERIC}
DATETIME = {"x": Kind.DATETIME}
Make = Callable[[dict[str, Any]], object]


def _arrow_pandas(columns: dict[str, Any]) -> object:
    # From Arrow, so that pandas cannot turn integers with gaps into floats on its own.
    return pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)


MAKERS: dict[str, Make] = {
    "pandas": pd.DataFrame,
    "pandas arrow": _arrow_pandas,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def labels(n_rows: int) -> list[str]:
    return ["no", "yes"] * (n_rows // 2) + ["no"] * (n_rows % 2)


def encoded(make: Make, x: Any, **declared: Any) -> OwnerTable:
    table = make({"x": x, "y": labels(len(x))})
    return read_owner_table(table, Declared(target="y", quasi=["x"], **declared))


def table_digest(table: object) -> Digest:
    return read_columns(columns_of(table), lambda name, array: None)[1]


def positions(result: OwnerTable) -> list[float]:
    """The values of the first quasi-identifier."""
    return [float(value) for value in result.of_quasi(0)]


def refused(message: str, make: Make, x: Any, **declared: Any) -> None:
    with pytest.raises(TableError, match=message):
        encoded(make, x, **declared)


def refused_arrow(message: str, x: pa.Array, **declared: Any) -> None:
    refused(message, pa.table, x, **declared)
