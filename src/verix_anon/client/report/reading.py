"""The aggregates in a finding's evidence, read back; a verdict file may hold anything."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from verix_anon.fields import Fields

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
    """Fields of a verdict's evidence or of a sheet: None if absent, an error if wrong."""

    fields: Fields

    def _read(self, key: str, how: Callable[[Fields, str], Read]) -> Read | None:
        return how(self.fields, key) if self.fields.has(key) else None

    def number(self, key: str) -> float | None:
        """A finite number."""
        return self._read(key, Fields.number)

    def count(self, key: str) -> int | None:
        """A whole number that is not negative."""
        return self._read(key, _count)

    def numbers(self, key: str) -> tuple[float, ...] | None:
        """Not too many finite numbers."""
        return self._read(key, _numbers)

    def lines(self, key: str, most: int = 10) -> list[str]:
        """Short lines of text, none if there are none."""
        return [clean(line, 400) for line in (self._read(key, Fields.items) or ())[:most]]

    def line(self, key: str, most: int = MOST_CHARACTERS) -> str:
        """One short line, empty if there is none."""
        return clean(self.fields.values.get(key, ""), most)

    def inner(self, key: str) -> "Reading | None":
        """The fields of an object within this one."""
        found = self._read(key, Fields.inner)
        return None if found is None else Reading(found)

    def each(self, key: str, most: int = 100) -> "list[Reading]":
        """The fields of the first objects in a list."""
        return [Reading(found) for found in (self._read(key, Fields.each) or ())[:most]]

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
        return self._read("shap", _shifts) or []


def _count(fields: Fields, key: str) -> int:
    return fields.whole(key, range(2**63))


def _numbers(fields: Fields, key: str) -> tuple[float, ...]:
    found = fields.numbers(key)
    if len(found) > MOST_NUMBERS:
        raise fields.wrong(key, f"at most {MOST_NUMBERS} numbers")
    return found


def _sizes(fields: Fields, key: str) -> Sizes:
    found = fields.inner(key)
    edges, counts = _numbers(found, "edges"), _numbers(found, "counts")
    is_histogram = len(edges) == len(counts) + 1 > 1 and list(edges) == sorted(set(edges))
    if not is_histogram or min(counts) < 0:
        raise fields.wrong(key, "a histogram")
    return Sizes(
        at_least=_count(found, "at_least"),
        smallest=_count(found, "smallest"),
        largest=_count(found, "largest"),
        mean=found.number("mean"),
        edges=edges,
        counts=counts,
    )


def _curve(fields: Fields, key: str) -> Curve:
    found = fields.inner(key)
    drop, probability = _numbers(found, "drop"), _numbers(found, "probability")
    is_curve = len(drop) == len(probability) > 0 and min(drop) > 0
    if not is_curve or min(probability) < 0 or max(probability) > 1:
        raise fields.wrong(key, "a curve of probabilities")
    return Curve(
        drop, probability, found.number("operating_drop"), found.number("operating_probability")
    )


def _tree_map(fields: Fields, key: str) -> TreeMap:
    found = fields.inner(key)
    units, levels = _count(found, "units"), found.texts("levels")
    runs = tuple(_runs(level, units) for level in levels[:MOST_LEVELS])
    is_map = 1 <= units <= MOST_NUMBERS and 1 <= len(levels) <= MOST_LEVELS
    if not is_map or not all(sum(width for _, width in level) == units for level in runs):
        raise fields.wrong(key, "a map of a tree")
    return TreeMap(units, runs)


def _runs(level: str, units: int) -> tuple[tuple[str, int], ...]:
    """The runs of one level; none if it is anything else."""
    tokens = level.split(" ", min(units, MOST_NUMBERS))
    matches = [TOKEN.fullmatch(token) for token in tokens]
    runs = tuple((match[0][0], int(match[1])) for match in matches if match is not None)
    return runs if len(runs) == len(tokens) else ()


def _shifts(fields: Fields, key: str) -> list[Shift]:
    distances, epsilons = _numbers(fields, "distance"), fields.items("epsilon")
    found = fields.each(key)
    if not len(distances) == len(epsilons) == len(found):
        raise fields.wrong(key, "one distribution for each distance and epsilon")
    return [
        _shift(replace(item, values={**item.values, "distance": distance, "epsilon": epsilon}))
        for item, distance, epsilon in zip(found, distances, epsilons, strict=True)
    ]


def _shift(found: Fields) -> Shift:
    shift = Shift(
        feature=clean(found.value("feature")),
        low=found.number("from"),
        high=found.number("to"),
        before=_numbers(found, "before"),
        after=_numbers(found, "after"),
        distance=found.number("distance"),
        epsilon=Reading(found).number("epsilon"),
    )
    if not len(shift.before) == len(shift.after) > 0 or not shift.low < shift.high:
        raise found.wrong("after", "a distribution over the same bins as before")
    return shift
