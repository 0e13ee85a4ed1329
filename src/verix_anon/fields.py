"""Strict fields of JSON or TOML: each is what it must be, or the caller's error says what is not.

The bytes may come from anybody: a field that occurs twice, NaN, nesting without end and numbers of
thousands of digits are refused in a sentence, and no sentence repeats more than a few characters.
"""

import json
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, TypeGuard, TypeVar, get_type_hints

from verix_anon.errors import Error

MAX_SHOWN = 60
COUNTS = range(2**63)
HIDDEN = re.compile(r"[^\n -~]")

Read = TypeVar("Read")
Choice = TypeVar("Choice", bound=StrEnum)


def to_json(value: object) -> str:
    """JSON as we write it for people and programs: readable, with nothing a terminal would obey."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    # Only texts have characters beyond ASCII, and in a text each may be written as an escape.
    return HIDDEN.sub(lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], text)


def shown(value: object) -> str:
    """A value as an error shows it: a hostile file must not make a sentence of megabytes."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return "…"
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def printable(text: str, most: int | None = None) -> str:
    """Text from anywhere as one line, with nothing that a terminal or a page would obey.

    Of more than `most` characters, the first ones and an ellipsis. Marks that turn the direction of
    text around are not printable; letters that run from right to left stay.
    """
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:most])
    return line if most is None or len(text) <= most else f"{line}…"


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one object; `fail` is raised in a sentence that begins with `where`."""

    values: Mapping[str, object]
    where: str
    fail: type[Error]

    @classmethod
    def parse(cls, data: bytes | str, where: str, fail: type[Error]) -> "Fields":
        """The object that text, or bytes in UTF-8, spell."""
        try:
            text = data if isinstance(data, str) else data.decode("utf-8")
            parsed = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise fail(f"{where}: not JSON in UTF-8 ({error})") from None
        if not isinstance(parsed, dict):
            raise fail(f"{where}: not a JSON object")
        return cls(parsed, where, fail)

    def has(self, name: str) -> bool:
        """Whether there is such a field, and it is not null."""
        return self.values.get(name) is not None

    def wrong(self, name: str, what: str) -> Error:
        """The error that says what a field must be."""
        found = shown(self.values.get(name))
        return self.fail(f"{self.where}: {name} must be {what}, not {found}")

    def only(self, names: Collection[str], optional: Collection[str] = ()) -> None:
        """Refuse a missing field, and one that has no business here."""
        for name in sorted(names):
            self.value(name)
        unknown = self.values.keys() - set(names) - set(optional)
        if unknown:
            raise self.fail(f"{self.where}: unknown field {shown(min(unknown))}")

    def expect(self, name: str, value: str | int) -> None:
        """Refuse anything but this very value."""
        found = self.values.get(name)
        if type(found) is not type(value) or found != value:
            raise self.wrong(name, repr(value))

    def value(self, name: str) -> object:
        """A field that must be there, whatever it holds."""
        if name not in self.values:
            raise self.fail(f"{self.where}: field {name!r} is missing")
        return self.values[name]

    def _typed(self, name: str, kind: type[Read], what: str) -> Read:
        value = self.value(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(name, what)
        return value

    def text(self, name: str) -> str:
        """Text."""
        return self._typed(name, str, "text")

    def flag(self, name: str) -> bool:
        """True or false."""
        return self._typed(name, bool, "true or false")

    def whole(self, name: str, within: range | None = None) -> int:
        """A whole number; true is none."""
        what = f"a whole number from {within[0]} to {within[-1]}" if within else "a whole number"
        value = self._typed(name, int, what)
        if within is not None and value not in within:
            raise self.wrong(name, what)
        return value

    def number(self, name: str) -> float:
        """A finite number."""
        value = self.value(name)
        if not _is_number(value):
            raise self.wrong(name, "a finite number")
        return value

    def all_numbers(self) -> dict[str, float]:
        """Every field, each a number."""
        return {name: self.number(name) for name in self.values}

    def choice(self, name: str, words: type[Choice]) -> Choice:
        """One of the words of an enum."""
        what = f"one of {', '.join(words)}"
        value = self._typed(name, str, what)
        if value not in set(words):
            raise self.wrong(name, what)
        return words(value)

    def digest(self, name: str, n_bytes: int = 32) -> bytes:
        """So many bytes in lower-case hexadecimal digits."""
        what = f"{2 * n_bytes} lower-case hexadecimal digits"
        value = self._typed(name, str, what)
        if not re.fullmatch(rf"[0-9a-f]{{{2 * n_bytes}}}", value):
            raise self.wrong(name, what)
        return bytes.fromhex(value)

    def items(self, name: str) -> Sequence[object]:
        """A list of anything."""
        value = self.value(name)
        if not isinstance(value, list | tuple):
            raise self.wrong(name, "a list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of text."""
        return self._all(name, str, "a list of text")

    def wholes(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return self._all(name, int, "a list of whole numbers")

    def _all(self, name: str, kind: type[Read], what: str) -> tuple[Read, ...]:
        values = self.items(name)
        found = tuple(v for v in values if isinstance(v, kind) and not isinstance(v, bool))
        if len(found) != len(values):
            raise self.wrong(name, what)
        return found

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of finite numbers."""
        found = tuple(value for value in self.items(name) if _is_number(value))
        if len(found) != len(self.items(name)):
            raise self.wrong(name, "a list of finite numbers")
        return found

    def record(self, kind: type[Read], **given: object) -> Read:
        """A dataclass whose fields are named as these are; those that are `given` are not read.

        Each is read by its type: text, true or false, a finite number, a whole number from 0 up,
        or a list of text or numbers.
        """
        make: Callable[..., Read] = kind
        own = get_type_hints(kind)
        found = {n: BY_TYPE[own[n]](self, n) for n in own if n not in given}
        return make(**found, **given)

    def inner(self, name: str) -> "Fields":
        """The fields of an object within this one."""
        return self._inner(name, self.value(name))

    def each(self, name: str) -> "tuple[Fields, ...]":
        """The fields of each object in a list."""
        return tuple(self._inner(f"{name}[{i}]", v) for i, v in enumerate(self.items(name)))

    def _inner(self, name: str, value: object) -> "Fields":
        if not isinstance(value, Mapping):
            raise self.fail(f"{self.where}: {name} must hold named fields, not {shown(value)}")
        return Fields(value, f"{self.where}: {name}", self.fail)


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # Compared, not converted: a whole number may be too large for that. NaN is not below anything.
    return abs(value) <= sys.float_info.max


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field occurs twice")
    return fields


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


BY_TYPE: Mapping[object, Callable[[Fields, str], object]] = {
    str: Fields.text,
    bool: Fields.flag,
    int: lambda fields, name: fields.whole(name, COUNTS),
    float: Fields.number,
    tuple[str, ...]: Fields.texts,
    tuple[float, ...]: Fields.numbers,
}
