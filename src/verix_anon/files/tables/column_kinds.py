"""Recognise the kinds of a text table's columns, over all rows and all columns (spec §2.5)."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.errors import TableError
from verix_anon.files.table_form import MARKS, NULL_TOKENS, Question, Reading
from verix_anon.files.tables import number_marks
from verix_anon.files.tables.dates import Dates, as_form, dates_in, iso_dates, looks_like_dates
from verix_anon.machine import available_cores

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
MARKERS = (
    *("-", "--", "\u2013", "\u2014", ".", "?", "*", "n/a", "na", "n.a.", "n. a.", "N.A.", "nan"),
    *("None", "none", "#N/A", "#NV", "#NULL!", "<NA>", "(null)", r"\N", "missing", "unknown"),
    *("k.A.", "k. A.", "k.A", "keine Angabe", "unbekannt", "fehlt"),
)
"""Words that mean missing in a column whose other values are all numbers or all dates."""


@dataclass(frozen=True, slots=True, eq=False)
class RecognisedColumns:
    """The table, and how its columns were written."""

    table: pa.Table
    decimal: str | None
    thousands: str | None
    dates: Mapping[str, str]
    missing: Mapping[str, Sequence[str]]
    notes: tuple[str, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What one column may be."""

    name: str
    text: pa.ChunkedArray
    numbers: Sequence[number_marks.Numbers] = ()
    dates: Sequence[Dates] = ()
    other: pa.ChunkedArray | None = None
    """The column with its type, if that is beyond doubt."""
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def recognise(text: pa.Table, reading: Reading) -> RecognisedColumns:
    """Turn a column into numbers or dates if all its values are, in ways that fit all columns."""
    for name in (*reading.dates, *reading.missing):
        if name not in text.column_names:
            raise TableError(f"[reading]: there is no column {name[:60]!r}")
    with ThreadPoolExecutor(available_cores()) as threads:
        seen = list(threads.map(partial(_seen, reading), text.column_names, text.columns))
        agreed = _agreed(seen, reading)
        seen = [_without_codes(one, agreed) for one in seen]
        columns = [_chosen(one, agreed) for one in seen]
        sentinels = threads.map(_sentinel_notes, text.column_names, columns)
        notes = [note for one in seen for note in one.notes]
        notes += [note for found in sentinels for note in found]
    forms = {one.name: str(one.dates[0].form) for one in seen if one.dates and not _is_open(one)}
    return RecognisedColumns(
        table=pa.Table.from_arrays(columns, text.column_names),
        decimal=agreed.decimal,
        thousands=agreed.thousands,
        dates={**reading.dates, **forms},
        missing={**reading.missing, **{one.name: one.missing for one in seen if one.missing}},
        notes=tuple(notes),
        questions=(*(_asked(one) for one in seen if _is_open(one)), *agreed.questions),
    )


def _seen(reading: Reading, name: str, column: pa.ChunkedArray) -> _Seen:
    """Find what a column may be; if it is only text, try it without words for missing."""
    words = tuple(reading.missing.get(name, ()))
    if words:
        column = _without(column, words)
    found = _look(name, column, reading)
    if name in reading.missing or tuple(reading.null_tokens) != NULL_TOKENS or _is_known(found):
        return found
    held = pc.unique(column.filter(pc.is_in(column, value_set=pa.array(MARKERS)))).to_pylist()
    if not held:
        return found
    again = _look(name, _without(column, held), reading)
    shown = " and ".join(repr(word) for word in held[:3])
    if not _is_known(again) or again.text.null_count == len(again.text):
        entry = f"{json.dumps(name, ensure_ascii=False)} = {json.dumps(held, ensure_ascii=False)}"
        note = (
            f"column {name!r} has the value {shown}, which means missing in many tables: if it does"
            f" here, say so in [reading.missing] of the roles file, {entry}"
        )
        return _Seen(name, column, notes=(*found.notes, note))
    note = f"{shown} means missing in column {name!r}"
    return replace(again, missing=tuple(held), notes=(*again.notes, note))


