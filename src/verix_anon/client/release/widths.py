"""How much of each quasi-identifier a class loses: its width, from 0, exact, to 1 (spec §12).

Of numbers and dates the range of the class over that of the column; of categories those that
occur in the class but one, over those that occur in the table but one. Values that are not
there, NaN, are not measured. Classes are slots of
an array; one can be measured together with another, and can take up others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from verix_anon.arrays import Flags, Floats, Ints, Words
from verix_anon.client.release.grouping import Grouped, Slots
from verix_anon.client.release.privacy import distinct

__all__ = ["Widths", "measured", "total"]

MOST_BITS = 64
MOST_ROWS = 1 << 22
"""Records that are looked at together, to bound the memory."""
NOT_THERE = -1
"""The code of a category that is missing."""
BITS_OF_BYTE = np.array([byte.bit_count() for byte in range(256)], np.uint8)


class Widths(Protocol):
    """One quasi-identifier's width of every slot."""

    def together(self, first: Ints, second: Ints) -> Floats:
        """The width of each pair of slots as one class."""

    def take_up(self, into: Ints, parts: Ints) -> None:
        """Each slot of `into` takes up the one of `parts` beside it."""


def measured(
    values: Iterable[Floats], is_category: Flags, grouped: Grouped, slots: Slots
) -> list[Widths]:
    """The widths of every quasi-identifier, of slots that are groups of records to begin with."""
    found: list[Widths] = []
    for of_row, is_set in zip(values, is_category, strict=True):
        if not is_set:
            found.append(_Numbers.of(of_row, grouped))
            continue
        is_there = ~np.isnan(of_row)
        positions = of_row[is_there].astype(np.int64)
        occurs = np.bincount(positions) > 0
        codes, size = np.full(of_row.size, NOT_THERE), int(occurs.sum())
        codes[is_there] = (np.cumsum(occurs) - 1)[positions]
        few = size <= MOST_BITS
        found.append(_Few.of(codes, size, grouped) if few else _Many(codes, size, slots))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    low: Floats
    high: Floats
    scale: float
    """Half the column's range, for halves do not overflow; 1 if there is none."""

    @classmethod
    def of(cls, values: Floats, grouped: Grouped) -> "_Numbers":
        laid = values[grouped.order]
        low = grouped.reduced(np.fmin, laid, np.nan)
        high = grouped.reduced(np.fmax, laid, np.nan)
        scale = float(np.fmax.reduce(high)) / 2 - float(np.fmin.reduce(low)) / 2
        return cls(low, high, scale or 1.0)

    def together(self, first: Ints, second: Ints) -> Floats:
        high = np.fmax(self.high[first], self.high[second])
        low = np.fmin(self.low[first], self.low[second])
        # NaN where neither has a value.
        width: Floats = np.fmax((high / 2 - low / 2) / self.scale, 0.0)
        return width

    def take_up(self, into: Ints, parts: Ints) -> None:
        np.fmin.at(self.low, into, self.low[parts])
        np.fmax.at(self.high, into, self.high[parts])


@dataclass(frozen=True, slots=True, eq=False)
class _Few:
    """Categories that fit into the bits of a word."""

    words: Words
    size: int

    @classmethod
    def of(cls, codes: Ints, size: int, grouped: Grouped) -> "_Few":
        bits = np.left_shift(np.uint64(1), np.maximum(codes, 0).astype(np.uint64))
        bits[codes == NOT_THERE] = 0
        return cls(grouped.reduced(np.bitwise_or, bits[grouped.order], 0), size)

    def together(self, first: Ints, second: Ints) -> Floats:
        words = self.words[first] | self.words[second]
        n_bits = BITS_OF_BYTE[words.view(np.uint8).reshape(-1, 8)].sum(axis=1, dtype=np.int64)
        return _share(n_bits, self.size)

    def take_up(self, into: Ints, parts: Ints) -> None:
        np.bitwise_or.at(self.words, into, self.words[parts])


@dataclass(frozen=True, slots=True, eq=False)
class _Many:
    """Categories that are counted from the records each time."""

    codes: Ints
    size: int
    slots: Slots

    def together(self, first: Ints, second: Ints) -> Floats:
        counts = np.empty(first.size, np.int64)
        done = np.cumsum(self.slots.count[first] + self.slots.count[second])
        begin = 0
        while begin < first.size:
            before = done[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(done, before + MOST_ROWS)))
            number = np.arange(min(end, first.size) - begin)
            pairs = np.concatenate([first[begin:end], second[begin:end]])
            pair, rows = self.slots.rows(np.concatenate([number, number]), pairs)
            codes = self.codes[rows]
            keys = distinct((pair * self.size + codes)[codes != NOT_THERE])
            counts[begin:end] = np.bincount(keys // self.size, minlength=number.size)
            begin = end
        return _share(counts, self.size)

    def take_up(self, into: Ints, parts: Ints) -> None:
        """The slots know their records."""


def _share(n_categories: Ints, size: int) -> Floats:
    return np.maximum(n_categories - 1, 0) / max(size - 1, 1)


def total(widths: Sequence[Widths], first: Ints, second: Ints) -> Floats:
    """The widths of all quasi-identifiers, added up."""
    found = np.zeros(first.size)
    for each in widths:
        found += each.together(first, second)
    return found
