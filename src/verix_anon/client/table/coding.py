"""Positions instead of values: what is sent of a table unless the owner says otherwise (spec §2.1).

Splits at lower medians depend on the order of values alone. The dictionary is the owner's table.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Floats, Ints

__all__ = ["Coding", "code"]


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """The values that occur in each column, ascending, and the position of each."""

    levels: tuple[Floats, ...]
    position: tuple[Ints, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many positions each column has."""
        return tuple(int(position[-1]) + 1 for position in self.position)

    def positions(self, values: Floats, *, threads: int) -> Floats:
        """The positions of values that all occur, (n_quasi, n)."""
        out = np.empty(values.shape)

        def fill(j: int) -> None:
            out[j] = self.position[j][np.searchsorted(self.levels[j], values[j])]

        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(fill, range(len(values))):
                pass
        return out


def code(values: Floats, *, places: int | None, threads: int) -> Coding:
    """The coding of these values, (n_quasi, n); at most so many places a column, by quantiles."""

    def levels_of(column: Floats) -> tuple[Floats, Ints]:
        levels, count = np.unique(column, return_counts=True)
        if places is None or levels.size <= places:
            return levels, np.arange(levels.size)
        # Equal values stay together, so some places may be empty; then they are made dense.
        below = np.cumsum(count) - count
        return levels, np.unique(places * below // column.size, return_inverse=True)[1]

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(levels_of, values))
    return Coding(tuple(levels for levels, _ in found), tuple(place for _, place in found))