def _is_known(seen: _Seen) -> bool:
    return bool(seen.numbers or seen.dates or seen.other is not None)


def _without(column: pa.ChunkedArray, words: Iterable[str]) -> pa.ChunkedArray:
    held = pc.is_in(column, value_set=pa.array(list(words), pa.string()))
    return pc.if_else(held, pa.scalar(None, pa.string()), column)


def _look(name: str, column: pa.ChunkedArray, reading: Reading) -> _Seen:
    if column.null_count == len(column) or reading.dates.get(name) == "text":
        return _Seen(name, column, other=column)
    if form := reading.dates.get(name):
        found = dates_in(column, as_form(form))
        if not found:
            raise TableError(f"column {name!r} has values that are not dates of the form {form!r}")
        return _Seen(name, column, dates=found)
    marks = number_marks.marks_in(column)
    numbers = number_marks.numbers_in(column, marks)
    if numbers and reading.leading_zeros_are_text and number_marks.starts_with_zero(column):
        return _Seen(name, column, other=column)
    if fitting := [one for one in numbers if _fits(one, reading.decimal, reading.thousands)]:
        return _Seen(name, column, numbers=fitting)
    if numbers:
        used = {m for one in numbers for m in (one.form.decimal, one.form.thousands) if m}
        marked = " and ".join(sorted({MARKS[mark] for mark in used}))
        note = f"column {name!r} stays text: its numbers have a {marked} that is not as given"
        return _Seen(name, column, other=column, notes=(note,))
    if not marks.others and (iso := iso_dates(column)) is not None:
        return _Seen(name, column, other=iso)
    if not marks.others or looks_like_dates([next(v.as_py() for v in column if v.is_valid)]):
        given = as_form(reading.date_format) if reading.date_format else None
        dates = (dates_in(column, given) if given else []) or dates_in(column, None)
        if dates:
            return _Seen(name, column, dates=dates)
    return _Seen(name, column, notes=_text_notes(name, column))


def _fits(numbers: number_marks.Numbers, decimal: str | None, thousands: str | None) -> bool:
    form = numbers.form
    if decimal is not None and (form.decimal not in (None, decimal) or form.thousands == decimal):
        return False
    alike = {"\u00a0": " ", "\u202f": " ", "\u2019": "'"}
    wanted = None if thousands is None else alike.get(thousands, thousands)
    return wanted is None or (form.thousands in (None, wanted) and form.decimal != wanted)


@dataclass(frozen=True, slots=True)
class _Agreed:
    """The marks that the numbers of all columns have, or what must be asked first."""

    decimal: str | None
    thousands: str | None
    questions: tuple[Question, ...] = ()


def _agreed(seen: Sequence[_Seen], reading: Reading) -> _Agreed:
    """Let columns that can be read in only one way decide the marks of the other columns."""
    decimals = {} if reading.decimal is None else {reading.decimal: ""}
    groups = {} if reading.thousands is None else {reading.thousands: ""}
    unsure = []
    for one in seen:
        if len(one.numbers) > 1:
            unsure.append(one)
        elif one.numbers and not _may_be_codes(one):
            form = one.numbers[0].form
            decimals |= {form.decimal: one.name} if form.decimal else {}
            groups |= {form.thousands: one.name} if form.thousands else {}
    if not decimals and (sure := [mark for mark in groups if mark in (".", ",")]):
        decimals = {"," if "." in sure else ".": groups[sure[0]]}
    decimal, thousands = next(iter(decimals), None), next(iter(groups), None)
    found = _Agreed(decimal, thousands)

    def asking(sentence: str) -> _Agreed:
        return replace(found, questions=(Question(sentence, "decimal", None, (".", ",")),))

    if len(decimals) > 1 or len(groups) > 1 or decimals.keys() & groups.keys():
        names = " and ".join(map(repr, dict.fromkeys([*decimals.values(), *groups.values()])))
        return asking(
            f"columns {names} write numbers in different ways; one way is read, the other stays"
            " text"
        )
    for one in unsure:
        fitting = [n.form for n in one.numbers if _fits(n, found.decimal, found.thousands)]
        if len(fitting) != 1:
            values = (value.as_py() for value in one.text if value.is_valid)
            value = next(value for value in values if not value.lstrip("+-").isdigit())
            return asking(f"column {one.name!r} has {value}, which may be thousands or decimals")
        form = fitting[0]
        found = _Agreed(found.decimal or form.decimal, found.thousands or form.thousands)
    return found


