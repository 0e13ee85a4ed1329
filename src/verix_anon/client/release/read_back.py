"""Read a released table back: intervals as numbers, sets as lists, as its dictionary says.

Only the table and the dictionary beside it are read.
"""

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from verix_anon.client.release.cells import ANY, MISSING
from verix_anon.client.release.published import FORMAT, OURS, OutputFiles, schema_path, sheets_of
from verix_anon.client.release.representation import Representation
from verix_anon.errors import TableError
from verix_anon.fields import Fields, to_json
from verix_anon.files.store import FilePath, path_text
from verix_anon.files.tables import Reading, TextForm, read_table
from verix_anon.files.tables.file_kinds import SHEET_SUFFIXES, TABLE
from verix_anon.files.tables.table_writer import Parts
from verix_anon.protocol.contract import Kind, Unit
from verix_anon.protocol.tree import NUMPY_UNITS

if TYPE_CHECKING:
    import pandas as pd


PERIOD = re.compile(r"\(?(-?\d{4,})(?:-(?:M(\d\d)|Q([1-4])))?\)?")
LABEL = r'(?:"(?:[^"\\]|\\.)*"|[^,{}"]+)'
EACH = re.compile(f"({LABEL})(?:, |$)")
SET = re.compile(rf"\{{{LABEL}(?:, {LABEL})*\}}")
AND_MORE = re.compile(SET.pattern + r" and [\d,]+ more")
RANGE = re.compile(rf"({LABEL}?)\.\.({LABEL})")
End = float | date | datetime | None
OpenEnds = tuple[End, End]
"""The values of an end that is open below, and of one that is open above."""
Parsed = TypeVar("Parsed")
OR_MISSING = f" or {MISSING}"
TEXT_SUFFIXES = (".csv", ".tsv")
CASTS = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "date": pa.date32()}
# A date cannot be infinite, and pandas refuses an interval with only one end.
OPEN_DATES = {"columns": (None, None), "pandas": (datetime.min, datetime.max)}
LARGEST = 10_000_000
"""How many characters a dictionary may have."""


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

    An interval becomes two columns, `NAME_min` and `NAME_max`, which are infinite or null where an
    end is open. A set becomes a list of the labels that are possible. A name of a hierarchy stays
    text. A column `NAME_missing` is true where values are missing in a class.

    Args:
        path: The table that release() wrote.
        intervals: `columns`: an Arrow table with two columns each; `pandas`: a pandas table in
            which each is one column of Interval, closed at both ends; an open end of a date is the
            first or the last moment that Python knows.

    Raises:
        TableError: There is no such table or dictionary, or a cell does not read as it says.

    Examples:
        >>> table = verix_anon.read_released("released.csv")
        >>> "age_min" in table.column_names
        True
    """
    if intervals not in OPEN_DATES:
        raise TableError(f"intervals is columns or pandas, not {intervals!r}")
    name = path_text(path)
    dictionary = Dictionary.beside(name)
    table = dictionary.table(name)
    columns: dict[str, pa.Array] = {}
    spans: list[str] = []
    for field in dictionary.fields:
        column = table[field.text("name")].combine_chunks()
        found = _typed(field, column, OPEN_DATES[intervals], dictionary.form.decimal)
        if f"{field.text('name')}_min" in found:
            spans.append(field.text("name"))
        columns |= found
    made = pa.table(columns)
    return made if intervals == "columns" else _with_intervals(made, spans)


@dataclass(frozen=True, slots=True)
class Dictionary:
    """What `NAME.schema.json` says about a released table."""

    fields: Sequence[Fields]
    form: TextForm
    text: str

    @classmethod
    def beside(cls, table: str) -> "Dictionary":
        """Read the dictionary of a table; raises TableError."""
        path = schema_path(table)
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise TableError(
                f"there is no dictionary {path}; release writes it beside a table"
            ) from None
        if len(text) > LARGEST:
            raise TableError(f"{path} is too long for the dictionary of a table")
        document = Fields.parse(text.encode(), path, TableError)
        own = document.inner(OURS) if document.has(OURS) else document
        if own.text("format") != FORMAT:
            raise TableError(f"{path} is not a dictionary of the format {FORMAT}")
        delimiter = document.inner("dialect").text("delimiter")
        form = TextForm(delimiter, own.text("decimal"), document.text("encoding")).changed("")
        fields = [
            replace(each, values={**each.values, **each.inner(OURS).values})
            for each in document.each("fields")
        ]
        return cls(fields, form, text)

    def table(self, name: str) -> pa.Table:
        """Read the table as it is in its file; raises TableError."""
        if not name.lower().endswith(TEXT_SUFFIXES):
            is_sheet = name.lower().endswith(SHEET_SUFFIXES)
            found = read_table(name, Reading(sheet=TABLE) if is_sheet else None)
        else:
            try:
                found = self._text_table(name)
            except (pa.ArrowException, OSError, UnicodeError) as error:
                raise TableError(f"{name} cannot be read ({error})") from None
        if found.column_names != [field.text("name") for field in self.fields]:
            raise TableError(f"{name} has other columns than its dictionary")
        wanted = [CASTS.get(field.text("type")) for field in self.fields]
        columns = [
            column if kind is None else column.cast(kind)
            for column, kind in zip(found.columns, wanted, strict=True)
        ]
        return pa.table(columns, found.column_names)

    def marked(self, table: pa.Table, mark: str) -> pa.Table:
        """Return the table with this decimal mark in intervals of numbers, which are text."""
        for at, field in enumerate(self.fields):
            is_text = field.has("representation") and field.text("type") == "string"
            if is_text and field.choice("kind", Kind) is Kind.NUMERIC:
                # The dots between two numbers stay.
                pattern = rf"(\d){re.escape(self.form.decimal)}(\d)"
                texts = pc.replace_substring_regex(
                    table.column(at).cast(pa.string()), pattern, rf"\1{mark}\2"
                )
                table = table.set_column(at, table.column_names[at], texts)
        return table

    def text_in(self, form: TextForm) -> str:
        """Return the dictionary of the same table in another form."""
        if form == self.form:
            return self.text
        document = json.loads(self.text)
        document[OURS]["decimal"] = form.decimal
        document["dialect"]["delimiter"] = form.delimiter
        document["encoding"] = form.encoding
        for each in document["fields"]:
            each.pop("decimalChar", None)
            if each["type"] == "number" and form.decimal != ".":
                each["decimalChar"] = form.decimal
        return to_json(document)

    def _text_table(self, name: str) -> pa.Table:
        form = self.form
        types = {f.text("name"): CASTS.get(f.text("type"), pa.string()) for f in self.fields}
        return pyarrow.csv.read_csv(
            name,
            read_options=pyarrow.csv.ReadOptions(encoding=form.encoding),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter="\t" if name.lower().endswith(".tsv") else form.delimiter,
                newlines_in_values=True,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                decimal_point=form.decimal,
            ),
        )


def convert_released(
    path: FilePath, out: FilePath, *, form: str = "", overwrite: bool = False
) -> None:
    """Write a released table as another kind of file: the same cells, with their dictionary.

    Args:
        path: The table that release() wrote.
        out: The other file, by its ending.
        form: How a text table is written, as for release(); empty: as the table was.
        overwrite: Replace files that are there.

    Raises:
        TableError: The table cannot be read, or a file cannot be written.
    """
    name = path_text(path)
    files = OutputFiles.check(out, None, (path,), overwrite)
    known = Dictionary.beside(name)
    table, wanted = known.table(name), known.form.changed(form)
    if form:
        table = known.marked(table, wanted.decimal)
        wanted = wanted.holding(Parts(table.num_rows, lambda at, to: table.slice(at, to - at)))
    text = known.text_in(wanted)
    with (
        files.table_aside(table, wanted, lambda: sheets_of(text, None)) as aside,
        files.texts_aside("", text.removesuffix("\n")) as beside,
    ):
        for each in filter(None, (*beside, aside)):
            each.take_name()


def _typed(
    field: Fields, column: pa.Array, open_dates: OpenEnds, decimal: str
) -> dict[str, pa.Array]:
    name = field.text("name")
    if not field.has("representation") or field.text("type") != "string":
        return {name: column}
    representation = field.choice("representation", Representation)
    if representation not in (Representation.INTERVAL, Representation.SET):
        return {name: column}
    texts = column.cast(pa.string()).dictionary_encode()
    cells = texts.dictionary.to_pylist()
    said = [None if cell == MISSING else cell.removesuffix(OR_MISSING) for cell in cells]
    found = _parsed(field, said, open_dates, decimal)
    if field.has("missing"):
        is_missing = [cell == MISSING or cell.endswith(OR_MISSING) for cell in cells]
        found[f"{name}_{MISSING}"] = pa.array(is_missing)
    return {each: array.take(texts.indices) for each, array in found.items()}


def _parsed(
    field: Fields, texts: Sequence[str | None], open_dates: OpenEnds, decimal: str
) -> dict[str, pa.Array]:
    """Return the columns for a quasi-identifier's distinct cells; None where all is missing."""
    name, kind = field.text("name"), field.choice("kind", Kind)
    if kind is Kind.CATEGORICAL and field.has("hierarchy"):
        return {name: pa.array(texts, pa.string())}
    if kind is Kind.CATEGORICAL:
        labels = LabelSets(field.texts("levels"), is_ordered=field.flag("ordered"))
        lists = [None if text is None else _read(name, text, labels.read) for text in texts]
        return {name: pa.array(lists, pa.list_(pa.string()))}
    read: Callable[[str, bool], End] = number_end
    open_ends: OpenEnds = (-math.inf, math.inf)
    made = pa.float64()
    if kind is Kind.NUMERIC:
        texts = [text and text.replace(decimal, ".") for text in texts]
    else:
        unit = field.choice("unit", Unit)
        read, open_ends = partial(_date_end, unit), open_dates
        made = pa.date32() if unit is Unit.DAY else pa.timestamp("us")
    pairs = [
        (None, None)
        if text is None
        else _read(name, text, lambda cell: interval(cell, read, open_ends))
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
    for name in (f"{span}_{end}" for span in spans for end in ("min", "max")):
        if pa.types.is_date(table[name].type):
            at = table.column_names.index(name)
            table = table.set_column(at, name, table[name].cast(pa.timestamp("us")))
    frame = table.to_pandas()
    found = {}
    for name in frame.columns:
        owner = next((s for s in spans if name in (f"{s}_min", f"{s}_max")), None)
        if owner is None:
            found[name] = frame[name]
        elif owner not in found:
            low, high = (pd.Series(frame[f"{owner}_{end}"]) for end in ("min", "max"))
            intervals = pd.arrays.IntervalArray.from_arrays(low, high, closed="both")
            found[owner] = pd.Series(intervals)
    return pd.DataFrame(found)


def number_end(text: str, is_last: bool) -> End:
    """Read a number, which is the same at either end."""
    return float(text.strip("()"))


def _date_end(unit: Unit, text: str, is_last: bool) -> End:
    """Read a date, or a period's first or last moment; ValueError if Python has no such date."""
    period = PERIOD.fullmatch(text)
    kind = NUMPY_UNITS[unit]
    if period is None:
        return _moment(np.array([text.strip("()")], f"M8[{kind}]"))
    year, month, quarter = period.groups()
    begin = 12 * (int(year) - 1970) + int(month or 3 * int(quarter or 1) - 2) - 1
    length = 1 if month else 3 if quarter else 12
    if not is_last:
        return _moment(np.array([begin], "M8[M]").astype(f"M8[{kind}]"))
    return _moment(np.array([begin + length], "M8[M]").astype(f"M8[{kind}]") - 1)


def _moment(value: "npt.NDArray[np.datetime64]") -> date | datetime:
    found = value.item()
    if not isinstance(found, date):
        raise ValueError("beyond the years 1 to 9999")
    return found


def interval(text: str, read: Callable[[str, bool], End], open_ends: OpenEnds) -> OpenEnds:
    """Return the least and the greatest value that a cell leaves possible."""
    if text == ANY:
        return open_ends
    below, beyond = open_ends
    low, _, high = text.partition("..")
    high = high or low
    return (
        below if low.startswith("<=") else read(low.removeprefix(">="), False),
        beyond if high.startswith(">=") else read(high.removeprefix("<="), True),
    )


class LabelSets:
    """Reads sets and ranges of labels, in a column whose labels and their order are known."""

    def __init__(self, levels: Sequence[str], *, is_ordered: bool) -> None:
        self.levels = list(levels)
        self.is_ordered = is_ordered
        self.place = {label: i for i, label in enumerate(levels)}

    def read(self, text: str) -> list[str]:
        """Return the labels that a cell leaves possible; ValueError if it is not such a cell."""
        if text == ANY:
            return self.levels
        if text.startswith("not "):
            left_out = {*self._set(text.removeprefix("not "))}
            return [label for label in self.levels if label not in left_out]
        if text.startswith("{"):
            # The cell does not say which others it means.
            return self.levels if AND_MORE.fullmatch(text) else self._set(text)
        found = RANGE.fullmatch(text) if self.is_ordered else None
        if found is None:
            return [self._known(text)]
        low, high = (self.place[self._known(end)] for end in found.groups())
        return self.levels[low : high + 1]

    def _set(self, text: str) -> list[str]:
        if not SET.fullmatch(text):
            raise ValueError(text)
        return [self._known(label) for label in EACH.findall(text[1:-1])]

    def _known(self, text: str) -> str:
        label = json.loads(text) if text.startswith('"') else text
        if label not in self.place:
            raise ValueError(label)
        return str(label)
