"""What a published cell says, read from the specification alone (§12, "Cells")."""

import json
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

__all__ = ["holds", "same"]

PERIOD = re.compile(r"(\d{4})(?:-(?:M(\d\d)|Q(\d)|(\d\d)-(\d\d)))?")


def holds(cell: str, value: object, order: Sequence[str] = ()) -> bool:
    """Whether a record with that value may stand behind the cell, given an order of labels."""
    if value is None:
        return cell == "missing" or cell.endswith(" or missing")
    cell = cell.removesuffix(" or missing")
    low, _, high = cell.partition("..")
    if isinstance(value, str | bool):
        label = str(value).lower() if isinstance(value, bool) else value
        if order and high:
            return order.index(low) <= order.index(label) <= order.index(high)
        return _names(cell, label)
    if cell == "*":
        return True
    high = high or low
    # A capped end: nothing is said of how far values lie beyond it.
    is_least, is_most = low.startswith("<="), high.startswith(">=")
    (first, _), (_, last) = _ends(low.lstrip("<=>"), value), _ends(high.lstrip("<=>"), value)
    return (is_least or first <= value) and (is_most or value <= last)


def same(cell: str, value: object) -> bool:
    """Whether a cell of a column that is published as it was has that value."""
    if value is None or isinstance(value, str):
        return cell == (value or "")
    if isinstance(value, bool):
        return cell == str(value).lower()
    if isinstance(value, datetime):
        return _moment(cell) == value
    return date.fromisoformat(cell) == value if isinstance(value, date) else float(cell) == value


def _names(cell: str, label: str) -> bool:
    if cell in ("*", label):
        return True
    if cell.endswith("*") and not cell.startswith(("{", "not {")):
        return label.startswith(cell.rstrip("*"))
    listed, _, more = cell.removeprefix("not ").rpartition("}")
    # In JSON's quotes if it holds what parts labels.
    is_quoted = any(mark in label for mark in ',{}"')
    written = json.dumps(label, ensure_ascii=False) if is_quoted else label
    is_listed = f", {written}, " in f", {listed.removeprefix('{')}, "
    if cell.startswith("not {"):
        return not is_listed
    return cell.startswith("{") and (is_listed or more.endswith(" more"))


def _ends(text: str, value: object) -> tuple[Any, Any]:
    """The first and the last value of the kind of `value` that a text names."""
    if isinstance(value, datetime):
        return _moment(text), _moment(text)
    if isinstance(value, date):
        return _days(text)
    assert isinstance(value, int | float)
    return float(text.strip("()")), float(text.strip("()"))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _days(text: str) -> tuple[date, date]:
    """The first and the last day of what is named: a day, a month, a quarter or a year."""
    found = PERIOD.fullmatch(text)
    assert found, text
    year, month, quarter, of_year, of_month = (int(part or 0) for part in found.groups())
    if of_month:
        return date(year, of_year, of_month), date(year, of_year, of_month)
    first = month or 3 * quarter - 2 if month or quarter else 1
    n_months = 1 if month else 3 if quarter else 12
    after = date(year + (first + n_months > 12), (first + n_months - 1) % 12 + 1, 1)
    return date(year, first, 1), after - timedelta(days=1)
