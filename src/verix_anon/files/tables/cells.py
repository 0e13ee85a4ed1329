"""Cells of a program's own types, as columns of one type each."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

__all__ = ["column_of"]

EXACT = 2**53
WORDS = {
    bool: "yes or no",
    int: "numbers",
    float: "numbers",
    str: "text",
    bytes: "bytes",
    dt.date: "dates",
    dt.datetime: "dates",
    dt.time: "times of day",
    dt.timedelta: "durations",
}
TYPES: dict[frozenset[type], pa.DataType] = {
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({str}): pa.string(),
    frozenset({bytes}): pa.binary(),
    frozenset({dt.date}): pa.date32(),
    frozenset({dt.datetime}): pa.timestamp("us"),
    frozenset({dt.date, dt.datetime}): pa.timestamp("us"),
    frozenset({dt.time}): pa.time64("us"),
    frozenset({dt.timedelta}): pa.duration("us"),
}


def column_of(name: str, cells: Sequence[Any], rows: Sequence[int]) -> tuple[pa.Array, str | None]:
    """The column, and what is to be said of it; None is a missing cell.

    Floats that are all whole are whole numbers. A column of several kinds is text, with a
    sentence that names the first that is not like the rest, by its number in `rows`.
    """
    kinds = frozenset({type(cell) for cell in cells} - {type(None)})
    if not kinds:
        return pa.nulls(len(cells), pa.string()), None
    if kinds <= {int, float}:
        return _numbers(cells), None
    if kinds in TYPES:
        if kinds == {dt.date, dt.datetime}:
            cells = [_moment(cell) for cell in cells]
        return pa.array(cells, TYPES[kinds]), None
    return pa.array(map(_text, cells), pa.string()), _mixed(name, cells, rows)


def _numbers(cells: Sequence[Any]) -> pa.Array:
    present = [cell for cell in cells if cell is not None]
    if all(isinstance(c, int) or (c.is_integer() and abs(c) <= EXACT) for c in present):
        whole = [None if cell is None else int(cell) for cell in cells]
        if all(-(2**63) <= cell < 2**63 for cell in whole if cell is not None):
            return pa.array(whole, pa.int64())
        return pa.array([None if cell is None else str(cell) for cell in whole], pa.string())
    return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())


def _moment(cell: Any) -> Any:
    if cell is None or isinstance(cell, dt.datetime):
        return cell
    return dt.datetime.combine(cell, dt.time())


def _text(cell: Any) -> str | None:
    """A cell among others of another kind, as it would be typed."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bytes):
        return cell.hex()
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= EXACT:
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, dt.date | dt.time) else str(cell)


def _mixed(name: str, cells: Sequence[Any], rows: Sequence[int]) -> str:
    words = [None if cell is None else WORDS[type(cell)] for cell in cells]
    kinds = sorted({word for word in words if word is not None})
    rare = min(kinds, key=words.count)
    at = words.index(rare)
    lost = ""
    if kinds == ["numbers", "text"] and any(
        isinstance(cell, str) and cell[:1] == "0" and cell.isdecimal() for cell in cells
    ):
        lost = "; a code that was typed as a number has lost its leading zeros"
    return (
        f"column {name!r} mixes {' and '.join(kinds)}, such as {_text(cells[at])!r} in row"
        f" {rows[at]}: all of it is read as text{lost}"
    )
