"""Text tables: every column as text, and then as what all its values are (spec §2)."""

import csv
import gzip
import io
from contextlib import suppress
from typing import IO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from verix_anon.errors import TableError
from verix_anon.files.tables.opening import opened
from verix_anon.files.tables.reading import Read, Reading

__all__ = ["read_text_table"]

LEADING_ZERO = r"^[+-]?0[0-9]"
# What a column is read as if every value matches: the pattern, and the types to try.
PATTERNS = (
    (r"^[+-]?[0-9]+$", (pa.int64(),)),
    (r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$", (pa.float64(),)),
    (r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", (pa.date32(),)),
    (r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]", (pa.timestamp("us"), pa.timestamp("us", tz="UTC"))),
)


def read_text_table(name: str, reading: Reading) -> Read:
    """Read a text table, with columns as numbers or dates where every value is one."""
    try:
        text = _read_csv(name, reading)
    except UnicodeDecodeError:
        raise TableError(f"{name} is not UTF-8 text; save it again as UTF-8") from None
    columns = [_infer(column, reading.leading_zeros_are_text) for column in text.columns]
    return Read(pa.Table.from_arrays(columns, text.column_names), reading)


def _read_csv(name: str, reading: Reading) -> pa.Table:
    """Every column as text; what else it may be is decided on whole columns."""
    is_packed = name.lower().endswith(".gz")
    delimiter = "\t" if name.lower().endswith((".tsv", ".tsv.gz")) else ","
    with opened(name) as file, _unpacked(file, is_packed) as plain:
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
    with opened(name) as file, _unpacked(file, is_packed) as plain:
        return pyarrow.csv.read_csv(
            plain,
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()),
                null_values=list(reading.null_tokens),
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
