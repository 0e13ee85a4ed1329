"""Dates whose months have names, English, German or French (spec §2.5)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time

__all__ = ["MonthForm", "as_month_form", "looks_like_months", "month_forms"]

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


def looks_like_months(value: str) -> bool:
    """Whether it has the form of such a date, with a name of any language."""
    found = next(filter(None, (pattern.fullmatch(value) for pattern in VALUES)), None)
    return found is not None and found["m"] in ANY


def _time_of(found: re.Match[str]) -> str:
    return "" if not found["gap"] else f"{found['gap']}hh:mm" + (":ss" if found["second"] else "")
