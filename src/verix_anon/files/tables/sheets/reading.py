"""A sheet of an Excel or OpenDocument file: a header, and typed cells below it (spec §2.6).

Run in a process of its own, with a limit to its memory: two cells far apart make a sheet of
billions, which no reader here refuses by itself.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from verix_anon.errors import TableError
from verix_anon.files.tables.cells import column_of
from verix_anon.files.tables.opening import check_names, reason
from verix_anon.files.tables.reading import Reading

__all__ = ["read_sheet"]


def read_sheet(path: str, reading: Reading) -> tuple[pa.Table, list[str]]:
    """The table, and what is to be said of it; errors do not name the file."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123, because it may be a descriptor's name
            workbook = CalamineWorkbook.from_filelike(file)
            return _table(_chosen(workbook, reading.sheet), reading)
    except PasswordError:
        raise TableError("is protected by a password; save it without one") from None
    except (CalamineError, ValueError) as error:
        raise TableError(f"cannot be read ({reason(error)})") from None


def _chosen(workbook: CalamineWorkbook, wanted: str | None) -> CalamineSheet:
    """The sheet that is named, or the only one that holds anything."""
    found = [s for s in workbook.sheets_metadata if s.typ == SheetTypeEnum.WorkSheet]
    names = [sheet.name for sheet in found]
    if wanted is not None:
        if wanted not in names:
            raise TableError(f"has no sheet {wanted!r}; its sheets are {_listed(names)}")
        return workbook.get_sheet_by_name(wanted)
    filled = [name for name in names if len(names) == 1 or _is_filled(workbook, name)]
    if len(filled) != 1:
        hidden = [s.name for s in found if s.visible != SheetVisibleEnum.Visible]
        unseen = f" (hidden: {_listed(hidden)})" if hidden else ""
        if not filled:
            raise TableError("has no sheet with anything in it")
        raise TableError(
            f"has several sheets: {_listed(filled)}{unseen}; say which one is the table"
            " (--sheet NAME, or Reading(sheet=NAME))"
        )
    return workbook.get_sheet_by_name(filled[0])


def _is_filled(workbook: CalamineWorkbook, name: str) -> bool:
    return workbook.get_sheet_by_name(name).height > 0


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _table(sheet: CalamineSheet, reading: Reading) -> tuple[pa.Table, list[str]]:
    missing = frozenset(reading.null_tokens)
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
            cells = [_cell(row[j], missing) for row in rows]
            columns[name], note = column_of(name, cells, numbers)
            notes += [note] if note else []
    return pa.table(columns), notes


def _cell(cell: Any, missing: frozenset[str]) -> Any:
    return None if isinstance(cell, str) and (cell == "" or cell in missing) else cell


def _names(
    sheet: CalamineSheet, at: int, header: Sequence[Any], rows: Sequence[Sequence[Any]]
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
    return [_name(cell) if is_named else None for cell, is_named in zip(header, named, strict=True)]


def _name(cell: Any) -> str:
    is_whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if is_whole else str(cell)
