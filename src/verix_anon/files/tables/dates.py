"""Dates in columns of text: a form counts only if every value prints back the same (spec §2.5)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.errors import TableError
from verix_anon.files.tables.months import (
    MonthForm,
    as_month_form,
    looks_like_months,
    month_forms,
)

__all__ = ["DateForm", "Dates", "as_form", "dates_in", "iso_dates", "looks_like_dates"]

VALUE = re.compile(
    r"([0-9]{1,4})([./ -])([0-9]{1,2})\2([0-9]{1,4})"
    r"(?:([ T])([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)?"
)
FORM = re.compile(
    r"(dd?|mm?|yyyy|yy)([./ -])(dd?|mm?)\2(dd?|mm?|yyyy|yy)(?:([ T])hh:mm(:ss)?)?"
    r"(?: from ([0-9]{4}))?"
)
ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
ORDERS = ("dmy", "mdy", "ymd")
NO_YEAR = 0
"""In place of the first year that two digits may mean, where nobody said it."""
ISO_TIMES = (pa.timestamp("us"), pa.timestamp("us", tz="UTC"))


@dataclass(frozen=True, slots=True)
class DateForm:
    """A form of dates, in parts: what stands for day, month and year, in which order."""

    parts: tuple[str, str, str]
    between: str
    time: str = ""
    """Such as ` hh:mm`."""
    first_year: int | None = None
    """What two digits count from: the first of a hundred years."""

    def __str__(self) -> str:
        """As people write it, such as dd.mm.yyyy."""
        since = f" from {self.first_year:04}" if self.first_year else ""
        return self.between.join(self.parts) + self.time + since

    def read(self, text: str) -> date | datetime | None:
        """The date, or None if it is none that prints back the same."""
        found = VALUE.fullmatch(text)
        if found is None or found[2] != self.between or self.time != _time_of(found):
            return None
        numbers = {}
        for part, digits in zip(self.parts, (found[1], found[3], found[4]), strict=True):
            if digits != (str(int(digits)) if len(part) == 1 else digits.zfill(len(part))):
                return None
            if len(digits) > max(2, len(part)):
                return None
            numbers[part[0]] = int(digits)
        year = numbers["y"]
        if "yy" in self.parts:
            # Any hundred years will do to see whether there are such days.
            first = self.first_year or 2000
            year += first - first % 100 + (100 if year < first % 100 else 0)
        try:
            day = date(year, numbers["m"], numbers["d"])
            if not self.time:
                return day
            return datetime.combine(day, time(int(found[6]), int(found[7]), int(found[8] or 0)))
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, eq=False)
class Dates:
    """A form that every value of a column has, and the column as dates or times."""

    form: DateForm | MonthForm
    values: pa.ChunkedArray

    @property
    def lacks_century(self) -> bool:
        """Whether it was not said which years two digits mean."""
        return self.form.first_year == NO_YEAR


def as_form(text: str) -> DateForm | MonthForm:
    """The form that people write as dd.mm.yyyy, d. mmmm yyyy, or yy from 1925."""
    named = as_month_form(text)
    if named is not None:
        _check_years(text, named.year == "yy", named.first_year is not None)
        return named
    found = FORM.fullmatch(text)
    parts = found.group(1, 3, 4) if found else ()
    if found is None or sorted(part[0] for part in parts) != ["d", "m", "y"]:
        raise TableError(
            f"date-format: {text[:40]!r} is no form of dates; write it with dd, mm, yyyy and hh:mm,"
            " such as dd.mm.yyyy, d/m/yyyy hh:mm, or with mmm for the name of a month"
        )
    _check_years(text, "yy" in parts, found[7] is not None)
    clock = f"{found[5]}hh:mm{found[6] or ''}" if found[5] else ""
    return DateForm(parts, found[2], clock, int(found[7]) if found[7] else None)  # type: ignore[arg-type]


def _check_years(text: str, has_two_digits: bool, is_said: bool) -> None:
    if has_two_digits != is_said:
        raise TableError(
            f"date-format: {text[:40]!r}: two digits of a year need the first year that they may"
            f" mean, and only they do, such as '{text.partition(' from ')[0][:30]} from 1925'"
        )


def iso_dates(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The column as dates or times if every value is one as in ISO 8601."""
    first = next((v.as_py() for v in column if v.is_valid), "")
    if not ISO.match(first):
        return None
    lengths = pc.min_max(pc.binary_length(column))
    is_day = lengths["max"].as_py() == 10 and lengths["min"].as_py() == 10
    pattern = ISO.pattern + ("$" if is_day else "[T ]")
    if not pc.all(pc.match_substring_regex(column, f"^{pattern}"), min_count=0).as_py():
        return None
    for kind in (pa.date32(),) if is_day else ISO_TIMES:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def looks_like_dates(values: Sequence[str]) -> bool:
    """Whether half of some values or more are dates in some form."""
    found = sum(bool(VALUE.fullmatch(value)) or looks_like_months(value) for value in values)
    return 2 * found >= max(1, len(values))


def dates_in(column: pa.ChunkedArray, given: DateForm | MonthForm | None) -> list[Dates]:
    """The forms that every value has, but those that give the same dates as an earlier one."""
    distinct = pc.unique(column).drop_null()
    if not len(distinct):
        return []
    texts = distinct.to_pylist()
    found: list[tuple[DateForm | MonthForm, list[date | datetime]]] = []
    for form in _candidates(texts, given):
        days = _all_read(form, texts)
        if days is not None and all(days != others for _, others in found):
            found.append((form, days))
    if not found:
        return []
    at = pc.index_in(column, value_set=distinct)
    kind = pa.timestamp("us") if found[0][0].time else pa.date32()
    return [Dates(form, pc.take(pa.array(days, kind), at)) for form, days in found]


def _candidates(
    texts: Sequence[str], given: DateForm | MonthForm | None
) -> Iterable[DateForm | MonthForm]:
    if isinstance(given, MonthForm):
        return given.in_languages(texts)
    return [given] if given else [*_forms(texts), *month_forms(texts, NO_YEAR)]


def _all_read(form: DateForm | MonthForm, texts: Sequence[str]) -> list[date | datetime] | None:
    days = []
    for text in texts:
        day = form.read(text)
        if day is None:
            return None
        days.append(day)
    return days


def _time_of(found: re.Match[str]) -> str:
    return "" if not found[5] else f"{found[5]}hh:mm" + (":ss" if found[8] else "")


def _forms(texts: Sequence[str]) -> list[DateForm]:
    """The forms that the values may have, by their lengths; none if one is no date."""
    found = [VALUE.fullmatch(text) for text in texts]
    if not found[0] or not all(found):
        return []
    digits = [{len(one[i]) for one in found if one} for i in (1, 3, 4)]
    forms = []
    for order in ORDERS:
        at = order.index("y")
        if digits[at] not in ({2}, {4}) or any(
            d - {1, 2} for d in (*digits[:at], *digits[at + 1 :])
        ):
            continue
        parts = tuple(
            order[i] * (max(lengths) if i == at else min(lengths))
            for i, lengths in enumerate(digits)
        )
        since = NO_YEAR if "yy" in parts else None
        forms.append(DateForm(parts, found[0][2], _time_of(found[0]), since))  # type: ignore[arg-type]
    return forms
