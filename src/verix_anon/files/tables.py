"""The owner's tables: CSV or Parquet, at a path or an fsspec URL (spec §2)."""

import csv
import gzip
import io
import os
import zlib
from base64 import b64encode
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from narwhals.exceptions import DuplicateError

from verix_anon.errors import TableError
from verix_anon.fields import shown
from verix_anon.files.aside import Aside, begun
from verix_anon.files.store import filesystem, is_url, path_text

__all__ = ["NULL_TOKENS", "check_table_name", "read_table", "table_aside", "write_table"]

NULL_TOKENS = ("", "NA", "N/A", "null", "NULL", "NaN")
CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_ERRORS = (pa.ArrowException, OSError, ValueError)
LARGEST_DICTIONARY = 1 << 30
CSV_ROWS = 1 << 16
LEADING_ZERO = r"^[+-]?0[0-9]"
# What a column is read as if every value matches: the pattern, and the types to try.
PATTERNS = (
    (r"^[+-]?[0-9]+$", (pa.int64(),)),
    (r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$", (pa.float64(),)),
    (r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", (pa.date32(),)),
    (r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]", (pa.timestamp("us"), pa.timestamp("us", tz="UTC"))),
)


def read_table(
    path: str | os.PathLike[str],
    *,
    null_tokens: Sequence[str] = NULL_TOKENS,
    leading_zeros_are_text: bool = True,
) -> pa.Table:
    """Read a CSV or Parquet file.

    A CSV column is a whole number, a number, a date or a time if every value is, and text
    otherwise; `null_tokens` are missing values; a column with a leading zero stays text.

    Raises:
        TableError: There is no such file, or it cannot be read as its name says.
    """
    name = path_text(path)
    lower = name.lower()
    try:
        if lower.endswith(PARQUET_SUFFIXES):
            with _open(name) as file:
                # pq.read_table would import what reads folders of files, and pandas with it.
                return pq.ParquetFile(file).read()
        if lower.endswith(CSV_SUFFIXES):
            text = _read_csv(name, null_tokens)
            columns = [_infer(column, leading_zeros_are_text) for column in text.columns]
            return pa.Table.from_arrays(columns, text.column_names)
    except FileNotFoundError:
        raise TableError(f"there is no file {name}") from None
    except UnicodeDecodeError:
        raise TableError(f"{name} is not UTF-8 text; save it again as UTF-8") from None
    except (*ARROW_ERRORS, csv.Error, EOFError, zlib.error) as error:
        raise TableError(f"{name} cannot be read ({_reason(error)})") from None
    raise TableError(
        f"{name}: the name of a table ends in {', '.join(CSV_SUFFIXES + PARQUET_SUFFIXES)}"
    )


def check_table_name(path: str | os.PathLike[str]) -> None:
    """Raise unless a table can be written under a name with that ending."""
    if not path_text(path).lower().endswith((".csv", ".tsv", *PARQUET_SUFFIXES)):
        raise TableError(f"{path}: the name of a table ends in .csv, .tsv, .parquet or .pq")


def write_table(table: object, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a pandas, polars or pyarrow table as CSV or Parquet, by its name.

    It appears complete or not at all.
    """
    with table_aside(table, path, overwrite=overwrite) as aside:
        aside.take_name()


@contextmanager
def table_aside(
    table: object,
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    expanded: Collection[str] = (),
) -> Iterator[Aside]:
    """The same, but the file takes its name in the block, if at all.

    Of the columns to be `expanded` a dictionary is only how they are held: readers see values.
    """
    check_table_name(path)
    try:
        arrow = _arrow_table(table)
    except (TypeError, DuplicateError, *ARROW_ERRORS):
        raise TableError(f"a table is pandas, polars or pyarrow, not {shown(table)}") from None
    lower = path_text(path).lower()
    with begun(path, overwrite=overwrite, folder=False, private=False) as aside:
        try:
            if lower.endswith(PARQUET_SUFFIXES):
                _write_parquet(arrow, aside.path, expanded)
            else:
                delimiter = "\t" if lower.endswith(".tsv") else ","
                _write_csv(arrow, aside.path, expanded, delimiter)
        except ARROW_ERRORS as error:
            raise TableError(f"{path} cannot be written ({_reason(error)})") from None
        aside.settle()
        yield aside


def _arrow_table(table: object) -> pa.Table:
    """Column by column: an index of pandas is no column."""
    frame = nw.from_native(table, eager_only=True)  # type: ignore[call-overload]
    columns = {name: frame[name] for name in frame.columns}
    if frame.implementation.is_pyarrow():
        # As they are: narwhals would copy them.
        return pa.table({name: column.to_native() for name, column in columns.items()})
    return pa.table({name: column.to_arrow() for name, column in columns.items()})


def _seen(schema: pa.Schema, expanded: Collection[str]) -> pa.Schema:
    """The types that readers see."""
    return pa.schema([f.with_type(f.type.value_type) if f.name in expanded else f for f in schema])


def _write_parquet(table: pa.Table, path: Path, expanded: Collection[str]) -> None:
    """What is to be expanded is left to readers: Parquet has dictionaries for every type."""
    seen = _seen(table.schema, expanded)
    with pq.ParquetWriter(
        path,
        table.schema,
        compression="zstd",
        store_schema=False,
        dictionary_pagesize_limit=LARGEST_DICTIONARY,
        # Least and greatest of such a column would take longer than the column.
        write_statistics=[name for name in table.column_names if name not in expanded] or False,
    ) as writer:
        writer.write_table(table)
        # Where Arrow itself looks for its own types; so the file does not name dictionaries.
        writer.add_key_value_metadata({"ARROW:schema": b64encode(seen.serialize())})


def _write_csv(table: pa.Table, path: Path, expanded: Collection[str], delimiter: str) -> None:
    seen = _seen(table.schema, expanded)
    options = pyarrow.csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
    with pyarrow.csv.CSVWriter(path, seen, write_options=options) as writer:
        # A part at a time, for the values of all may be too much to hold.
        for at in range(0, table.num_rows, CSV_ROWS):
            writer.write_table(table.slice(at, CSV_ROWS).cast(seen))


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _open(name: str) -> IO[bytes]:
    if is_url(name):
        fs, inner = filesystem(name)
        return fs.open(inner, "rb")  # type: ignore[no-any-return]
    if Path(name).is_dir():
        raise TableError(f"{name} is a folder, not a table")
    return Path(name).open("rb")


def _read_csv(name: str, null_tokens: Sequence[str]) -> pa.Table:
    """Every column as text; what else it may be is decided on whole columns."""
    is_packed = name.lower().endswith(".gz")
    delimiter = "\t" if name.lower().endswith((".tsv", ".tsv.gz")) else ","
    with _open(name) as file, _unpacked(file, is_packed) as plain:
        text = io.TextIOWrapper(plain, encoding="utf-8-sig", newline="")
        # Empty lines before it are passed over, as they are below.
        header = next(filter(None, csv.reader(text, delimiter=delimiter)), [])
    twice = [column for column in header if header.count(column) > 1]
    if twice:
        raise TableError(f"{name}: column name {twice[0]!r} occurs twice")
    if len(header) == 1 and any(other in header[0] for other in ";\t|"):
        shown = "a tab" if delimiter == "\t" else "a comma"
        raise TableError(
            f"{name} has a single column, {header[0][:60]!r}: a table like this is read with"
            f" {shown} between its columns; save it again in that form, or as Parquet"
        )
    with _open(name) as file, _unpacked(file, is_packed) as plain:
        return pyarrow.csv.read_csv(
            plain,
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()),
                null_values=list(null_tokens),
                strings_can_be_null=True,
            ),
        )


def _unpacked(file: IO[bytes], is_packed: bool) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(file)) if is_packed else file


def _infer(column: pa.ChunkedArray, leading_zeros_are_text: bool) -> pa.ChunkedArray:
    """The column as numbers or dates if every value is one, else as it is."""

    def matches(pattern: str) -> pa.ChunkedArray:
        return pc.match_substring_regex(column, pattern)

    if column.null_count == len(column):
        return column
    if leading_zeros_are_text and pc.any(matches(LEADING_ZERO)).as_py():
        return column
    for pattern, types in PATTERNS:
        if pc.all(matches(pattern)).as_py():
            plain = pc.replace_substring_regex(column, r"^\+", "")
            for arrow_type in types:
                with suppress(pa.ArrowInvalid):
                    return plain.cast(arrow_type)
            # What only looks like it, such as a whole number beyond 64 bits, stays text.
            return column
    return column
