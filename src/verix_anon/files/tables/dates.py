"""Dates in columns of text: a form counts only if every value prints back the same (spec §2.5)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from verix_anon.arrays import Ints
from verix_anon.errors import TableError

CLOCK = r"(?:(?P<gap>[ T:])(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?)?"
NAME = r"(?P<m>[^\W\d_]{3,9}(?:\.(?= ))?)"
VALUES = (
    re.compile(
        rf"(?P<d>[0-9]{{1,2}})(?P<a>\. |[-/. ]|){NAME}(?P<b>[-/. ]|)(?P<y>[0-9]{{2,4}}){CLOCK}"
    ),
    re.compile(rf"{NAME}(?P<a> )(?P<d>[0-9]{{1,2}})(?P<b>,? )(?P<y>[0-9]{{2,4}}){CLOCK}"),
)
CLOCK_FORM = r"(?:(?P<gap>[ T:])hh:mm(?P<second>:ss)?)?(?: from (?P<since>[0-9]{4}))?"
FORMS = (
    re.compile(
        rf"(?P<d>dd?)(?P<a>\. |[-/. ]|)(?P<m>mmmm?)(?P<b>[-/. ]|)(?P<y>yyyy|yy){CLOCK_FORM}"
    ),
    re.compile(rf"(?P<m>mmmm?)(?P<a> )(?P<d>dd?)(?P<b>,? )(?P<y>yyyy|yy){CLOCK_FORM}"),
)
LONG = (
    "January February March April May June July August September October November December",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "Jänner Februar März April Mai Juni Juli August September Oktober November Dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
)
SHORT = (
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "Jan. Feb. Mar. Apr. May June July Aug. Sept. Oct. Nov. Dec.",
    "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
    "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
)
Names = tuple[str, ...]


def _cased(spelled: Sequence[str]) -> tuple[Names, ...]:
    found = [case(names) for names in spelled for case in (str, str.lower, str.upper, str.title)]
    return tuple(tuple(names.split()) for names in dict.fromkeys(found))


NAMES = {"mmmm": _cased(LONG), "mmm": _cased(SHORT)}
"""What may stand for a month, all twelve in one language and one case, long or short."""
ANY = frozenset(name for tables in NAMES.values() for names in tables for name in names)


@dataclass(frozen=True, slots=True)
class MonthForm:
    """A form of dates in which a month has a name, such as dd-mmm-yyyy."""

    day: str
    month: str
    year: str
    marks: tuple[str, str]
    is_month_first: bool = False
    time: str = ""
    first_year: int | None = None
    """What two digits count from: the first of a hundred years."""
    names: Names = ()

    def __str__(self) -> str:
        """As people write it."""
        parts = (self.month, self.day) if self.is_month_first else (self.day, self.month)
        since = f" from {self.first_year:04}" if self.first_year else ""
        return f"{parts[0]}{self.marks[0]}{parts[1]}{self.marks[1]}{self.year}{self.time}{since}"

    def read(self, text: str) -> date | datetime | None:
        """The date, or None if it is none that prints back the same."""
        found = VALUES[self.is_month_first].fullmatch(text)
        if found is None or found["m"] not in self.names or _time_of(found) != self.time:
            return None
        day = int(found["d"])
        if (found["a"], found["b"]) != self.marks or len(found["y"]) != len(self.year):
            return None
        if found["d"] != (str(day) if self.day == "d" else f"{day:02}"):
            return None
        year = int(found["y"])
        if self.year == "yy":
            first = self.first_year or 2000
            year += first - first % 100 + (100 if year < first % 100 else 0)
        try:
            on = date(year, self.names.index(found["m"]) + 1, day)
            if not self.time:
                return on
            clock = time(int(found["hour"]), int(found["minute"]), int(found["second"] or 0))
            return datetime.combine(on, clock)
        except ValueError:
            return None

    def in_languages(self, texts: Sequence[str]) -> Iterator["MonthForm"]:
        """The same with the names of each language that has all of those in the values."""
        found = [VALUES[self.is_month_first].fullmatch(text) for text in texts]
        used = {one["m"] for one in found if one}
        if all(found):
            for names in NAMES[self.month]:
                if used <= set(names):
                    yield replace(self, names=names)


def month_forms(texts: Sequence[str], no_year: int) -> list[MonthForm]:
    """The forms that the values may have; none if one is no date."""
    forms = []
    for is_month_first, pattern in enumerate(VALUES):
        first = pattern.fullmatch(texts[0])
        if first is None:
            continue
        found = [pattern.fullmatch(text) for text in texts]
        lengths = {len(one["d"]) for one in found if one}
        years = len(first["y"])
        if years == 3:
            continue
        for month in NAMES:
            form = MonthForm(
                day="d" * min(lengths),
                month=month,
                year="y" * years,
                marks=(first["a"], first["b"]),
                is_month_first=bool(is_month_first),
                time=_time_of(first),
                first_year=no_year if years == 2 else None,
            )
            forms += list(form.in_languages(texts))
    return forms


def as_month_form(text: str) -> MonthForm | None:
    """The form that people write as dd-mmm-yyyy, if it is one."""
    for is_month_first, pattern in enumerate(FORMS):
        if found := pattern.fullmatch(text):
            clock = f"{found['gap']}hh:mm{found['second'] or ''}" if found["gap"] else ""
            since = int(found["since"]) if found["since"] else None
            marks = (found["a"], found["b"])
            parts = (found["d"], found["m"], found["y"], marks, bool(is_month_first))
            return MonthForm(*parts, clock, since)
    return None


def _time_of(found: re.Match[str]) -> str:
    return "" if not found["gap"] else f"{found['gap']}hh:mm" + (":ss" if found["second"] else "")


# For Python's expressions and for Arrow's, which cannot ask for the same mark again.
VALUE = re.compile(
    r"^(?P<first>[0-9]{1,4})(?P<mark>[./ -])(?P<middle>[0-9]{1,2})(?P<again>[./ -])"
    r"(?P<last>[0-9]{1,4})"
    r"(?:(?P<gap>[ T])(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?)?$"
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
Moments = NDArray[np.datetime64]


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

    def read(self, apart: "_Apart") -> Moments | None:
        """The dates, or None if a value is none that prints back the same."""
        if (apart.mark, apart.clock) != (self.between, self.time):
            return None
        said = {}
        for part, numbers, lengths in zip(self.parts, apart.numbers, apart.lengths, strict=True):
            printed = 1 + (numbers >= 10) if len(part) == 1 else len(part)
            if np.any(lengths != printed):
                return None
            said[part[0]] = numbers
        year = said["y"]
        if "yy" in self.parts:
            # Any hundred years will do to see whether there are such days.
            first = self.first_year or 2000
            year = year + first - first % 100 + 100 * (year < first % 100)
        month, day = said["m"], said["d"]
        months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        days: Moments = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
        # The 31st of February lies in March, and so does not print back the same.
        is_day = (days.astype("datetime64[M]") == months) & (month >= 1) & (month <= 12)
        if not (is_day & (year >= 1) & (year <= 9999)).all():
            return None
        return apart.since_midnight + days.astype("datetime64[us]") if self.time else days


@dataclass(frozen=True, slots=True, eq=False)
class _Apart:
    """Values that are digits with the same marks between them, part by part."""

    numbers: Sequence[Ints]
    lengths: Sequence[Ints]
    mark: str
    clock: str
    """Such as ` hh:mm`."""
    since_midnight: NDArray[np.timedelta64]


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
    if lengths["max"].as_py() == 10 and lengths["min"].as_py() == 10:
        # Days repeat: each is looked at once.
        coded = column.dictionary_encode()
        days = _iso(coded.chunk(0).dictionary, ISO.pattern + "$", [pa.date32()])
        return None if days is None else pc.take(days, _places(coded))
    return _iso(column, ISO.pattern + "[T ]", ISO_TIMES)


def _iso(
    texts: pa.ChunkedArray | pa.Array, pattern: str, kinds: Sequence[pa.DataType]
) -> pa.ChunkedArray | pa.Array | None:
    """The texts as the first of some types that holds them all."""
    if not pc.all(pc.match_substring_regex(texts, f"^{pattern}"), min_count=0).as_py():
        return None
    for kind in kinds:
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def _places(coded: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which of the distinct values, which all chunks share, each value is."""
    return pa.chunked_array([chunk.indices for chunk in coded.chunks])


