"""One pass over records: tasks count theirs, others add up what tasks have counted."""

from collections.abc import Iterable, Iterator

import numpy as np

from verix_anon.arrays import Bytes, Ints
from verix_anon.kernels import histograms
from verix_anon.kernels.histograms import COUNT, FIELDS, GREATEST, LEAST, POSITIVE
from verix_anon.provider.spark.medians import summarize
from verix_anon.provider.spark.top import Pass

__all__ = ["Counted", "Counter", "added", "summaries"]

Counted = tuple[int, bytes]
"""A cell's number, by node and then column, and what was counted of it."""


class Counter:
    """The histograms of one task."""

    def __init__(self, wanted: Pass) -> None:
        self.wanted = wanted
        self.buckets = np.zeros((*wanted.ranks.shape, wanted.n_buckets, FIELDS), np.int64)

    def add(self, keys: Ints, positive: Bytes) -> None:
        """Count some records: their keys, (n_records, n_columns), and labels."""
        node = np.empty(len(keys), np.int32)
        histograms.route(keys, *self.wanted.routes, node)
        number = self.wanted.number[node]
        histograms.count(keys, number, positive, self.wanted.windows, self.buckets)

    def result(self) -> Iterator[Counted]:
        """The buckets in use of every cell with any: their numbers and their fields."""
        n_columns = self.buckets.shape[1]
        for (node, column), is_used in np.ndenumerate(self.buckets[..., COUNT].any(axis=2)):
            if is_used:
                cell = self.buckets[node, column]
                at = np.flatnonzero(cell[:, COUNT])
                yield node * n_columns + column, np.column_stack([at, cell[at]]).tobytes()


def added(counts: Iterable[Counted], n_buckets: int) -> dict[int, Ints]:
    """The histogram of each cell, from what tasks have counted, in any order."""
    cells: dict[int, Ints] = {}
    for number, data in counts:
        at, *fields = np.frombuffer(data, np.int64).reshape(-1, 1 + FIELDS).T
        cell = cells.get(number)
        if cell is None:
            cell = cells[number] = np.zeros((n_buckets, FIELDS), np.int64)
        is_new = cell[at, COUNT] == 0
        cell[at, LEAST] = np.where(
            is_new, fields[LEAST], np.minimum(cell[at, LEAST], fields[LEAST])
        )
        most = np.maximum(cell[at, GREATEST], fields[GREATEST])
        cell[at, GREATEST] = np.where(is_new, fields[GREATEST], most)
        cell[at, COUNT] += fields[COUNT]
        cell[at, POSITIVE] += fields[POSITIVE]
    return cells


def summaries(cells: dict[int, Ints], ranks: Ints) -> Iterator[tuple[int, Ints]]:
    """Where the record looked for lies, in each cell: a Summary's numbers."""
    for number, cell in cells.items():
        yield number, summarize(cell, int(ranks.flat[number]))
