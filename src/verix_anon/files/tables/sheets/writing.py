"""A table as an Excel file: values alone, and text that is never read as anything else."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xlsxwriter

from verix_anon.errors import TableError
from verix_anon.files.tables.plain import plain_values

__all__ = ["write_sheet"]

MOST_ROWS, MOST_COLUMNS, MOST_CHARACTERS = 1 << 20, 1 << 14, 32_767
ROWS = 1 << 14
# The first day that Excel counts right: it has a 29 February 1900.
FIRST = dt.datetime(1900, 3, 1)
# A date of writing would tell when; this one tells nothing.
WRITTEN = dt.datetime(2000, 1, 1)
DAY, MOMENT = "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss.000"
ELSE = "publish it as .parquet or .csv"


def write_sheet(table: pa.Table, path: Path) -> None:
    """Write one sheet with a header; raises TableError if it does not hold the table."""
    if table.num_rows >= MOST_ROWS or table.num_columns > MOST_COLUMNS:
        raise TableError(
            f"a sheet of Excel holds {MOST_ROWS - 1:,} rows below its header and {MOST_COLUMNS:,}"
            f" columns; this table has {table.num_rows:,} and {table.num_columns:,}: {ELSE}"
        )
    options = {"constant_memory": True, "default_date_format": MOMENT, "in_memory": False}
    with xlsxwriter.Workbook(str(path), options) as workbook:
        workbook.set_properties({"created": WRITTEN})
        sheet = workbook.add_worksheet("Table")
        for j, name in enumerate(table.column_names):
            sheet.write_string(0, j, name)
        columns = [plain_values(n, table[n], FIRST) for n in table.column_names]
        for name, column in zip(table.column_names, columns, strict=True):
            _check_lengths(name, column)
        writers = [_writer(workbook, sheet, column.type) for column in columns]
        # Row by row, as the file has them; some at a time, for cells take more room than columns.
        for start in range(0, table.num_rows, ROWS):
            part = [column.slice(start, ROWS).to_pylist() for column in columns]
            for i, row in enumerate(zip(*part, strict=True), start + 1):
                for j, (write, cell) in enumerate(zip(writers, row, strict=True)):
                    if cell is not None:
                        write(i, j, cell)


def _check_lengths(name: str, column: pa.ChunkedArray) -> None:
    if pa.types.is_large_string(column.type):
        longest = pc.max(pc.utf8_length(column)).as_py() or 0
        if longest > MOST_CHARACTERS:
            raise TableError(
                f"column {name!r} has a text of {longest:,} characters, and a cell of Excel holds"
                f" {MOST_CHARACTERS:,}: {ELSE}"
            )


def _writer(workbook: Any, sheet: Any, kind: pa.DataType) -> Callable[[int, int, Any], object]:
    """How to write a cell of a column, by its type and never by what it looks like."""
    if pa.types.is_boolean(kind):
        return sheet.write_boolean  # type: ignore[no-any-return]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return sheet.write_number  # type: ignore[no-any-return]
    if pa.types.is_large_string(kind):
        return sheet.write_string  # type: ignore[no-any-return]
    shown = workbook.add_format({"num_format": DAY if pa.types.is_date(kind) else MOMENT})
    return lambda i, j, cell: sheet.write_datetime(i, j, cell, shown)