def looks_like_dates(values: Sequence[str]) -> bool:
    """Whether half of some values or more are dates in some form."""

    def is_date(value: str) -> bool:
        if found := VALUE.fullmatch(value):
            return bool(found["mark"] == found["again"])
        named = next(filter(None, (pattern.fullmatch(value) for pattern in VALUES)), None)
        return named is not None and named["m"] in ANY

    return 2 * sum(map(is_date, values)) >= max(1, len(values))


def dates_in(column: pa.ChunkedArray, given: DateForm | MonthForm | None) -> list[Dates]:
    """The forms that every value has, but those that give the same dates as an earlier one."""
    if column.null_count == len(column):
        return []
    coded = column.dictionary_encode()
    found: list[tuple[DateForm | MonthForm, pa.Array]] = []
    for form, days in _read(coded.chunk(0).dictionary, given):
        if not any(days.equals(others) for _, others in found):
            found.append((form, days))
    return [Dates(form, pc.take(days, _places(coded))) for form, days in found]


def _read(
    texts: pa.Array, given: DateForm | MonthForm | None
) -> Iterator[tuple[DateForm | MonthForm, pa.Array]]:
    """The forms that every one of some texts has, and their dates."""
    apart = _apart(texts)
    if apart is not None and not isinstance(given, MonthForm):
        for form in [given] if given else _forms(apart):
            if (days := form.read(apart)) is not None:
                yield form, pa.array(days)
    if apart is None and not isinstance(given, DateForm):
        named = texts.to_pylist()
        for month in given.in_languages(named) if given else month_forms(named, NO_YEAR):
            if None not in (read := [month.read(text) for text in named]):
                yield month, pa.array(read, pa.timestamp("us") if month.time else pa.date32())


