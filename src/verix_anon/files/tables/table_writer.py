"""Tables as files: complete under their name, or not there at all."""

from base64 import b64encode
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
from verix_anon.files.tables.file_kinds import PARQUET_SUFFIXES
from verix_anon.files.tables.table_sources import ARROW_ERRORS, collected, reason

FEATHER, SHEET, STATISTICS = (".feather", ".arrow"), (".xlsx",), (".sav", ".dta")
WRITTEN = (".csv", ".tsv", *PARQUET_SUFFIXES, *FEATHER, *SHEET, *STATISTICS)
LARGEST_DICTIONARY = 1 << 30
PART_ROWS = 1 << 16
MOST_ROWS, LEAST_ROWS = 1 << 20, 1 << 17
"""Of a row group of Parquet: its rows are encoded together."""


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
    table: object, path: FilePath, *, overwrite: bool, expanded: Collection[str] = ()
) -> Iterator[Aside]:
    """The same, but the file takes its name in the block, if at all.

    Of the columns to be `expanded` a dictionary is only how they are held: readers see values.
    """
    check_table_name(path)
    try:
        parts = table if isinstance(table, Parts) else _parts_of(table)
    except (TypeError, DuplicateError, *ARROW_ERRORS):
        raise TableError(f"a table is pandas, polars or pyarrow, not {shown(table)}") from None
    with begun(path, overwrite=overwrite, folder=False, private=False) as aside:
        try:
            _write(parts, aside.path, path_text(path).lower(), expanded)
        except TableError as error:
            raise TableError(f"{path} cannot be written: {error}") from None
        except ARROW_ERRORS as error:
            raise TableError(f"{path} cannot be written ({reason(error)})") from None
        aside.settle()
        yield aside


def _write(table: Parts, path: Path, lower: str, expanded: Collection[str]) -> None:
    if lower.endswith(PARQUET_SUFFIXES):
        _write_parquet(table, path, expanded)
    elif lower.endswith(FEATHER):
        seen = _seen(table.schema, expanded)
        options = pa.ipc.IpcWriteOptions(compression="zstd", unify_dictionaries=True)
        with pa.ipc.new_file(path, seen, options=options) as writer:
            for part in table.each(PART_ROWS):
                writer.write_table(part.cast(seen))
    elif lower.endswith(SHEET):
        from verix_anon.files.tables.spreadsheets import write_sheet

        write_sheet(table.part(0, table.n_rows), path)
    elif lower.endswith(STATISTICS):
        from verix_anon.files.tables.statistics_files import write_statistics

        write_statistics(table.part(0, table.n_rows), path, lower[-4:])
    else:
        _write_csv(table, path, "\t" if lower.endswith(".tsv") else ",")


def _parts_of(table: object) -> Parts:
    """Column by column: an index of pandas is no column."""
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


def _write_csv(table: Parts, path: Path, delimiter: str) -> None:
    """Quotes only where they are needed: Arrow's own writer puts them around all text."""
    between = pa.scalar(delimiter, pa.large_string())
    with path.open("wb") as file:
        file.write(_line(_quoted(pa.array(table.schema.names), delimiter), delimiter))
        for part in table.each(PART_ROWS) if table.n_rows else ():
            cells = [_quoted(column.combine_chunks(), delimiter) for column in part.columns]
            if len(cells) == 1:
                # An empty line would be no row.
                cells = [pc.if_else(pc.equal(cells[0], ""), '""', cells[0])]
            file.write(_line(pc.binary_join_element_wise(*cells, between), "\n"))


def _line(texts: pa.Array, between: str) -> bytes:
    """All texts as one, and the end of a line."""
    lists = pa.LargeListArray.from_arrays(pa.array([0, len(texts)], pa.int64()), texts)
    joined = pc.binary_join(lists, pa.scalar(between, pa.large_string()))[0]
    return b"%b\n" % joined.as_buffer()


def _quoted(column: pa.Array, delimiter: str) -> pa.Array:
    """Values as text; nothing for a missing one, and quotes for an empty one."""
    if pa.types.is_dictionary(column.type):
        # Each text once, however many rows have it.
        return _quoted(column.dictionary, delimiter).take(column.indices).fill_null("")
    if not _is_text(column.type):
        return column.cast(pa.large_string()).fill_null("")
    texts = column.cast(pa.large_string())
    needs = pc.match_substring_regex(texts, rf'["\r\n{delimiter}]|^\s|\s$|^$')
    if pc.any(needs).as_py():
        doubled = pc.replace_substring(texts, '"', '""')
        quote = pa.scalar('"', pa.large_string())
        within = pc.binary_join_element_wise(quote, doubled, quote, pa.scalar("", quote.type))
        texts = pc.if_else(needs, within, texts)
    return texts.fill_null("")
