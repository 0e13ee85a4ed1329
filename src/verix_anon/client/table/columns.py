"""Read the columns of a table, one Arrow array each.

Tables may be pandas, polars or pyarrow, or anything else that gives a stream of Arrow data.
narwhals reads them all. Each column passes through one Arrow array, so all libraries give the same
bytes. The columns of a Parquet file are read one by one, so it is never in memory as a whole.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError

from verix_anon.client.arguments import is_path
from verix_anon.client.manifest import Manifest
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.tables import Read, Reading, Stored, read_table_as
from verix_anon.files.tables.table_sources import collected


class Columns(Mapping[str, pa.Array]):
    """Every column by name, in table order; each is made when it is asked for, and not kept."""

    def __init__(self, names: list[str], n_rows: int, own: Callable[[str], pa.Array]) -> None:
        self.names, self.n_rows, self.own = names, n_rows, own
        self.derived: Mapping[str, Derived] = {}

    def __getitem__(self, name: str) -> pa.Array:
        made = self.derived.get(name)
        return self.own(name) if made is None else made.values(name, self.own(made.source))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names


CHAPTERS = (
    *("A00-B99", "C00-D48", "D50-D90", "E00-E90", "F00-F99", "G00-G99", "H00-H59", "H60-H95"),
    *("I00-I99", "J00-J99", "K00-K93", "L00-L99", "M00-M99", "N00-N99", "O00-O99", "P00-P96"),
    *("Q00-Q99", "R00-R99", "S00-T98", "U00-U99", "V01-Y84", "Z00-Z99"),
)
"""The chapters of ICD-10, by their codes."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A column made from another one, beside it or in its place, when the table is read."""

    source: str
    way: str
    """`age`, `year`, `month`, `chapter`, `prefix` or `width`."""
    by: date | float | None = None
    """The day of an age, the characters of a prefix, the width of an interval."""

    @classmethod
    def of(cls, name: str, given: Mapping[str, object]) -> "Derived":
        """Read what the roles file says about a derived column; raises TableError."""
        match sorted(given.items()):
            case [("as", "age"), ("at", str(at)), ("from", str(source))]:
                try:
                    return cls(source, "age", date.fromisoformat(at))
                except ValueError:
                    raise TableError(f"[derived] {name!r}: at must be a day, not {at!r}") from None
            case [("as", "year" | "month" | "chapter" as way), ("from", str(source))]:
                return cls(source, way)
            case [("from", str(source)), ("prefix", int(by))] if by > 0:
                return cls(source, "prefix", by)
            case [("from", str(source)), ("width", int() | float() as by)] if by > 0:
                return cls(source, "width", by)
        raise TableError(
            f'[derived] {name!r} must be {{ from = "COLUMN", as = "age", at = "2024-12-31" }}, or'
            ' with as = "year", as = "month", as = "chapter", prefix = 2 or width = 10'
        )

    def values(self, name: str, array: pa.Array) -> pa.Array:
        """Make the column from the values of its source; raises TableError if it cannot."""
        try:
            is_coded = pa.types.is_dictionary(array.type)
            return self._values(array.dictionary_decode() if is_coded else array)
        except (pa.ArrowException, ValueError) as error:
            raise TableError(
                f"[derived] {name!r}: no {self.way} can be made of column {self.source!r},"
                f" of type {array.type} ({error})"
            ) from None

    def _values(self, array: pa.Array) -> pa.Array:
        if self.way in ("age", "year", "month"):
            days = array.cast(pa.date32())
            if isinstance(self.by, date):
                return _ages(days, self.by)
            return pc.year(days) if self.way == "year" else pc.strftime(days, "%Y-%m")
        if self.way == "width":
            low = pc.multiply(pc.floor(pc.divide(array.cast(pa.float64()), self.by)), self.by)
            is_whole = pa.types.is_integer(array.type) and isinstance(self.by, int)
            return low.cast(pa.int64()) if is_whole else low
        texts = array.cast(pa.string())
        if self.way == "prefix":
            return pc.utf8_slice_codeunits(texts, 0, self.by)
        return pa.array([None if t is None else _chapter(t) for t in texts.to_pylist()])


def _ages(born: pa.Array, at: date) -> pa.Array:
    day = pc.add(pc.multiply(pc.month(born), 100), pc.day(born))
    is_to_come = pc.greater(day, 100 * at.month + at.day)
    ages = pc.subtract(pc.subtract(at.year, pc.year(born)), is_to_come.cast(pa.int64()))
    if (pc.min(ages).as_py() or 0) < 0:
        raise ValueError(f"some dates are after {at}")
    return ages


def _chapter(code: str) -> str:
    """Return the chapter of a code, such as I00-I99 for I21.0."""
    found = CHAPTERS[max(bisect_right(CHAPTERS, code[:3] + "~") - 1, 0)]
    if not found[:3] <= code[:3] <= found[4:]:
        raise ValueError(f"{code[:20]!r} is not a code of ICD-10")
    return found


def with_derived(columns: Columns, derived: Mapping[str, Derived]) -> Columns:
    """Put derived columns behind their sources, or in their place if the names are the same."""
    if not derived or columns.derived:
        return columns
    for name, made in derived.items():
        if made.source not in columns:
            raise TableError(f"[derived] {name!r}: there is no column {made.source!r}")
        if name in columns and name != made.source:
            raise TableError(f"[derived] {name!r}: the table has a column of this name")
    names = [
        each
        for own in columns.names
        for each in (own, *(n for n, made in derived.items() if made.source == own != n))
    ]
    found = Columns(names, columns.n_rows, columns.own)
    found.derived = derived
    return found


def columns_of(table: object) -> Columns:
    """Return the columns of a table of any library; given columns are returned as they are.

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
    """Turn views of text or bytes into text or bytes: much of Arrow does not know views."""
    if array.type == pa.string_view():
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if array.type == pa.binary_view() else array


def index_warnings(table: object) -> tuple[str, ...]:
    """Warn of an index that does not merely number the rows; refuse one with a name."""
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
    return ("the index of the table is not a column, so it is neither sent nor published",)


class Owned(NamedTuple):
    """A table that can be read more than once."""

    table: object
    """In memory; for a Parquet file, an object that reads columns when they are asked for."""
    reading: Reading | None
    """How its file was read; None if it came from memory."""
    notes: tuple[str, ...]
    """Notes on how it was read; empty if the caller read it and has seen them."""


def owned(table: object, reading: Reading | None) -> Owned:
    """Return the table; a file is read as `reading` says."""
    if is_path(table):
        read = read_table_as(table, reading, whole=False).settled()
        return Owned(read.table, read.reading, read.notes)
    if isinstance(table, Read):
        return Owned(table.settled().table, table.reading, ())
    return Owned(collected(table), None, ())


def reading_of(manifest: Manifest) -> Reading | None:
    """Return how the table's file was read by prepare; None if the table came from memory."""
    if manifest.reading is None:
        return None
    return Reading.from_json(Fields(manifest.reading, "the manifest: reading", TableError))
