"""Write tables as files that are complete under their name, or not there at all."""

import codecs
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from narwhals.exceptions import DuplicateError

from verix_anon.errors import TableError
from verix_anon.fields import shown
from verix_anon.files.atomic_write import Aside, begun
from verix_anon.files.optional_packages import need
from verix_anon.files.store import FilePath, path_text
from verix_anon.files.table_form import DECIMALS, Reading
from verix_anon.files.tables.file_kinds import PARQUET_SUFFIXES
from verix_anon.files.tables.table_sources import ARROW_ERRORS, collected, reason

FEATHER, SHEET, STATISTICS = (".feather", ".arrow"), (".xlsx",), (".sav", ".dta")
WRITTEN = (".csv", ".tsv", *PARQUET_SUFFIXES, *FEATHER, *SHEET, *STATISTICS)
LARGEST_DICTIONARY = 1 << 30
PART_ROWS = 1 << 16
MOST_ROWS, LEAST_ROWS = 1 << 20, 1 << 17
"""Of a row group of Parquet: its rows are encoded together."""
MARKED = "utf-8-sig"
"""UTF-8 with a mark in front, by which Excel knows it."""
DELIMITERS = (",", ";", "\t", "|")
WORDS = dict(zip(("comma", "semicolon", "tab", "bar"), DELIMITERS, strict=True))
WORDS |= {"point": ".", "utf-8-bom": MARKED}
"""What may be typed for the parts of a form."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a text table is written; as it stands here it is plain."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    @classmethod
    def like(cls, reading: Reading) -> "TextForm":
        """The form of the file that was read so; an unusual delimiter becomes a comma."""
        delimiter = reading.delimiter if reading.delimiter in DELIMITERS else None
        encoding = codecs.lookup(reading.encoding or "utf-8").name
        return cls(delimiter or ",", reading.decimal or ".", encoding)

    def changed(self, text: str) -> "TextForm":
        """The form that is asked for: a name, or PART=VALUE, or several with commas between.

        Raises:
            TableError: There is no such form.
        """
        found = self
        for part in filter(None, text.split(",")):
            name, _, value = part.partition("=")
            if part not in FORMS and name not in self.__slots__:
                raise TableError(f"there is no form {part!r} of a text table; {FORMS_ARE}")
            given = {name: WORDS.get(value, value)}
            found = FORMS[part] if part in FORMS else replace(found, **given)
        try:
            "".encode(found.encoding)
        except (LookupError, ValueError):
            raise TableError(f"there is no encoding {found.encoding[:40]!r}") from None
        if found.delimiter not in DELIMITERS or found.decimal not in DECIMALS:
            raise TableError(f"a text table cannot be written as {text!r}; {FORMS_ARE}")
        return found

    def holding(self, table: "Parts") -> "TextForm":
        """The same, but UTF-8 with a mark if the encoding does not have every character."""
        try:
            for part in () if self.encoding.startswith("utf") else table.each(PART_ROWS):
                columns = (_texts(column.combine_chunks()) for column in part.columns)
                texts = chain(part.column_names, *(pc.unique(c).to_pylist() for c in columns))
                "".join(filter(None, texts)).encode(self.encoding)
        except UnicodeEncodeError:
            return replace(self, encoding=MARKED)
        return self


FORMS: Mapping[str, TextForm] = {
    "plain": TextForm(),
    "excel": TextForm(encoding=MARKED),
    "excel-de": TextForm(";", ",", MARKED),
}
FORMS_ARE = f"give {', '.join(FORMS)}, or such as delimiter=semicolon,decimal=comma"


def check_table_name(path: FilePath) -> None:
    """Raise unless a table can be written under a name with that ending."""
    lower = path_text(path).lower()
    if not lower.endswith(WRITTEN):
        raise TableError(f"{path}: the name of a table to write ends in {', '.join(WRITTEN)}")
    if lower.endswith(SHEET):
        need("xlsxwriter", "excel", f"writing {path}")
    if lower.endswith(STATISTICS):
        need("pyreadstat", "statistics", f"writing {path}")
        need("polars", "statistics", f"writing {path}")


def write_table(table: object, path: FilePath, *, overwrite: bool = False) -> None:
    """Write a table as CSV, Parquet, Feather, Excel, SPSS or Stata, by its name.

    It appears complete or not at all.

    Examples:
        >>> verix_anon.write_table(verix_anon.datasets.census(100), "census.parquet")
    """
    with table_aside(table, path, overwrite=overwrite) as aside:
        aside.take_name()


@dataclass(frozen=True, slots=True)
class Parts:
    """A table that is made as it is written, for all of it may be too much to hold."""

    n_rows: int
    part: Callable[[int, int], pa.Table]
    """The rows from one to before another."""

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self.part(0, 0).schema

    def each(self, n_rows: int) -> Iterator[pa.Table]:
        """So many rows at a time; once, without any, if there are none."""
        for at in range(0, max(self.n_rows, 1), n_rows):
            yield self.part(at, min(at + n_rows, self.n_rows))


@contextmanager
def table_aside(
    table: object,
    path: FilePath,
    *,
    overwrite: bool,
    expanded: Collection[str] = (),
    form: TextForm = FORMS["plain"],
    sheets: Callable[[], Mapping[str, Sequence[Sequence[str]]]] = dict,
) -> Iterator[Aside]:
    """The same, but the file takes its name in the block, if at all.

    Of the columns to be `expanded` a dictionary is only how they are held: readers see values.
    A text table has the given form; a .tsv file has tabs in any case. An Excel file has the
    `sheets` of text beside the table.
    """
    check_table_name(path)
    try:
        parts = table if isinstance(table, Parts) else _parts_of(table)
    except (TypeError, DuplicateError, *ARROW_ERRORS):
        raise TableError(f"a table is pandas, polars or pyarrow, not {shown(table)}") from None
    with begun(path, overwrite=overwrite, folder=False, private=False) as aside:
        try:
            if path_text(path).lower().endswith(SHEET):
                from verix_anon.files.tables.spreadsheets import write_sheet

                write_sheet(parts.part(0, parts.n_rows), aside.path, sheets())
            else:
                _write(parts, aside.path, path_text(path).lower(), expanded, form)
        except TableError as error:
            raise TableError(f"{path} cannot be written: {error}") from None
        except ARROW_ERRORS as error:
            raise TableError(f"{path} cannot be written ({reason(error)})") from None
        aside.settle()
        yield aside


def _write(table: Parts, path: Path, lower: str, expanded: Collection[str], form: TextForm) -> None:
    if lower.endswith(PARQUET_SUFFIXES):
        _write_parquet(table, path, expanded)
    elif lower.endswith(FEATHER):
        seen = _seen(table.schema, expanded)
        options = pa.ipc.IpcWriteOptions(compression="zstd", unify_dictionaries=True)
        with pa.ipc.new_file(path, seen, options=options) as writer:
            for part in table.each(PART_ROWS):
                writer.write_table(part.cast(seen))
    elif lower.endswith(STATISTICS):
        from verix_anon.files.tables.statistics_files import write_statistics

        write_statistics(table.part(0, table.n_rows), path, lower[-4:])
    else:
        _write_csv(table, path, replace(form, delimiter="\t") if lower.endswith(".tsv") else form)


def _parts_of(table: object) -> Parts:
    """Column by column: an index of pandas is not a column."""
    frame = nw.from_native(collected(table), eager_only=True)  # type: ignore[call-overload]
    # Those of pyarrow as they are: narwhals would copy them.
    is_arrow = frame.implementation.is_pyarrow()
    columns = {n: frame[n].to_native() if is_arrow else frame[n].to_arrow() for n in frame.columns}
    found = pa.table(columns)
    return Parts(found.num_rows, lambda begin, end: found.slice(begin, end - begin))


def _seen(schema: pa.Schema, expanded: Collection[str]) -> pa.Schema:
    """The types that readers see."""
    return pa.schema([f.with_type(f.type.value_type) if f.name in expanded else f for f in schema])


def _write_parquet(table: Parts, path: Path, expanded: Collection[str]) -> None:
    """What is to be expanded is left to readers: Parquet has dictionaries for every type."""
    schema = table.schema
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        store_schema=False,
        dictionary_pagesize_limit=LARGEST_DICTIONARY,
        # Least and greatest of such a column would take longer than the column.
        write_statistics=[name for name in schema.names if name not in expanded] or False,
    ) as writer:
        # Rows are held to be encoded: fewer, the more of their columns are plain text.
        n_rows = max(LEAST_ROWS, MOST_ROWS // max(1, sum(map(_is_text, schema.types))))
        for part in table.each(n_rows):
            writer.write_table(part, n_rows)
        # Where Arrow itself looks for its own types; so the file does not name dictionaries.
        writer.add_key_value_metadata(
            {"ARROW:schema": b64encode(_seen(schema, expanded).serialize())}
        )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _write_csv(table: Parts, path: Path, form: TextForm) -> None:
    """Quotes only where they are needed: Arrow's own writer puts them around all text."""
    between = pa.scalar(form.delimiter, pa.large_string())
    with path.open("w", encoding=form.encoding, newline="") as file:
        file.write(_line(_quoted(pa.array(table.schema.names), form), form.delimiter))
        for part in table.each(PART_ROWS) if table.n_rows else ():
            cells = [_quoted(column.combine_chunks(), form) for column in part.columns]
            if len(cells) == 1:
                # An empty line would be no row.
                cells = [pc.if_else(pc.equal(cells[0], ""), '""', cells[0])]
            file.write(_line(pc.binary_join_element_wise(*cells, between), "\n"))