def _apart(texts: pa.Array) -> _Apart | None:
    """None if a value is no date in any form, or if they have different marks."""
    found = pc.extract_regex(texts, VALUE.pattern)
    if found.null_count:
        return None
    part = dict(zip(VALUE.groupindex, found.flatten(), strict=True))
    marks = pc.unique(pa.concat_arrays([part["mark"], part["again"]]))
    clock = _clock(part)
    if len(marks) > 1 or clock is None:
        return None
    digits = [part[name] for name in ("first", "middle", "last")]
    lengths = [np.asarray(pc.binary_length(each)) for each in digits]
    return _Apart([_whole(each) for each in digits], lengths, marks[0].as_py(), *clock)


def _clock(part: Mapping[str, pa.Array]) -> tuple[str, NDArray[np.timedelta64]] | None:
    """The form of the times and the times since midnight; None if there is none such."""
    gaps = pc.unique(part["gap"]).to_pylist()
    ends = pc.unique(pc.binary_length(part["second"])).to_pylist()
    if len(gaps) > 1 or len(ends) > 1:
        return None
    if not gaps[0]:
        return "", np.zeros(1, "timedelta64[s]")
    hours, minutes = _whole(part["hour"]), _whole(part["minute"])
    seconds = _whole(part["second"]) if ends[0] else 0 * hours
    if hours.max() >= 24 or minutes.max() >= 60 or seconds.max() >= 60:
        return None
    since = 3600 * hours + 60 * minutes + seconds
    return f"{gaps[0]}hh:mm" + ":ss" * bool(ends[0]), since.astype("timedelta64[s]")


def _whole(digits: pa.Array) -> Ints:
    return np.asarray(digits.cast(pa.int64()))


def _forms(apart: _Apart) -> list[DateForm]:
    """The forms that the values may have, by their lengths."""
    digits = [set(np.unique(lengths).tolist()) for lengths in apart.lengths]
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
        forms.append(DateForm(parts, apart.mark, apart.clock, since))
    return forms
