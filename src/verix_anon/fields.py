"""Reads fields of JSON or TOML strictly, and says in a sentence what is wrong with one.

The bytes may come from an attacker. Fields that occur twice, NaN, deep nesting and numbers with
thousands of digits are refused. An error repeats only a few characters of the input, so that it
cannot fill a log.
"""

import json
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import UnionType
from typing import Any, NoReturn, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

from verix_anon.errors import Error

MAX_SHOWN = 60
COUNTS = range(2**63)
HIDDEN = re.compile(r"[^\n -~]")

Read = TypeVar("Read")
Choice = TypeVar("Choice", bound=StrEnum)


def to_json(value: object) -> str:
    """Write readable JSON without control characters, which a terminal would obey."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    # Only strings hold characters beyond ASCII, and JSON allows an escape for each of them.
    return HIDDEN.sub(lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], text)


def shown(value: object) -> str:
    """Return a value as errors show it: shortened, because a hostile value may be huge."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return "…"
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def printable(text: str, most: int | None = None) -> str:
    """Return untrusted text as one line, without characters that a terminal or page obeys.

    Text longer than `most` characters is cut and ends in an ellipsis. Marks that change the
    direction of text are replaced; letters that run from right to left stay.
    """
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:most])
    return line if most is None or len(text) <= most else f"{line}…"


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its word, such as 1 row or 2 rows."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def odds(probability: float) -> str:
    """Return a chance as people read it, such as 1 in 43,000."""
    if probability < 1e-6:
        return "less than 1 in a million"
    return f"1 in {1 / probability:,.0f}" if probability < 0.1 else f"{probability:.0%}"


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one object. Errors are of type `fail` and begin with `where`."""

    values: Mapping[str, object]
    where: str
    fail: type[Error]

    @classmethod
    def parse(cls, data: bytes | str, where: str, fail: type[Error]) -> "Fields":
        """Read a JSON object from text, or from bytes in UTF-8."""
        try:
            text = data if isinstance(data, str) else data.decode("utf-8")
            parsed = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise fail(f"{where}: not JSON in UTF-8 ({error})") from None
        if not isinstance(parsed, dict):
            raise fail(f"{where}: not a JSON object")
        return cls(parsed, where, fail)

    def has(self, name: str) -> bool:
        """Whether the field exists and is not null."""
        return self.values.get(name) is not None

    def wrong(self, name: str, what: str) -> Error:
        """Return the error that says what a field must be."""
        found = shown(self.values.get(name))
        return self.fail(f"{self.where}: {name} must be {what}, not {found}")

    def only(self, names: Collection[str], optional: Collection[str] = ()) -> None:
        """Refuse a missing field, and any field that is neither named nor optional."""
        for name in sorted(names):
            self.value(name)
        unknown = self.values.keys() - set(names) - set(optional)
        if unknown:
            raise self.fail(f"{self.where}: unknown field {shown(min(unknown))}")

    def expect(self, name: str, value: str | int) -> None:
        """Refuse any other value, and an equal value of another type."""
        found = self.values.get(name)
        if type(found) is not type(value) or found != value:
            raise self.wrong(name, repr(value))

    def value(self, name: str) -> object:
        """Return a field of any type; it must exist."""
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
        """A whole number. True and false do not count as numbers."""
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
        """Return `n_bytes` bytes from lower-case hexadecimal digits."""
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

    def record(self, kind: type[Read], optional: Collection[str] = (), **given: object) -> Read:
        """Make a dataclass from the fields of the same names, each read as its type says.

        Fields that are `given` are not read; `optional` ones that are not there have their default.
        """
        make: Callable[..., Read] = kind
        found = {
            name: self.typed(name, hint)
            for name, hint in get_type_hints(kind).items()
            if name not in given and (name not in optional or self.has(name))
        }
        return make(**found, **given)

    def typed(self, name: str, hint: Any) -> Any:
        """A field as its type says: one of `BY_TYPE`, an enum, or a dataclass as in `record`.

        Also a mapping of these by name, a list of dataclasses, and what may be missing or null.
        """
        hint = getattr(hint, "__supertype__", hint)
        if hint in BY_TYPE:
            return BY_TYPE[hint](self, name)
        origin, members = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            return self.typed(name, members[0]) if self.has(name) else None
        if origin is Mapping:
            inner = self.inner(name)
            return {each: inner.typed(each, members[1]) for each in inner.values}
        if origin is tuple:
            return tuple(each.record(members[0]) for each in self.each(name))
        if issubclass(hint, StrEnum):
            return self.choice(name, hint)
        return self.inner(name).record(hint)

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
    # Compare, do not convert: a whole number may be too large for a float. NaN compares as false.
    return abs(value) <= sys.float_info.max


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field occurs twice")
    return fields


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a finite number")


BY_TYPE: Mapping[object, Callable[[Fields, str], object]] = {
    object: Fields.value,
    str: Fields.text,
    bytes: Fields.digest,
    bool: Fields.flag,
    int: lambda fields, name: fields.whole(name, COUNTS),
    float: Fields.number,
    tuple[str, ...]: Fields.texts,
    Sequence[str]: Fields.texts,
    tuple[float, ...]: Fields.numbers,
}
