"""The columns of a table, one Arrow array each.

Tables may be pandas, polars or pyarrow, or whatever gives a stream of Arrow data: narwhals reads
them all, and each column passes through one Arrow array, so that all give the same bytes. The
columns of a Parquet file are read one by one, so that it need not be held whole.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import narwhals as nw
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from verix_anon.client.arguments import is_path
from verix_anon.client.manifest import Manifest
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.tables import Read, Reading, Stored, read_table_as
from verix_anon.files.tables.table_sources import collected


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
    """The columns of a table of any library, or themselves.

    Raises:
        TableError: This is not a pandas, polars or pyarrow table with columns.
    """
    if isinstance(table, Columns):
        return table
    if isinstance(table, Stored):
        if not table.column_names:
            raise TableError("the table has no columns")
        return Columns(table.column_names, table.num_rows, lambda name: _one(table.column(name)))
    try:
        frame = nw.from_native(collected(table), eager_only=True)  # type: ignore[call-overload]
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


def _one(column: pa.ChunkedArray) -> pa.Array:
    one = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return without_views(one)


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


def index_warnings(table: object) -> tuple[str, ...]:
    """What to say of an index that does not merely number the rows; one with a name is refused."""
    try:
        frame = nw.from_native(table, eager_only=True)  # type: ignore[call-overload]
    except TypeError:
        return ()  # columns_of() says what is wrong with it
    index = nw.maybe_get_index(frame)
    if index is None or list(index) == list(range(len(frame))):
        return ()
    if any(name is not None for name in index.names):
        raise TableError(
            f"the index {', '.join(map(repr, index.names))} of the table has no role: make it a"
            " column, with reset_index(), and declare it; or drop it, with reset_index(drop=True)"
        )
    return ("the index of the table is no column: it is neither sent nor published",)


class Owned(NamedTuple):
    """A table that can be read more than once."""

    table: object
    """In memory; of a Parquet file what reads its columns as they are asked for."""
    reading: Reading | None
    """How its file was read; None if it came from memory."""
    notes: tuple[str, ...]
    """What was said of it then; nothing if the caller has read it, and so has seen that."""


def owned(table: object, reading: Reading | None) -> Owned:
    """The table itself; a file is read as `reading` says."""
    if is_path(table):
        read = read_table_as(table, reading, whole=False).settled()
        return Owned(read.table, read.reading, read.notes)
    if isinstance(table, Read):
        return Owned(table.settled().table, table.reading, ())
    return Owned(collected(table), None, ())


def reading_of(manifest: Manifest) -> Reading | None:
    """How the file of the table was read to prepare it; None if the table came from memory."""
    if manifest.reading is None:
        return None
    return Reading.from_json(Fields(manifest.reading, "the manifest: reading", TableError))
