"""The people of the awkward tables, and what a table is to the tests: a file, and what is true."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

__all__ = ["PEOPLE", "Awkward", "Person", "columns", "german", "grouped"]


@dataclass(frozen=True, slots=True)
class Person:
    """A patient, as every program below writes one."""

    number: int
    born: date
    sex: str
    postcode: str
    height: float
    cost: float
    ward: str
    cured: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Awkward:
    """A table as a program left it, and the way of its owner from init to a release."""

    name: str
    """As the commands are given it: a file, or the URL of a table."""
    make: Callable[[], None]
    """Writes it into the current folder."""
    true: Mapping[str, Sequence[object]]
    """What it says, by the names of its columns; None where it says nothing."""
    said: Sequence[str] = ()
    """What init must say of it."""
    options: Sequence[str] = ()
    """What init must be told, since it asks in place of a draft."""
    answers: Sequence[str] = ()
    """Lines of the draft that its owner uncomments."""
    added: str = ""
    """What its owner writes below the draft."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Roles that its owner corrects."""
    person: str | None = None
    """The column that tells people apart, where some have several rows."""
    persons: Sequence[object] = ()
    """What stands in it."""


def _people(n: int) -> list[Person]:
    draw = random.Random(14)
    return [
        Person(
            number=4_000 + 7 * i,
            born=date(1931, 1, 1) + timedelta(days=draw.randrange(25_000)),
            sex=draw.choice("mmfffd"),
            postcode=draw.choice(("01067", "01069", "01307", "04103", "10115", "80331")),
            height=round(draw.gauss(1.71, 0.09), 2),
            cost=round(draw.uniform(90, 9_900), 2),
            ward=draw.choice(("Innere", "Chirurgie", "Gynäkologie", "HNO, Augen")),
            cured=draw.choice(("ja", "ja", "nein")),
        )
        for i in range(n)
    ]


PEOPLE = _people(80)


def columns(*names: str, people: Sequence[Person] = PEOPLE) -> list[list[object]]:
    """Some of what there is to know of the people."""
    return [[getattr(person, name) for person in people] for name in names]


def grouped(number: float, thousands: str, decimal: str) -> str:
    """A number with two decimals, as a locale writes it."""
    return f"{number:,.2f}".replace(".", "#").replace(",", thousands).replace("#", decimal)


def german(day: date) -> str:
    return f"{day:%d.%m.%Y}"
