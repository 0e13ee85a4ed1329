"""Read dates in text columns: a form fits only if every value prints back the same (spec §2.5)."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from verix_anon.arrays import Ints
from verix_anon.errors import TableError

Names = tuple[str, ...]


def _cased(spelled: Sequence[str]) -> tuple[Names, ...]:
    found = [case(names) for names in spelled for case in (str, str.lower, str.upper, str.title)]
    return tuple(tuple(names.split()) for names in dict.fromkeys(found))


_MONTHS = tomllib.loads((files("verix_anon.files.tables") / "months.toml").read_text("utf-8"))
NAMES = {"mmmm": _cased(_MONTHS["long"]), "mmm": _cased(_MONTHS["short"])}
"""What may stand for a month, all twelve in one language and one case, long or short."""
ANY = frozenset(name for tables in NAMES.values() for names in tables for name in names)


ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
ISO_TIMES = (pa.timestamp("us"), pa.timestamp("us", tz="UTC"))
CLOCK = r"(?:(?P<gap>[ T%s])(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?)?"
# For Python and for Arrow, whose expressions cannot ask for the same mark again.
DIGITS = re.compile(
    r"^(?P<first>[0-9]{1,4})(?P<mark>[./ -])(?P<middle>[0-9]{1,2})(?P<again>[./ -])"
    rf"(?P<last>[0-9]{{1,4}}){CLOCK % ''}$"
)
MONTH = r"[^\W\d_]{3,9}(?:\.(?= ))?"
NAMED = (
    re.compile(
        rf"(?P<first>[0-9]{{1,2}})(?P<mark>\. |[-/. ]|)(?P<middle>{MONTH})(?P<again>[-/. ]|)"
        rf"(?P<last>[0-9]{{2,4}}){CLOCK % ':'}"
    ),
    re.compile(
        rf"(?P<first>{MONTH})(?P<mark> )(?P<middle>[0-9]{{1,2}})(?P<again>,? )"
        rf"(?P<last>[0-9]{{2,4}}){CLOCK % ':'}"
    ),
)
"""Values in which a month has a name, behind the day or in front of it."""
END = r"(?:(?P<gap>[ T%s])hh:mm(?P<second>:ss)?)?(?: from (?P<since>[0-9]{4}))?"
FORMS = (
    re.compile(rf"(dd?)(\. |[-/. ]|)(mmmm?)([-/. ]|)(yyyy|yy){END % ':'}"),
    re.compile(rf"(mmmm?)( )(dd?)(,? )(yyyy|yy){END % ':'}"),
    re.compile(rf"(dd?|mm?|yyyy|yy)([./ -])(dd?|mm?)(\2)(dd?|mm?|yyyy|yy){END % ''}"),
)
ORDERS = ("dmy", "mdy", "ymd")
NO_YEAR = 0
"""Stands for an unknown first year: it is not stated which century two digits mean."""
Moments = NDArray[np.datetime64]


@dataclass(frozen=True, slots=True, eq=False)
class _Apart:
    """Values split into their parts, which all have the same marks between them."""

    numbers: Sequence[Ints]
    """The numbers of each part; 0 for a month that has a name."""
    lengths: Sequence[Ints]
    months: Sequence[str]
    """The names of the months, if they have names."""
    order: Sequence[str]
    """Which part is the day, the month and the year, such as `dmy`; several if not known."""
    marks: tuple[str, str]
    clock: str
    """Such as ` hh:mm`."""
    since_midnight: NDArray[np.timedelta64]


@dataclass(frozen=True, slots=True)
class DateForm:
    """A form of dates: how day, month and year are written, and in which order."""

    parts: tuple[str, str, str]
    marks: tuple[str, str]
    """The marks between the parts."""
    time: str = ""
    """Such as ` hh:mm`."""
    first_year: int | None = None
    """The first of the hundred years that two digits may mean."""
    names: Names = ()
    """The names of the months, if the form has names."""

    def __str__(self) -> str:
        """Return the form as people write it, such as dd.mm.yyyy or d. mmmm yyyy."""
        since = f" from {self.first_year:04}" if self.first_year else ""
        first, middle, last = self.parts
        return f"{first}{self.marks[0]}{middle}{self.marks[1]}{last}{self.time}{since}"

    @property
    def order(self) -> str:
        """Which part is the day, the month and the year."""
        return "".join(part[0] for part in self.parts)

    @property
    def month(self) -> str:
        """How the month is written, such as mm or mmmm."""
        return self.parts[self.order.index("m")]

    def in_languages(self, months: Sequence[str]) -> Iterator["DateForm"]:
        """Yield this form with the month names of each language that has all of these."""
        for names in NAMES[self.month]:
            if {*months} <= {*names}:
                yield replace(self, names=names)

    def read(self, apart: _Apart) -> Moments | None:
        """Return the dates, or None if a value does not print back the same as a date."""
        if (apart.marks, apart.clock) != (self.marks, self.time) or self.order not in apart.order:
            return None
        said = {}
        for part, numbers, lengths in zip(self.parts, apart.numbers, apart.lengths, strict=True):
            printed = 1 + (numbers >= 10) if len(part) == 1 else len(part)
            if part not in NAMES and np.any(lengths != printed):
                return None
            said[part[0]] = numbers
        if self.names:
            said["m"] = np.array([self.names.index(name) + 1 for name in apart.months])
        year = said["y"]
        if "yy" in self.parts:
            # Any hundred years will do to see whether there are such days.
            first = self.first_year or 2000
            year = year + first - first % 100 + 100 * (year < first % 100)
        month, day = said["m"], said["d"]
        months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        days: Moments = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
        # The 31st of February becomes a day in March, and so does not print back the same.
        is_day = (days.astype("datetime64[M]") == months) & (month >= 1) & (month <= 12)
        if not (is_day & (year >= 1) & (year <= 9999)).all():
            return None
        return apart.since_midnight + days.astype("datetime64[us]") if self.time else days


@dataclass(frozen=True, slots=True, eq=False)
class Dates:
    """A form that every value of a column has, and the column as dates or times."""

    form: DateForm
    values: pa.ChunkedArray

    @property
    def lacks_century(self) -> bool:
        """Whether it is not stated which years two digits mean."""
        return self.form.first_year == NO_YEAR


def as_form(text: str) -> DateForm:
    """Read a form that people write as dd.mm.yyyy, d. mmmm yyyy, or with yy from 1925."""
    found = next(filter(None, (pattern.fullmatch(text) for pattern in FORMS)), None)
    parts = found.group(1, 3, 5) if found else ()
    if found is None or sorted(part[0] for part in parts) != ["d", "m", "y"]:
        raise TableError(
            f"date-format: {text[:40]!r} is not a form of dates; write it with dd, mm, yyyy and"
            " hh:mm, such as dd.mm.yyyy, d/m/yyyy hh:mm, or with mmm for the name of a month"
        )
    if ("yy" in parts) != (found["since"] is not None):
        raise TableError(
            f"date-format: {text[:40]!r}: two digits of a year need the first year that they may"
            f" mean, and only they do, such as '{text.partition(' from ')[0][:30]} from 1925'"
        )
    clock = f"{found['gap']}hh:mm{found['second'] or ''}" if found["gap"] else ""
    since = int(found["since"]) if found["since"] else None
    first, middle, last = parts
    return DateForm((first, middle, last), (found[2], found[4]), clock, since)


def iso_dates(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the column as dates or times if every value has the form of ISO 8601."""
    first = next((v.as_py() for v in column if v.is_valid), "")
    if not ISO.match(first):
        return None
    lengths = pc.min_max(pc.binary_length(column))
    if lengths["max"].as_py() == 10 and lengths["min"].as_py() == 10:
        # Days repeat, so look at each distinct day once.
        coded = column.dictionary_encode()
        days = _iso(coded.chunk(0).dictionary, ISO.pattern + "$", [pa.date32()])
        return None if days is None else pc.take(days, _places(coded))
    return _iso(column, ISO.pattern + "[T ]", ISO_TIMES)


