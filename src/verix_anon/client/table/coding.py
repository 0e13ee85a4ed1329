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

    def positions(self, values: Floats) -> Floats:
        """The positions of some values that all occur, (n_quasi, n)."""
        out = np.empty(values.shape)
        for j, column in enumerate(values):
            out[j] = self.position[j][np.searchsorted(self.levels[j], column)]
        return out


def code(values: Floats, *, places: int | None, threads: int) -> tuple[Coding, Floats]:
    """The coding of these values, (n_quasi, n), and their positions.

    At most so many places a column, by quantiles.
    """
    positions = np.empty(values.shape)

    def levels_of(j: int) -> tuple[Floats, Ints]:
        levels, level, count = np.unique(values[j], return_inverse=True, return_counts=True)
        position = np.arange(levels.size)
        if places is not None and levels.size > places:
            # Equal values stay together, so some places may be empty; then they are made dense.
            below = np.cumsum(count) - count
            position = np.unique(places * below // values[j].size, return_inverse=True)[1]
        positions[j] = position[level]
        return levels, position

    with ThreadPoolExecutor(threads) as pool:
        levels, position = zip(*pool.map(levels_of, range(len(values))), strict=True)
    return Coding(levels, position), positions
