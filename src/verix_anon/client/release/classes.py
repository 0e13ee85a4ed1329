"""The classes, and what is published of each quasi-identifier: made a column at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Floats, Ids, Ints
from verix_anon.client.release import privacy
from verix_anon.client.release.cells import Cells, represent
from verix_anon.client.release.ranges import Range
from verix_anon.client.release.schema import described
from verix_anon.client.table.categories import is_text

__all__ = ["Classes", "Shown"]


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What is published of one quasi-identifier."""

    name: str
    columns: Mapping[str, pa.Array]
    """By name, with one value per class; text as dictionaries."""
    described: Mapping[str, object]
    """What the schema says of them."""
    width: Floats
    """How much of the column's range each class leaves possible."""

    @classmethod
    def of(cls, found: Range, low: Floats, high: Floats) -> "Shown":
        """Write out what is published; the column's values are from `low` to `high`."""
        cells = represent(found)
        return cls(
            name=found.column.name,
            columns={name: _coded(array) for name, array in cells.columns.items()},
            described=described(found),
            width=_width(found, cells, (low, high)),
        )


def _coded(array: pa.Array) -> pa.Array:
    """Text as a dictionary without repetitions: it is long, and there are many rows."""
    return array.dictionary_encode() if is_text(array.type) else array


def _width(found: Range, cells: Cells, domain: tuple[Floats, Floats]) -> Floats:
    """A capped end reaches to its limit."""
    if found.sets is None:
        low = np.where(found.is_below, domain[0], found.low)
        high = np.where(found.is_above, domain[1], found.high)
        return privacy.widths(privacy.Spans(low, high, *domain))
    # How many a cell leaves possible, wherever they stand in the order.
    assert cells.covered is not None
    most = privacy.distinct(found.sets.position).size - 1
    high = np.fmax(cells.covered - 1.0, 0)
    return privacy.widths(privacy.Spans(np.zeros(1), high, np.zeros(1), np.array([most])))


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Who is in which class, and what is published of each."""

    of_row: Ids
    shown: Sequence[Shown]
    ncp: float
    """The information lost by what is published."""

    @classmethod
    def of(cls, of_row: Ids, count: Ints, made: Iterable[Shown]) -> "Classes":
        """From the columns in order; their widths end here."""
        shown, total = [], np.zeros(count.size)
        for each in made:
            total += each.width
            shown.append(Shown(each.name, each.columns, each.described, np.empty(0)))
        return cls(of_row, shown, privacy.weighted(total / len(shown), count))

    @property
    def columns(self) -> dict[str, Mapping[str, pa.Array]]:
        """For each quasi-identifier its published columns."""
        return {each.name: each.columns for each in self.shown}

    @property
    def arrays(self) -> dict[str, pa.Array]:
        """All published columns of quasi-identifiers, by name."""
        return {name: array for each in self.shown for name, array in each.columns.items()}

    def alike(self, people: Ints | None) -> privacy.Members:
        """Who is in which class, as the public sees it."""
        return privacy.Members.alike(self.of_row, map(_codes, self.arrays.values()), people)


def _codes(array: pa.Array) -> Ints:
    if pa.types.is_dictionary(array.type):
        # A class of which nothing is known is told apart from every label.
        codes = array.indices.fill_null(len(array.dictionary))
        return codes.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    return privacy.attribute("", "", array).codes
