"""The aggregates in a finding's evidence, read back; a verdict file may hold anything."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from verix_anon.errors import TableError

__all__ = ["Curve", "Reading", "Shift", "Sizes", "TreeMap", "clean"]

MOST_NUMBERS = 500
MOST_LEVELS = 51
MOST_CHARACTERS = 100
TOKEN = re.compile(r"[-urwURWM]([1-9][0-9]{0,2})")

Read = TypeVar("Read")


def clean(text: object, most: int = MOST_CHARACTERS) -> str:
    """Text from anywhere as one short line: nothing that is not printable, nothing endless.

    Marks that turn the direction of text around are not printable; letters that run from
    right to left stay, and the page isolates them.
    """
    words = str(text)
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words[:most])
    return shown if len(words) <= most else f"{shown}…"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many classes have which size."""

    at_least: int
    smallest: int
    largest: int
    mean: float
    edges: tuple[float, ...]
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Shift:
    """The SHAP values of one column before and after, and how far they moved."""

    feature: str
    low: float
    high: float
    before: tuple[float, ...]
    after: tuple[float, ...]
    distance: float
    epsilon: float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """The chance to drop a share of the records unseen."""

    drop: tuple[float, ...]
    probability: tuple[float, ...]
    operating_drop: float
    operating_probability: float


@dataclass(frozen=True, slots=True)
class TreeMap:
    """Levels of a tree as runs of a letter and a width."""

    units: int
    levels: tuple[tuple[tuple[str, int], ...], ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One mapping of a verdict or sheet; what is absent is None, what is wrong raises."""

    of: str
    values: Mapping[str, object]

    def has(self, key: str) -> bool:
        """Whether there is such a value."""
        return self.values.get(key) is not None

    def _read(self, key: str, how: Callable[[object], Read]) -> Read | None:
        if not self.has(key):
            return None
        try:
            return how(self.values[key])
        except (
            KeyError, TypeError, ValueError, AttributeError, AssertionError, OverflowError
        ):  # fmt: skip
            raise TableError(f"{key!r} of {self.of} is not what verix-anon writes") from None

    def number(self, key: str) -> float | None:
        """A finite number."""
        return self._read(key, _number)

    def count(self, key: str) -> int | None:
        """A whole number that is not negative."""
        return self._read(key, _count)

    def numbers(self, key: str) -> tuple[float, ...] | None:
        """Not too many finite numbers."""
        return self._read(key, _numbers)

    def lines(self, key: str, most: int = 10) -> list[str]:
        """Short lines of text, none if there are none."""
        return self._read(key, lambda value: [clean(v, 400) for v in _list(value)[:most]]) or []

    def mapping(self, key: str) -> "Reading | None":
        """A mapping within this one."""
        return self._read(key, lambda value: Reading(f"{key} of {self.of}", _mapping(value)))

    def mappings(self, key: str, most: int = 100) -> "list[Reading]":
        """Mappings within this one."""
        return (
            self._read(
                key,
                lambda value: [
                    Reading(f"{key} of {self.of}", _mapping(item)) for item in _list(value)[:most]
                ],
            )
            or []
        )

    def sizes(self, key: str) -> Sizes | None:
        """A histogram of class sizes."""
        return self._read(key, _sizes)

    def curve(self, key: str) -> Curve | None:
        """A curve of evasion."""
        return self._read(key, _curve)

    def tree_map(self, key: str) -> TreeMap | None:
        """A map of the tree."""
        return self._read(key, _tree_map)

    def shifts(self) -> list[Shift]:
        """SHAP distributions, with the distance and threshold of each."""
        found = self._read("shap", lambda value: _shifts(value, self.values))
        return found or []


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return list(value)


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError
    return value


def _numbers(value: object) -> tuple[float, ...]:
    values = _list(value)
    if len(values) > MOST_NUMBERS:
        raise ValueError
    return tuple(_number(v) for v in values)


def _sizes(value: object) -> Sizes:
    found = _mapping(value)
    edges, counts = _numbers(found["edges"]), _numbers(found["counts"])
    if len(edges) != len(counts) + 1 or list(edges) != sorted(set(edges)) or min(counts) < 0:
        raise ValueError
    return Sizes(
        at_least=_count(found["at_least"]),
        smallest=_count(found["smallest"]),
        largest=_count(found["largest"]),
        mean=_number(found["mean"]),
        edges=edges,
        counts=counts,
    )


def _curve(value: object) -> Curve:
    found = _mapping(value)
    drop, probability = _numbers(found["drop"]), _numbers(found["probability"])
    if len(drop) != len(probability) or min(drop) <= 0:
        raise ValueError
    if min(probability) < 0 or max(probability) > 1:
        raise ValueError
    return Curve(
        drop, probability, _number(found["operating_drop"]), _number(found["operating_probability"])
    )


def _tree_map(value: object) -> TreeMap:
    found = _mapping(value)
    units, levels = _count(found["units"]), _list(found["levels"])
    if not 1 <= units <= MOST_NUMBERS or not 1 <= len(levels) <= MOST_LEVELS:
        raise ValueError
    return TreeMap(units, tuple(_level(str(level), units) for level in levels))


def _level(text: str, units: int) -> tuple[tuple[str, int], ...]:
    tokens = text.split(" ", units)
    matches = [TOKEN.fullmatch(token) for token in tokens]
    runs = tuple((match[0][0], int(match[1])) for match in matches if match is not None)
    if len(runs) != len(tokens) or sum(width for _, width in runs) != units:
        raise ValueError
    return runs


def _shifts(value: object, evidence: Mapping[str, object]) -> list[Shift]:
    distances, epsilons = _numbers(evidence["distance"]), _list(evidence["epsilon"])
    found = [_mapping(item) for item in _list(value)]
    shifts = [
        Shift(
            feature=clean(item["feature"]),
            low=_number(item["from"]),
            high=_number(item["to"]),
            before=_numbers(item["before"]),
            after=_numbers(item["after"]),
            distance=distance,
            epsilon=None if epsilon is None else _number(epsilon),
        )
        for item, distance, epsilon in zip(found, distances, epsilons, strict=True)
    ]
    for shift in shifts:
        n_bins = len(shift.before)
        if n_bins == 0 or len(shift.after) != n_bins or not shift.low < shift.high:
            raise ValueError
    return shifts
