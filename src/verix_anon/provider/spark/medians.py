"""Exact medians of all open nodes and columns at once, by histograms that are refined.

A pass counts the records of each cell, a column of a node, in the buckets of its window. Whoever
has all counts of a cell says in which bucket its lower median lies, and what lies below. Each
bucket keeps its least and greatest key: the next window is no wider than what is in it, and a
bucket with one key is an answer. Nothing here knows Spark.
"""

from typing import NamedTuple

import numpy as np

from verix_anon.arrays import Flags, Ints
from verix_anon.kernels.histograms import COUNT, FIELDS, GREATEST, LEAST, POSITIVE, Windows

__all__ = ["BUCKET_BYTES", "MIN_BUCKETS", "NONE", "Cells", "Summary", "n_buckets", "summarize"]

BUCKET_BYTES = 8 * FIELDS
MIN_BUCKETS, MAX_BUCKETS = 64, 1 << 16
NONE = np.iinfo(np.int64).min
"""The key of no value: positions are not negative, and this one as a number would not be finite."""


class Summary(NamedTuple):
    """What one pass has found, of each cell."""

    size: Ints
    """Records in the median's bucket"""
    positive: Ints
    least: Ints
    greatest: Ints
    """The bounds of the bucket's keys"""
    n_below: Ints
    """Records of the window in lower buckets"""
    positive_below: Ints
    below: Ints
    """The greatest key in lower buckets, NONE if there is no record"""
    n_positive: Ints
    """Positives of the window"""
    low: Ints
    high: Ints
    """The bounds of all keys of the window"""


def n_buckets(n_cells: int, budget: int) -> int:
    """How many buckets each of so many cells gets, a power of two, within so many bytes."""
    most = budget // (BUCKET_BYTES * n_cells)
    return int(min(MAX_BUCKETS, max(MIN_BUCKETS, 1 << (most.bit_length() - 1 if most else 0))))


def summarize(buckets: Ints, rank: int) -> Ints:
    """A Summary's numbers of one cell, (n_buckets, FIELDS), for the record of a rank from 1."""
    used = buckets[buckets[:, COUNT] > 0]
    at = int(np.searchsorted(np.cumsum(used[:, COUNT]), rank))
    found, lower = used[at], used[:at]
    return np.array(
        [
            found[COUNT],
            found[POSITIVE],
            found[LEAST],
            found[GREATEST],
            lower[:, COUNT].sum(),
            lower[:, POSITIVE].sum(),
            lower[-1, GREATEST] if at else NONE,
            used[:, POSITIVE].sum(),
            used[0, LEAST],
            used[-1, GREATEST],
        ],
        np.int64,
    )


class Cells:
    """The cells of some open nodes: what is known of their medians, and what to count next."""

    def __init__(self, n_rows: Ints, low: Ints, high: Ints, budget: int) -> None:
        """Nodes of so many records each, whose keys lie from low to high, (n_nodes, n_columns)."""
        self.budget = budget
        self.low, self.high = low.copy(), high.copy()
        self.extent = (low.copy(), high.copy())
        """The bounds of each cell's keys: as given, and after a pass as they are."""
        self.median = np.full(low.shape, NONE)
        self.below = np.full(low.shape, NONE)
        """The greatest key below the median, NONE if there is none."""
        self.n_left, self.positive_left = np.zeros((2, *low.shape), np.int64)
        """Records up to the median, and positives among them."""
        self.n_below = np.zeros(low.shape, np.int64)
        self.n_positive = np.zeros(len(low), np.int64)
        self._rank = np.broadcast_to(((n_rows + 1) // 2)[:, None], low.shape).copy()
        self._positive_below = np.zeros(low.shape, np.int64)
        self.is_open = np.ones(low.shape, np.bool_)
        """Whether the median is still to be found."""
        self.is_first = True

    def windows(self) -> tuple[Windows, int]:
        """What to count, and in how many buckets."""
        wanted = n_buckets(self.low.size, self.budget)
        return Windows(self.low, self.high, self._shift(wanted)), wanted

    def ranks(self) -> Ints:
        """The rank of each median within its window, from 1."""
        return self._rank - self.n_below

    def _shift(self, wanted: int) -> Ints:
        """How far a key's distance from its window's start is moved to be its bucket's number."""
        span = self.high.astype(np.uint64) - self.low.astype(np.uint64)
        lengths = [int(distance).bit_length() for distance in span.flat]
        bits: Ints = np.array(lengths, np.int64).reshape(span.shape)
        return np.maximum(bits - (wanted.bit_length() - 1), 0)

    def learn(self, at: tuple[Ints, Ints], found: Summary) -> None:
        """Take in what a pass has found of all open cells, given by node and column."""
        if self.is_first:
            self.extent[0][at], self.extent[1][at] = found.low, found.high
            self.n_positive[at[0]] = found.n_positive
            self.is_first = False
        self.n_below[at] += found.n_below
        self._positive_below[at] += found.positive_below
        self.below[at] = np.where(found.below != NONE, found.below, self.below[at])
        self.low[at], self.high[at] = found.least, found.greatest
        is_found: Flags = found.least == found.greatest
        done = (at[0][is_found], at[1][is_found])
        self.median[done] = found.least[is_found]
        self.n_left[done] = self.n_below[done] + found.size[is_found]
        self.positive_left[done] = self._positive_below[done] + found.positive[is_found]
        self.is_open[done] = False
        # An empty window: nothing of it is counted any more.
        self.low[done], self.high[done] = 1, 0
