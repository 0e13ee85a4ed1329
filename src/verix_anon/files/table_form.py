"""Say how an owner's table is read: its form as given, and as recognised (spec §2.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import get_type_hints

import pyarrow as pa

from verix_anon.errors import TableError
from verix_anon.fields import Fields, shown

NULL_TOKENS = ("", "NA", "N/A", "null", "NULL", "NaN")
# How the marks of a text table are called where people read of them.
MARKS = {
    ",": "comma",
    ";": "semicolon",
    "\t": "tab",
    "|": "bar",
    ".": "point",
    "'": "apostrophe",
    "\u2019": "apostrophe",
    " ": "space",
    "\u00a0": "space",
    "\u202f": "space",
}
TYPED = {
    ("delimiter", "tab"): "\t",
    ("delimiter", "\\t"): "\t",
    ("thousands", "none"): "",
    ("quote", "none"): "",
}
"""Words for marks that are hard to type in a shell or a form, by the field that they are for."""
DECIMALS = (".", ",")
THOUSANDS = ("", ".", ",", "'", "\u2019", " ", "\u00a0", "\u202f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a table's file is read; None, or a column that is not named: as recognised.

    What `read_table_as` gives back reads the same file in the same way.

    Examples:
        >>> reading = verix_anon.Reading(delimiter=",", encoding="utf-8")
        >>> table = verix_anon.read_table("people.csv", reading)
    """

    delimiter: str | None = None
    """What stands between the columns of a text table."""
    quote: str | None = None
    """What stands around its fields; empty: nothing does."""
    escape: str | None = None
    """What stands before a quote within quotes; empty: another quote."""
    encoding: str | None = None
    decimal: str | None = None
    """A point or a comma."""
    thousands: str | None = None
    """What groups the digits of numbers; empty: nothing."""
    date_format: str | None = None
    """The form of dates, such as dd.mm.yyyy, in every column that fits it."""
    dates: Mapping[str, str] = field(default_factory=dict)
    """The form of each column of dates; `text` for a column that only looks like dates."""
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Words that mean missing in one column, beside those that do in all."""
    skip: int | None = None
    """Lines above the header."""
    footer: int | None = None
    """Lines below the last row."""
    null_tokens: Sequence[str] = NULL_TOKENS
    """Words of a text table that mean missing."""
    leading_zeros_are_text: bool = True
    """Whether a leading zero keeps a column of a text table text."""
    sheet: str | None = None
    """The sheet of a spreadsheet that is the table; None: the only one."""
    query: str | None = None
    """What to ask a database for, in place of a table of it."""

    def __post_init__(self) -> None:
        for name, choices in (("decimal", DECIMALS), ("thousands", THOUSANDS)):
            if (value := getattr(self, name)) is not None and value not in choices:
                told = ", ".join(map(repr, choices))
                raise TableError(f"{name} must be one of {told}, not {shown(value)}")
        for name in ("delimiter", "quote", "escape"):
            value = getattr(self, name)
            least = 1 if name == "delimiter" else 0
            if value is not None and not (least <= len(value) <= 1 and value not in ("\r", "\n")):
                raise TableError(f"{name} must be one character, not {shown(value)}")
        if self.decimal is not None and self.decimal == self.thousands:
            raise TableError(f"decimal and thousands cannot both be {shown(self.decimal)}")

    def said(self) -> str:
        """What was recognised of a text table, in one line."""
        parts = []
        if self.delimiter in MARKS:
            parts.append(f"{MARKS[self.delimiter]}s")
        elif self.delimiter is not None:
            parts.append(f"{self.delimiter!r} between columns")
        if self.encoding is not None:
            # The mark in front is for Excel; people need not know of it.
            parts.append(self.encoding.removesuffix("-SIG"))
        if self.quote not in (None, "", '"'):
            parts.append(f"quotes {self.quote}")
        if self.decimal is not None:
            parts.append(f"decimal {MARKS[self.decimal]}")
        if self.thousands:
            parts.append(f"thousands {MARKS[self.thousands]}")
        forms = dict.fromkeys(form for form in self.dates.values() if form != "text")
        if forms:
            parts.append("dates " + " and ".join(forms))
        if self.skip:
            parts.append(f"header below {self.skip} line{'s' * (self.skip > 1)}")
        if self.footer:
            parts.append(f"{self.footer} line{'s' * (self.footer > 1)} below the rows left out")
        return ", ".join(parts)

    def to_json(self) -> dict[str, object]:
        """All that is said, as JSON or TOML has it."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        usual = Reading()
        return {
            name: _plain(value) for name, value in found.items() if value != getattr(usual, name)
        }

    @classmethod
    def from_json(cls, given: Fields) -> "Reading":
        """What a roles file or a manifest says."""
        hints = get_type_hints(cls)
        given.only((), optional=hints)
        return cls(**{name: given.typed(name, hints[name]) for name in given.values})

    def but(self, **given: object) -> "Reading":
        """The same, except for what is given beside it; columns are added to those named before."""
        found = {}
        for name, value in given.items():
            known = getattr(self, name)
            found[name] = {**known, **value} if isinstance(value, Mapping) else value
        return replace(self, **found)  # type: ignore[arg-type]


def from_typed(name: str, word: str) -> str:
    """Return what a word means that was typed for a field of `Reading`."""
    return TYPED.get((name, word), word)


def to_typed(name: str, value: object) -> str:
    """Return the word to type for the value of a field."""
    words = [word for (of, word), mark in TYPED.items() if (of, mark) == (name, value)]
    return words[0] if words else str(value)


@dataclass(frozen=True, slots=True)
class Question:
    """What the file does not tell, and what may be answered."""

    sentence: str
    name: str
    """The field of `Reading` that answers it."""
    column: str | None
    answers: tuple[str, ...]

    def __str__(self) -> str:
        """The question, and where the answer goes."""
        option = "--" + {"dates": "date-format"}.get(self.name, self.name).replace("_", "-")
        answers = [a if self.column is None else f"{self.column}={a}" for a in self.answers]
        told = " or ".join(f'{option} "{answer}"' for answer in answers)
        return f"{self.sentence}: say which, with {told}, or in [reading] of the roles file"


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """A table, and how it was read.

    Examples:
        >>> read = verix_anon.read_table_as("people.csv")
        >>> read.reading.delimiter, read.table.num_rows
        (',', 600)
    """

    table: pa.Table
    """Or what reads its columns as they are asked for."""
    reading: Reading
    notes: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    """What must be answered first; until then the table is only good for a draft of roles."""

    def settled(self) -> "Read":
        """The same, if nothing is open.

        Raises:
            TableError: The file can be read in more than one way.
        """
        if self.questions:
            more = len(self.questions) - 1
            told = f" (and {more} more question{'s' * (more > 1)})" if more else ""
            raise TableError(f"{self.questions[0]}{told}")
        return self


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