def _line(texts: pa.Array, between: str) -> str:
    """All texts as one, and the end of a line."""
    lists = pa.LargeListArray.from_arrays(pa.array([0, len(texts)], pa.int64()), texts)
    joined = pc.binary_join(lists, pa.scalar(between, pa.large_string()))[0]
    return f"{joined.as_py()}\n"


def _texts(column: pa.Array) -> pa.Array:
    """Values as text; of a dictionary each that is in it, whichever rows have it."""
    is_coded = pa.types.is_dictionary(column.type)
    return (column.dictionary if is_coded else column).cast(pa.large_string())


def _quoted(column: pa.Array, form: TextForm) -> pa.Array:
    """Values as text; nothing for a missing one, and quotes for an empty one."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        # Each text once, however many rows have it.
        return _quoted(column.dictionary, form).take(column.indices).fill_null("")
    texts = _texts(column)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        texts = pc.replace_substring(texts, ".", form.decimal)
    if not _is_text(kind) and form.delimiter != form.decimal:
        return texts.fill_null("")
    needs = pc.match_substring_regex(texts, rf'["\r\n{form.delimiter}]|^\s|\s$|^$')
    if pc.any(needs).as_py():
        doubled = pc.replace_substring(texts, '"', '""')
        quote = pa.scalar('"', pa.large_string())
        within = pc.binary_join_element_wise(quote, doubled, quote, pa.scalar("", quote.type))
        texts = pc.if_else(needs, within, texts)
    return texts.fill_null("")
