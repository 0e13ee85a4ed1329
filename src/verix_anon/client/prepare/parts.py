"""Records of one role on their way into the submission, a column at a time."""

from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ids
from verix_anon.protocol.table import Records

__all__ = ["Part", "Values"]

Values = Floats | Ids
"""One column as it is sent: values, or positions in half the memory until all is assembled."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The records of one role; each column can be let go by itself."""

    values: list[Values]
    """By column, in contract order"""
    target: Bytes

    @property
    def n_rows(self) -> int:
        """How many records there are."""
        return int(self.target.size)

    def records(self, rows: slice) -> Records:
        """Some of them, without trackers."""
        target = self.target[rows].copy()
        return Records(
            tracker=np.zeros((target.size, 32), np.uint8),
            values=np.array([column[rows] for column in self.values], np.float64),
            target=target,
        )

    def taken(self, column: int) -> Values:
        """A column, which is the caller's alone from now on."""
        values = self.values[column]
        self.values[column] = values[:0].copy()
        return values
