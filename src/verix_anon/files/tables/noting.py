"""What is to be known of a column that could be other than it is read."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.files.tables.dates import looks_like_dates

__all__ = ["sentinel_notes", "text_notes"]

FEW = 1000
NUMBER = "[+-]?[0-9][0-9.,' \u00a0\u202f\u2019]*"
UNITS = r"(%|‰|€|\$|£|¥|EUR|USD|CHF|GBP)"
WITH_UNIT = f"({UNITS}[ \u00a0]?{NUMBER}|{NUMBER}[ \u00a0]?{UNITS})"
DATE = (
    r"^([0-9]{1,4}[./ -][0-9]{1,2}[./ -][0-9]{1,4}"
    r"|[0-9]{1,2}[./ -]{0,2}\pL{3,9}[./ -]{0,2}[0-9]{2,4}"
    r"|\pL{3,9}\.? [0-9]{1,2},? [0-9]{2,4})([ T:].*)?$"
)
NINES = frozenset(10**n - 1 for n in range(2, 9))


def text_notes(name: str, column: pa.ChunkedArray) -> tuple[str, ...]:
    """Of a column that stays text: what keeps it from being numbers or dates, if little does."""
    few = column.slice(0, FEW).drop_null().to_pylist()
    if not few:
        return ()
    if all(re.fullmatch(WITH_UNIT, value) for value in few):
        return (f"column {name!r} stays text: its numbers have signs, such as {few[0][:40]!r}",)
    what = ""
    n_numbers = sum(re.fullmatch(NUMBER, value) is not None for value in few)
    if looks_like_dates(few):
        what, pattern = "dates", DATE
    elif 10 * n_numbers >= 9 * len(few):
        what, pattern = "numbers", rf"^({NUMBER})$"
    if not what:
        return ()
    other = pc.index(pc.match_substring_regex(column, pattern), False).as_py()
    but = "their forms differ, or some are none"
    if other >= 0:
        but = f"record {other + 1:,} has {column[other].as_py()[:40]!r}"
    return (f"column {name!r} stays text: it looks like {what}, but {but}",)


def sentinel_notes(name: str, column: pa.ChunkedArray) -> tuple[str, ...]:
    """Of a column of numbers: a number far from all others that may mean missing."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return ()
    ends = pc.min_max(column)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if high in NINES:
        below = pc.max(column.filter(pc.less(column, high))).as_py()
        if below is not None and 2 * below < high:
            return (_sentinel(name, high, f"the next is {below:,}"),)
    if low is not None and (-low in NINES or low == -9):
        above = pc.min(column.filter(pc.greater(column, low))).as_py()
        if above is not None and above >= 0:
            return (_sentinel(name, low, "no other is negative"),)
    return ()


def _sentinel(name: str, value: float, why: str) -> str:
    return (
        f"column {name!r} has {value:.0f}, and {why}: if it means missing, say so in"
        f' [reading.missing] of the roles file, "{name}" = ["{value:.0f}"]'
    )
