"""Tables of one quasi-identifier in every library, encoded."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from verix_anon.client.table.encode import Encoded, encode
from verix_anon.client.table.roles import Declared
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Kind

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


def encoded(make: Make, x: Any, **declared: Any) -> Encoded:
    table = make({"x": x, "y": labels(len(x))})
    return encode(table, Declared(target="y", quasi=["x"], **declared))


def positions(result: Encoded) -> list[float]:
    """The values of the first quasi-identifier."""
    return [float(value) for value in result.values[0]]


def refused(message: str, make: Make, x: Any, **declared: Any) -> None:
    with pytest.raises(TableError, match=message):
        encoded(make, x, **declared)


def refused_arrow(message: str, x: pa.Array, **declared: Any) -> None:
    refused(message, pa.table, x, **declared)
