"""The published table: the owner's own, with what is published of each class (spec §12)."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from verix_anon.arrays import Floats, Ints
from verix_anon.client.release import privacy
from verix_anon.client.release.bare import bare_array, bare_frame
from verix_anon.client.release.cells import Cells, represent
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.ranges import Range
from verix_anon.client.table.categories import is_text
from verix_anon.client.table.roles import TableRole
from verix_anon.errors import TableError

__all__ = ["Classes", "Published", "assemble"]

MOST_TEXTS = 1 << 20
"""Parquet repeats a dictionary for every so many rows: a longer one saves nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes, and what is published of each."""

    of_row: Ints
    count: Ints
    ranges: Sequence[Range]
    cells: Sequence[Cells]
    """What is read of each, with one value per class."""

    @classmethod
    def of(cls, ranges: Sequence[Range], grouped: Grouped) -> "Classes":
        """Write out what is published."""
        of_row = np.empty(grouped.order.size, np.int64)
        of_row[grouped.order] = np.repeat(np.arange(grouped.count.size), grouped.count)

        def written(r: Range) -> Cells:
            found = represent(r)
            columns = {name: _coded(array) for name, array in found.columns.items()}
            return Cells(columns, found.covered)

        with ThreadPoolExecutor() as pool:
            return cls(of_row, grouped.count, ranges, list(pool.map(written, ranges)))

    @property
    def columns(self) -> dict[str, Mapping[str, pa.Array]]:
        """For each quasi-identifier its published columns."""
        pairs = zip(self.ranges, self.cells, strict=True)
        return {r.column.name: cells.columns for r, cells in pairs}

    @property
    def arrays(self) -> dict[str, pa.Array]:
        """All published columns of quasi-identifiers, by name."""
        return {name: array for of_one in self.columns.values() for name, array in of_one.items()}

    def alike(self, people: Ints | None) -> privacy.Members:
        """Who is in which class, as the public sees it."""
        return privacy.Members.alike(self.of_row, map(_codes, self.arrays.values()), people)

    def ncp(self, values: Floats) -> float:
        """The information lost by what is published; a capped end reaches to its limit."""
        low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
        spans = []
        for j, (r, cells) in enumerate(zip(self.ranges, self.cells, strict=True)):
            if r.sets is None:
                spans.append(
                    (np.where(r.is_below, low[j], r.low), np.where(r.is_above, high[j], r.high))
                )
            else:
                # How many a cell leaves possible, wherever they stand in the order.
                low[j], high[j] = 0, privacy.distinct(r.sets.position).size - 1
                assert cells.covered is not None
                spans.append((np.zeros(self.count.size), np.fmax(cells.covered - 1.0, 0)))
        # One column after the other in memory, as they are used.
        lows, highs = (np.stack(ends).T for ends in zip(*spans, strict=True))
        return privacy.ncp(privacy.Spans(lows, highs, low, high), self.count)


def _coded(array: pa.Array) -> pa.Array:
    """Text as a dictionary without repetitions: it is long, and there are many rows."""
    return array.dictionary_encode() if is_text(array.type) else array


def _codes(array: pa.Array) -> Ints:
    if pa.types.is_dictionary(array.type):
        # A class of which nothing is known is told apart from every label.
        codes = array.indices.fill_null(len(array.dictionary))
        return codes.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    return privacy.attribute("", "", array).codes


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The owner's table with identifiers out and quasi-identifiers as published."""

    frame: nw.DataFrame[Any]
    """The owner's, its rows in the order of the release."""
    names: Sequence[str]
    class_of_row: Ints
    columns: Mapping[str, pa.Array]
    """With one value per class."""

    def native(self) -> object:
        """As a table of the owner's kind."""
        rows = pa.array(self.class_of_row)
        with ThreadPoolExecutor() as pool:
            new = pool.map(lambda array: _plain(array).take(rows), self.columns.values())
            # By number: Polars gives a column whose name is empty another.
            published = pa.table({str(i): array for i, array in enumerate(new)})
        columns = nw.from_arrow(published, backend=self.frame.implementation)
        named = (columns[str(i)].alias(name) for i, name in enumerate(self.columns))
        frame = self.frame.with_columns(*named)
        return bare_frame(frame.select(self.names))

    @property
    def texts(self) -> list[str]:
        """The columns that `compact` holds as dictionaries."""
        return [
            name
            for name, array in self.columns.items()
            if pa.types.is_dictionary(array.type) and len(array.dictionary) <= MOST_TEXTS
        ]

    def compact(self) -> pa.Table:
        """As an Arrow table to be written, each text in it once."""
        rows, texts = pa.array(self.class_of_row), self.texts

        def column(name: str) -> pa.Array:
            array = self.columns.get(name)
            if array is None:
                return bare_array(self.frame[name].to_arrow())
            return (array if name in texts else _plain(array)).take(rows)

        return pa.table([column(name) for name in self.names], list(self.names))


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def assemble(
    table: object, roles: Mapping[str, str], classes: Classes, *, shuffle: bool
) -> Published:
    """Put what is published of each class beside what is kept, in the table's order or none."""
    frame = nw.from_native(table, eager_only=True)  # type: ignore[call-overload]
    names: list[str] = []
    for name in frame.columns:
        if roles[name] != TableRole.IDENTIFIER:
            names.extend(classes.columns.get(name, [name]))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"the release would have two columns {twice!r}; rename the one there is")
    of_row = classes.of_row
    if shuffle:
        keys = np.frombuffer(os.urandom(8 * of_row.size), np.uint64)
        order = np.argsort(keys)
        # Not every type that Arrow holds can be put in another order; those that are left can.
        bare = bare_frame(frame)
        frame = nw.from_native(bare, eager_only=True)
        frame, of_row = frame[order], of_row[order]
    # A pandas index is no column, and would tell the old order.
    return Published(nw.maybe_reset_index(frame), names, of_row, classes.arrays)