def _may_be_codes(one: _Seen) -> bool:
    """Whether the values are digits in groups, and all have one length."""
    return one.numbers[0].form.thousands == " " and not number_marks.is_varied(one.text)


def _without_codes(one: _Seen, agreed: "_Agreed") -> _Seen:
    """Keep digits between spaces as text, unless another column surely has such numbers."""
    if not one.numbers or agreed.thousands in number_marks.SPACES or not _may_be_codes(one):
        return one
    note = f"column {one.name!r} stays text, as codes would; for numbers give --thousands ' '"
    return _Seen(one.name, one.text, missing=one.missing, notes=(*one.notes, note))


def _chosen(one: _Seen, agreed: _Agreed) -> pa.ChunkedArray:
    """Return the typed column; if several ways are possible, the one that fits, or the first."""
    if one.dates:
        return one.dates[0].values
    if one.numbers:
        fitting = (n.values for n in one.numbers if _fits(n, agreed.decimal, agreed.thousands))
        return next(fitting, one.numbers[0].values)
    return one.text if one.other is None else one.other


def _is_open(one: _Seen) -> bool:
    """Whether its dates can be read in more than one way."""
    return len(one.dates) > 1 or any(dates.lacks_century for dates in one.dates)


def _asked(one: _Seen) -> Question:
    first = one.dates[0]
    differ = [pc.not_equal(first.values, other.values) for other in one.dates[1:]]
    at = max((pc.index(each, True).as_py() for each in differ), default=-1)
    value = one.text[at].as_py() if at >= 0 else one.text.drop_null()[0].as_py()
    sentence = f"column {one.name!r} has dates such as {value}"
    if first.lacks_century:
        sentence += ", and which years are meant is not said (from: the first of a hundred)"
        answers = tuple(f"{dates.form} from {year}" for dates in one.dates for year in (1925, 2000))
    else:
        sentence += ", where day and month may be either way round"
        answers = tuple(str(dates.form) for dates in one.dates)
    return Question(sentence, "dates", one.name, answers)


def _text_notes(name: str, column: pa.ChunkedArray) -> tuple[str, ...]:
    """Say what keeps a text column from being numbers or dates, if only a little does."""
    few = column.slice(0, FEW).drop_null().to_pylist()
    if not few:
        return ()
    if all(re.fullmatch(WITH_UNIT, value) for value in few):
        return (f"column {name!r} stays text: its numbers have signs, such as {few[0][:40]!r}",)
    n_numbers = sum(re.fullmatch(NUMBER, value) is not None for value in few)
    if looks_like_dates(few):
        what, pattern = "dates", DATE
    elif 10 * n_numbers >= 9 * len(few):
        what, pattern = "numbers", rf"^({NUMBER})$"
    else:
        return ()
    other = pc.index(pc.match_substring_regex(column, pattern), False).as_py()
    but = f"the forms differ, or some are not {what}"
    if other >= 0:
        but = f"record {other + 1:,} has {column[other].as_py()[:40]!r}"
    return (f"column {name!r} stays text: it looks like {what}, but {but}",)


def _sentinel_notes(name: str, column: pa.ChunkedArray) -> tuple[str, ...]:
    """Warn of a number far from all others in its column, because it may mean missing."""
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