def _iso(
    texts: pa.ChunkedArray | pa.Array, pattern: str, kinds: Sequence[pa.DataType]
) -> pa.ChunkedArray | pa.Array | None:
    """Cast the texts to the first of these types that holds them all."""
    if not pc.all(pc.match_substring_regex(texts, f"^{pattern}"), min_count=0).as_py():
        return None
    for kind in kinds:
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def _places(coded: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the index of each value among the distinct values, which all chunks share."""
    return pa.chunked_array([chunk.indices for chunk in coded.chunks])


def looks_like_dates(values: Sequence[str]) -> bool:
    """Whether at least half of these values are dates in some form."""

    def is_date(value: str) -> bool:
        if found := DIGITS.fullmatch(value):
            return bool(found["mark"] == found["again"])
        by_name = zip(NAMED, ("middle", "first"), strict=True)
        return any((found := p.fullmatch(value)) and found[month] in ANY for p, month in by_name)

    return 2 * sum(map(is_date, values)) >= max(1, len(values))


def dates_in(column: pa.ChunkedArray, given: DateForm | None) -> list[Dates]:
    """Return the forms that fit every value, without those that give the same dates again."""
    if column.null_count == len(column):
        return []
    coded = column.dictionary_encode()
    apart = _apart(coded.chunk(0).dictionary)
    found: list[tuple[DateForm, pa.Array]] = []
    for form in () if apart is None else _forms(apart, given):
        read = form.read(apart) if apart is not None else None
        if read is not None and not any(pa.array(read).equals(others) for _, others in found):
            found.append((form, pa.array(read)))
    return [Dates(form, pc.take(days, _places(coded))) for form, days in found]


def _apart(texts: pa.Array) -> _Apart | None:
    """Split dates into parts; None if a value is not a date, or if their marks differ."""
    found = pc.extract_regex(texts, DIGITS.pattern)
    if not found.null_count:
        return _in_parts(dict(zip(DIGITS.groupindex, found.flatten(), strict=True)), ORDERS)
    for pattern, order in zip(NAMED, ORDERS, strict=False):
        each = [pattern.fullmatch(text) for text in texts.to_pylist()]
        if all(each):
            names = pattern.groupindex
            part = {name: pa.array([one and (one[name] or "") for one in each]) for name in names}
            return _in_parts(part, (order,))
    return None


def _in_parts(part: Mapping[str, pa.Array], order: Sequence[str]) -> _Apart | None:
    marks = [pc.unique(part[name]).to_pylist() for name in ("mark", "again")]
    clock = _clock(part)
    # If all parts are digits, both marks must be the same.
    is_named = len(order) == 1
    if {len(each) for each in marks} != {1} or clock is None or (marks[0] != marks[1]) > is_named:
        return None
    numbers, lengths, months = [], [], list[str]()
    for at, name in enumerate(("first", "middle", "last")):
        is_month = is_named and order[0][at] == "m"
        months += part[name].to_pylist() if is_month else []
        numbers.append(np.zeros(len(part[name]), np.int64) if is_month else _whole(part[name]))
        lengths.append(np.asarray(pc.binary_length(part[name])))
    return _Apart(numbers, lengths, months, order, (marks[0][0], marks[1][0]), *clock)


def _clock(part: Mapping[str, pa.Array]) -> tuple[str, NDArray[np.timedelta64]] | None:
    """Return the form of the times, and the times since midnight; None if they have no form."""
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


def _forms(apart: _Apart, given: DateForm | None) -> Iterator[DateForm]:
    """Yield the forms that the values may have by their lengths, or only the given form."""
    if given is not None:
        is_named = given.month in NAMES
        if is_named == bool(apart.months):
            yield from given.in_languages(apart.months) if is_named else [given]
        return
    digits = [set(np.unique(lengths).tolist()) for lengths in apart.lengths]
    for order in apart.order:
        at, month = order.index("y"), order.index("m") if apart.months else None
        if digits[at] not in ({2}, {4}) or any(
            d - {1, 2} for i, d in enumerate(digits) if i not in (at, month)
        ):
            continue
        for name in NAMES if apart.months else [""]:
            first, middle, last = (
                name if i == month else order[i] * (max(lengths) if i == at else min(lengths))
                for i, lengths in enumerate(digits)
            )
            since = NO_YEAR if digits[at] == {2} else None
            form = DateForm((first, middle, last), apart.marks, apart.clock, since)
            yield from form.in_languages(apart.months) if apart.months else [form]
