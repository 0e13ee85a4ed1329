"""A released table read back: intervals as numbers, sets as lists, by its dictionary.

Nothing is looked up but the table and the dictionary beside it.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import pyarrow as pa
import pyarrow.csv

from verix_anon.client.release.cells import MISSING
from verix_anon.client.release.cells.parsing import Dates, Ends, Labels, Numbers, interval
from verix_anon.client.release.present import Representation
from verix_anon.client.release.schema import FORMAT, schema_path
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.store import path_text
from verix_anon.files.tables import read_table
from verix_anon.protocol.contract import Kind, Unit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_released"]

Parsed = TypeVar("Parsed")

OR_MISSING = f" or {MISSING}"
TEXT_SUFFIXES = (".csv", ".tsv")
CASTS = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "date": pa.date32()}
LARGEST = 10_000_000
"""Characters of a dictionary."""


@overload
def read_released(
    path: str | os.PathLike[str], *, intervals: Literal["columns"] = "columns"
) -> pa.Table: ...
@overload
def read_released(
    path: str | os.PathLike[str], *, intervals: Literal["pandas"]
) -> "pd.DataFrame": ...
def read_released(path: str | os.PathLike[str], *, intervals: str = "columns") -> Any:
    """Read a released table with its dictionary, `NAME.schema.json` beside it.

    An interval becomes two columns, `NAME_min` and `NAME_max`, infinite or null where an end is
    open, and a set a list of the labels that are possible; a name of a hierarchy stays text.
    Where values are missing in a class, a column `NAME_missing` is true.

    Args:
        path: The table that release() wrote.
        intervals: `columns`: an Arrow table with two columns each; `pandas`: a pandas table in
            which each is one column of Interval, closed at both ends.

    Raises:
        TableError: There is no such table or dictionary, or a cell does not read as it says.
    """
    if intervals not in ("columns", "pandas"):
        raise TableError(f"intervals is columns or pandas, not {intervals!r}")
    name = path_text(path)
    fields = _fields(schema_path(name))
    table = _table(name, fields)
    columns: dict[str, pa.Array] = {}
    spans: list[str] = []
    for field in fields:
        column = table[field.text("name")].combine_chunks()
        found = _typed(field, column)
        if f"{field.text('name')}_min" in found:
            spans.append(field.text("name"))
        columns |= found
    made = pa.table(columns)
    return made if intervals == "columns" else _with_intervals(made, spans)


def _fields(path: str) -> list[Fields]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise TableError(
            f"there is no dictionary {path}; release writes it beside a table"
        ) from None
    if len(text) > LARGEST:
        raise TableError(f"{path} is too long for the dictionary of a table")
    document = Fields.parse(text.encode(), path, TableError)
    if document.text("format") != FORMAT:
        raise TableError(f"{path} is not a dictionary of the format {FORMAT}")
    return list(document.each("fields"))


def _table(name: str, fields: Sequence[Fields]) -> pa.Table:
    if not name.lower().endswith(TEXT_SUFFIXES):
        found = read_table(name)
    else:
        try:
            found = _text_table(name, fields)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{name} cannot be read ({error})") from None
    wanted = [field.text("name") for field in fields]
    if found.column_names != wanted:
        raise TableError(f"{name} has other columns than its dictionary")
    return found


def _text_table(name: str, fields: Sequence[Fields]) -> pa.Table:
    delimiter = "\t" if name.lower().endswith(".tsv") else ","
    types = {
        field.text("name"): pa.string()
        if field.has("representation")
        else CASTS.get(field.text("type"), pa.string())
        for field in fields
    }
    return pyarrow.csv.read_csv(
        name,
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True
        ),
    )


def _typed(field: Fields, column: pa.Array) -> dict[str, pa.Array]:
    name = field.text("name")
    if not field.has("representation"):
        return {name: column}
    if field.text("type") != "string":
        wanted = CASTS.get(field.text("type"))
        return {name: column if wanted is None else column.cast(wanted)}
    representation = field.choice("representation", Representation)
    if representation not in (Representation.INTERVAL, Representation.SET):
        return {name: column}
    texts = column.cast(pa.string()).dictionary_encode()
    cells = [_Cell.of(text) for text in texts.dictionary.to_pylist()]
    found = _parsed(field, [cell.text for cell in cells])
    if field.has("missing"):
        found[f"{name}_{MISSING}"] = pa.array([cell.is_missing for cell in cells])
    return {each: array.take(texts.indices) for each, array in found.items()}


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str | None
    """None where all is missing."""
    is_missing: bool

    @classmethod
    def of(cls, text: str) -> "_Cell":
        if text == MISSING:
            return cls(None, True)
        return cls(text.removesuffix(OR_MISSING), text.endswith(OR_MISSING))


def _parsed(field: Fields, texts: Sequence[str | None]) -> dict[str, pa.Array]:
    """The columns of a quasi-identifier's distinct cells; None where all is missing."""
    name, kind = field.text("name"), field.choice("kind", Kind)
    if kind is Kind.CATEGORICAL and field.has("hierarchy"):
        return {name: pa.array(texts, pa.string())}
    if kind is Kind.CATEGORICAL:
        labels = Labels(field.texts("levels"), is_ordered=field.flag("ordered"))
        lists = [None if text is None else _read(name, text, labels.read) for text in texts]
        return {name: pa.array(lists, pa.list_(pa.string()))}
    ends: Ends = Numbers()
    made = pa.float64()
    if kind is Kind.DATETIME:
        unit = field.choice("unit", Unit)
        ends, made = Dates(unit), pa.date32() if unit is Unit.DAY else pa.timestamp("us")
    pairs = [
        (None, None) if text is None else _read(name, text, lambda cell: interval(cell, ends))
        for text in texts
    ]
    return {
        f"{name}_min": pa.array([low for low, _ in pairs], made),
        f"{name}_max": pa.array([high for _, high in pairs], made),
    }


def _read(name: str, text: str, read: Callable[[str], Parsed]) -> Parsed:
    try:
        return read(text)
    except ValueError:
        raise TableError(
            f"column {name!r} has a cell {text[:60]!r}, which does not read as its dictionary says"
        ) from None


def _with_intervals(table: pa.Table, spans: Sequence[str]) -> "pd.DataFrame":
    try:
        import pandas as pd
    except ImportError:
        raise TableError("intervals of pandas need pandas, which is not installed") from None
    frame = table.to_pandas()
    found = {}
    for name in frame.columns:
        owner = next((s for s in spans if name in (f"{s}_min", f"{s}_max")), None)
        if owner is None:
            found[name] = frame[name]
        elif owner not in found:
            low, high = (pd.Series(frame[f"{owner}_{end}"]) for end in ("min", "max"))
            if str(low.dtype) == "object":
                low, high = pd.to_datetime(low), pd.to_datetime(high)
            intervals = pd.arrays.IntervalArray.from_arrays(low, high, closed="both")
            found[owner] = pd.Series(intervals)
    return pd.DataFrame(found)
