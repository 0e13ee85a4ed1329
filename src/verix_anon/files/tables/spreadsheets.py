"""Read and write sheets of Excel and OpenDocument: a header, and typed cells below (spec §2.6).

Reading runs in a process of its own, with a limit to its memory: two cells far apart make a sheet
of billions, which no reader here refuses by itself.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import python_calamine as calamine
import xlsxwriter

from verix_anon.errors import TableError
from verix_anon.files.table_form import Reading
from verix_anon.files.tables.cell_values import column_of, plain_values
from verix_anon.files.tables.file_kinds import TABLE
from verix_anon.files.tables.table_sources import check_names, reason

MOST_ROWS, MOST_COLUMNS, MOST_CHARACTERS = 1 << 20, 1 << 14, 32_767
ROWS = 1 << 14
# The first day that Excel counts right: it has a 29 February 1900.
FIRST = dt.datetime(1900, 3, 1)
# A date of writing would tell when; this one tells nothing.
WRITTEN = dt.datetime(2000, 1, 1)
Rows = Sequence[Sequence[str]]
"""Of a sheet of text, with its header."""
NARROW, WIDE = 6, 40
WIDTHS = (28, 12, 14, 80)
"""Characters that columns show, of the table and of sheets of text."""
DAY, MOMENT = "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss.000"
ELSE = "publish it as .parquet or .csv"


def read_sheet(path: str, reading: Reading) -> tuple[pa.Table, list[str]]:
    """The table, and what is to be said of it; errors do not name the file."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123, because it may be a descriptor's name
            workbook = calamine.CalamineWorkbook.from_filelike(file)
            return _table(_chosen(workbook, reading.sheet), reading)
    except calamine.PasswordError:
        raise TableError("is protected by a password; save it without one") from None
    except (calamine.CalamineError, ValueError) as error:
        raise TableError(f"cannot be read ({reason(error)})") from None


def _chosen(workbook: calamine.CalamineWorkbook, wanted: str | None) -> calamine.CalamineSheet:
    """The sheet that is named, or the only one that holds anything."""
    found = [s for s in workbook.sheets_metadata if s.typ == calamine.SheetTypeEnum.WorkSheet]
    names = [sheet.name for sheet in found]
    if wanted is not None:
        if wanted not in names:
            raise TableError(f"has no sheet {wanted!r}; its sheets are {_listed(names)}")
        return workbook.get_sheet_by_name(wanted)
    filled = names
    if len(names) > 1:
        filled = [name for name in names if workbook.get_sheet_by_name(name).height > 0]
    if len(filled) != 1:
        hidden = [s.name for s in found if s.visible != calamine.SheetVisibleEnum.Visible]
        unseen = f" (hidden: {_listed(hidden)})" if hidden else ""
        if not filled:
            raise TableError("has no sheet with anything in it")
        raise TableError(
            f"has several sheets: {_listed(filled)}{unseen}; say which one is the table"
            " (--sheet NAME, or Reading(sheet=NAME))"
        )
    return workbook.get_sheet_by_name(filled[0])


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _table(sheet: calamine.CalamineSheet, reading: Reading) -> tuple[pa.Table, list[str]]:
    missing = {"", *reading.null_tokens}
    numbered = [
        (number, row)
        for number, row in enumerate(sheet.iter_rows(), 1)
        if number > (reading.skip or 0) and any(cell != "" for cell in row)
    ]
    numbered = numbered[: len(numbered) - (reading.footer or 0)]
    if not numbered:
        raise TableError(f"has nothing in its sheet {sheet.name!r}")
    at, header = numbered[0]
    numbers, rows = [number for number, _ in numbered[1:]], [row for _, row in numbered[1:]]
    names = _names(sheet, at, header, rows)
    check_names([name for name in names if name is not None])
    columns: dict[str, pa.Array] = {}
    notes = []
    for j, name in enumerate(names):
        if name is not None:
            cells = [None if cell in missing else cell for cell in (row[j] for row in rows)]
            columns[name], note = column_of(name, cells, numbers)
            notes += [note] if note else []
    return pa.table(columns), notes


