"""The columns of a table, one Arrow array each.

Tables may be pandas, polars or pyarrow, or whatever gives a stream of Arrow data: narwhals reads
them all, and each column passes through one Arrow array, so that all give the same bytes. The
columns of a Parquet file are read one by one, so that it need not be held whole.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import narwhals as nw
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from verix_anon.errors import TableError
from verix_anon.files.tables import Stored
from verix_anon.files.tables.memory import held

__all__ = ["Columns", "arrow_columns", "columns_of", "without_views"]


class Columns(Mapping[str, pa.Array]):
    """Every column by name, in table order; made when it is asked for, and not kept."""

    def __init__(self, names: list[str], n_rows: int, column: Callable[[str], pa.Array]) -> None:
        self.names, self.n_rows, self._column = names, n_rows, column

    def __getitem__(self, name: str) -> pa.Array:
        return self._column(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names


def columns_of(table: object) -> Columns:
    """The columns of a table of any library.

    Raises:
        TableError: This is not a pandas, polars or pyarrow table with columns.
    """
    if isinstance(table, Stored):
        return _stored(table)
    try:
        frame = nw.from_native(held(table), eager_only=True)  # type: ignore[call-overload]
    except DuplicateError as error:
        name = re.search(r"'(.*)' \d+ times", str(error))
        raise TableError(f"column name {name[1] if name else '?'!r} occurs twice") from None
    except TypeError:
        raise TableError(
            f"a table is a pandas, polars or pyarrow table, not {type(table).__name__}"
        ) from None
    for name in frame.columns:
        if not isinstance(name, str):
            raise TableError(f"column names must be text; {name!r} is not")
    if not frame.columns:
        raise TableError("the table has no columns")
    return Columns(frame.columns, len(frame), lambda name: _to_arrow(name, frame[name]))


def _stored(table: Stored) -> Columns:
    if not table.column_names:
        raise TableError("the table has no columns")

    def column(name: str) -> pa.Array:
        found = table.column(name)
        one = found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()
        return without_views(one)

    return Columns(table.column_names, table.num_rows, column)


def arrow_columns(table: object) -> dict[str, pa.Array]:
    """All columns at once, to be read more than once."""
    return dict(columns_of(table))


def _to_arrow(name: str, series: "nw.Series[Any]") -> pa.Array:
    native = series.to_native()
    if isinstance(native, pa.ChunkedArray) and native.num_chunks == 1:
        # As it is: narwhals would copy it.
        return without_views(native.chunk(0))
    try:
        return without_views(series.to_arrow())
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TableError(f"column {name!r} mixes types or cannot be read ({error})") from None


def without_views(array: pa.Array) -> pa.Array:
    """Views of text and bytes as text and bytes: much of Arrow does not know them."""
    if array.type == pa.string_view():
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if array.type == pa.binary_view() else array
