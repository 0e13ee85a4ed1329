"""The published table: the owner's own, with what is published of each class (spec §12)."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import pyarrow as pa

from verix_anon.arrays import Floats, Ints
from verix_anon.client.release import privacy
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.present import Range, Representation, represent
from verix_anon.client.table.roles import TableRole
from verix_anon.errors import TableError

__all__ = ["Classes", "assemble"]


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes, and what is published of each."""

    of_row: Ints
    count: Ints
    ranges: Sequence[Range]
    columns: Mapping[str, Mapping[str, pa.Array]]
    """For each quasi-identifier its published columns, with one value per class."""

    @classmethod
    def of(
        cls, ranges: Sequence[Range], grouped: Grouped, representation: Representation
    ) -> "Classes":
        """Write out what is published."""
        of_row = np.empty(grouped.order.size, np.int64)
        of_row[grouped.order] = np.repeat(np.arange(grouped.count.size), grouped.count)
        columns = {r.column.name: represent(r, representation, grouped.count) for r in ranges}
        return cls(of_row, grouped.count, ranges, columns)

    @property
    def arrays(self) -> dict[str, pa.Array]:
        """All published columns of quasi-identifiers, by name."""
        return {name: array for of_one in self.columns.values() for name, array in of_one.items()}

    def alike(self, people: Ints | None) -> privacy.Members:
        """Who is in which class, as the public sees it."""
        return privacy.Members.alike(self.of_row, self.arrays.values(), people)

    def ncp(self, values: Floats) -> float:
        """The information lost by what is published; a capped end reaches to its limit."""
        low, high = values.min(axis=1), values.max(axis=1)
        spans = []
        for j, r in enumerate(self.ranges):
            if r.sets is None:
                spans.append(
                    (np.where(r.is_below, low[j], r.low), np.where(r.is_above, high[j], r.high))
                )
            else:
                # How many occur, wherever they stand in the order.
                low[j], high[j] = 0, privacy.distinct(r.sets.position).size - 1
                spans.append((np.zeros(self.count.size), np.diff(r.sets.start) - 1.0))
        lows, highs = (np.column_stack(ends) for ends in zip(*spans, strict=True))
        return privacy.ncp(privacy.Spans(lows, highs, low, high), self.count)


def assemble(table: object, roles: Mapping[str, str], classes: Classes, *, shuffle: bool) -> object:
    """The owner's table with identifiers out and quasi-identifiers as published."""
    frame = nw.from_native(table, eager_only=True)  # type: ignore[call-overload]
    names: list[str] = []
    for name in frame.columns:
        if roles[name] != TableRole.IDENTIFIER:
            names.extend(classes.columns.get(name, [name]))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"the release would have two columns {twice!r}; rename the one there is")
    rows = pa.array(classes.of_row)
    new = classes.arrays
    with ThreadPoolExecutor() as pool:
        published = pa.table(
            list(pool.map(lambda array: array.take(rows), new.values())), list(new)
        )
    columns = nw.from_arrow(published, backend=frame.implementation)
    frame = frame.with_columns(*(columns[name] for name in new)).select(names)
    if shuffle:
        keys = np.frombuffer(os.urandom(8 * classes.of_row.size), np.uint64)
        # A pandas index would tell the old order.
        frame = nw.maybe_reset_index(frame[np.argsort(keys)])
    return frame.to_native()
