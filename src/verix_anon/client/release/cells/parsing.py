"""Cells read back: the ends of an interval, the labels of a set."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

import numpy as np
import numpy.typing as npt

from verix_anon.client.release.cells.labels import ANY
from verix_anon.protocol.contract import Unit
from verix_anon.protocol.generalize import NUMPY_UNITS

__all__ = ["Dates", "Ends", "Labels", "Numbers", "interval"]

PERIOD = re.compile(r"\(?(-?\d{4,})(?:-(?:M(\d\d)|Q([1-4])))?\)?")
LABEL = r'(?:"(?:[^"\\]|\\.)*"|[^,{}"]+)'
EACH = re.compile(f"({LABEL})(?:, |$)")
SET = re.compile(rf"\{{{LABEL}(?:, {LABEL})*\}}")
AND_MORE = re.compile(SET.pattern + r" and [\d,]+ more")
RANGE = re.compile(rf"({LABEL}?)\.\.({LABEL})")
End = float | date | datetime | None


class Ends(Protocol):
    """How one end of an interval is read; ValueError if it is none."""

    @property
    def lowest(self) -> End:
        """What stands for an end that is open below."""

    @property
    def highest(self) -> End:
        """What stands for an end that is open above."""

    def read(self, text: str, *, is_last: bool) -> End:
        """The value."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Ends that are numbers; an open one is infinite."""

    lowest: float = -math.inf
    highest: float = math.inf

    def read(self, text: str, *, is_last: bool) -> End:
        """The number, for both ends alike."""
        return float(text.strip("()"))


@dataclass(frozen=True, slots=True)
class Dates:
    """Ends that are dates, or the first and last moment of a period; an open one is None."""

    unit: Unit
    lowest: None = None
    highest: None = None

    def read(self, text: str, *, is_last: bool) -> End:
        """The date; ValueError also for one that Python does not know."""
        period = PERIOD.fullmatch(text)
        kind = NUMPY_UNITS[self.unit]
        if period is None:
            return _moment(np.array([text.strip("()")], f"M8[{kind}]"))
        year, month, quarter = period.groups()
        begin = 12 * (int(year) - 1970) + int(month or 3 * int(quarter or 1) - 2) - 1
        length = 1 if month else 3 if quarter else 12
        if not is_last:
            return _moment(np.array([begin], "M8[M]").astype(f"M8[{kind}]"))
        return _moment(np.array([begin + length], "M8[M]").astype(f"M8[{kind}]") - 1)


def _moment(value: "npt.NDArray[np.datetime64]") -> date | datetime:
    found = value.item()
    if not isinstance(found, date):
        raise ValueError("beyond the years 1 to 9999")
    return found


def interval(text: str, ends: Ends) -> tuple[End, End]:
    """The least and the greatest value that a cell leaves possible."""
    low, _, high = text.partition("..")
    high = high or low
    return (
        ends.lowest if low.startswith("<=") else ends.read(low.removeprefix(">="), is_last=False),
        ends.highest if high.startswith(">=") else ends.read(high.removeprefix("<="), is_last=True),
    )


class Labels:
    """Sets of labels and ranges of them, of a column whose labels are known, in order."""

    def __init__(self, levels: Sequence[str], *, is_ordered: bool) -> None:
        self.levels = list(levels)
        self.is_ordered = is_ordered
        self.place = {label: i for i, label in enumerate(levels)}

    def read(self, text: str) -> list[str]:
        """The labels that a cell leaves possible; ValueError if it is none of ours."""
        if text == ANY:
            return self.levels
        if text.startswith("not "):
            left_out = {*self._set(text.removeprefix("not "))}
            return [label for label in self.levels if label not in left_out]
        if text.startswith("{"):
            # Which others are meant is not said.
            return self.levels if AND_MORE.fullmatch(text) else self._set(text)
        found = RANGE.fullmatch(text) if self.is_ordered else None
        if found is None:
            return [self._known(text)]
        low, high = (self.place[self._known(end)] for end in found.groups())
        return self.levels[low : high + 1]

    def _set(self, text: str) -> list[str]:
        if not SET.fullmatch(text):
            raise ValueError(text)
        return [self._known(label) for label in EACH.findall(text[1:-1])]

    def _known(self, text: str) -> str:
        label = json.loads(text) if text.startswith('"') else text
        if label not in self.place:
            raise ValueError(label)
        return str(label)