def _names(
    sheet: calamine.CalamineSheet, at: int, header: Sequence[Any], rows: Sequence[Sequence[Any]]
) -> list[str | None]:
    """The column names; None for a column with neither a name nor a value."""
    width = len(header)
    has_values = [any(row[j] != "" for row in rows) for j in range(width)]
    named = [cell != "" for cell in header]
    if any(has and not name for has, name in zip(has_values, named, strict=True)):
        merged = any(r[0][0] <= at - 1 <= r[1][0] for r in sheet.merged_cell_ranges or ())
        what = "has merged cells" if merged else f"names {sum(named)} of {sum(has_values)} columns"
        shown = next(str(cell) for cell in header if cell != "")
        raise TableError(
            f"row {at} of its sheet {sheet.name!r} ({shown[:60]!r}) should be the header"
            f" and {what}; say how many rows stand above the header (--skip), or unmerge its cells"
            " and name every column"
        )
    whole = [isinstance(cell, float) and cell.is_integer() for cell in header]
    names = [str(int(c) if is_whole else c) for c, is_whole in zip(header, whole, strict=True)]
    return [name if name != "" else None for name in names]


def write_sheet(table: pa.Table, path: Path, beside: Mapping[str, Rows]) -> None:
    """Write a sheet with a header, and sheets of text beside it.

    Raises:
        TableError: A sheet does not hold the table.
    """
    if table.num_rows >= MOST_ROWS or table.num_columns > MOST_COLUMNS:
        raise TableError(
            f"a sheet of Excel holds {MOST_ROWS - 1:,} rows below its header and {MOST_COLUMNS:,}"
            f" columns; this table has {table.num_rows:,} and {table.num_columns:,}: {ELSE}"
        )
    options = {"constant_memory": True, "default_date_format": MOMENT, "in_memory": False}
    with xlsxwriter.Workbook(str(path), options) as workbook:
        workbook.set_properties({"created": WRITTEN})
        bold = workbook.add_format({"bold": True})
        sheet = workbook.add_worksheet(TABLE)
        sheet.freeze_panes(1, 0)
        columns = [plain_values(n, table[n], FIRST) for n in table.column_names]
        for j, (name, column) in enumerate(zip(table.column_names, columns, strict=True)):
            sheet.set_column(j, j, _width(name, column.slice(0, ROWS)))
            sheet.write_string(0, j, name, bold)
            if not pa.types.is_large_string(column.type):
                continue
            longest = pc.max(pc.utf8_length(column)).as_py() or 0
            if longest > MOST_CHARACTERS:
                raise TableError(
                    f"column {name!r} has a text of {longest:,} characters, and a cell of Excel"
                    f" holds {MOST_CHARACTERS:,}: {ELSE}"
                )
        writers = [_writer(workbook, sheet, column.type) for column in columns]
        # Row by row, as the file has them; some at a time, for cells take more room than columns.
        for start in range(0, table.num_rows, ROWS):
            part = [column.slice(start, ROWS).to_pylist() for column in columns]
            for i, row in enumerate(zip(*part, strict=True), start + 1):
                for j, (write, cell) in enumerate(zip(writers, row, strict=True)):
                    if cell is not None:
                        write(i, j, cell)
        for name, rows in beside.items():
            sheet = workbook.add_worksheet(name)
            sheet.freeze_panes(1, 0)
            for j, width in enumerate(WIDTHS):
                sheet.set_column(j, j, width)
            for i, texts in enumerate(rows):
                for j, text in enumerate(texts):
                    sheet.write_string(i, j, text[:MOST_CHARACTERS], None if i else bold)


def _width(name: str, cells: pa.ChunkedArray) -> int:
    """The characters of the longest of the first cells, within what people can look at."""
    lengths = (len(str(cell)) for cell in pc.unique(cells).to_pylist() if cell is not None)
    return min(max(len(name), *lengths, NARROW) + 2, WIDE)


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
