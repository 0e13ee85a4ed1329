"""Values as whole numbers in the same order, so that medians can be found by counting.

A position is its own key. A number's key is made of its bits: those of a negative one are turned
round, but for the sign. It is its own inverse, and 0.0 is the key 0 (there is no -0.0).
"""

import numpy as np

from verix_anon.arrays import Floats, Ints
from verix_anon.protocol.contract import Column

__all__ = ["key_of", "keys_of", "reach", "value_of"]

ALL_BUT_SIGN = np.int64(np.iinfo(np.int64).max)


def _turned(bits: Ints) -> Ints:
    return bits ^ ((bits >> np.int64(63)) & ALL_BUT_SIGN)


def keys_of(column: Column, values: Floats) -> Ints:
    """The keys of a column's values."""
    if column.n_values is not None:
        return values.astype(np.int64)
    return _turned(np.ascontiguousarray(values, np.float64).view(np.int64))


def key_of(column: Column, value: float) -> int:
    """The key of one value."""
    return int(keys_of(column, np.array([value]))[0])


def value_of(column: Column, key: int) -> float:
    """The value of a key."""
    if column.n_values is not None:
        return float(key)
    return float(_turned(np.array([key])).view(np.float64)[0])


def reach(column: Column) -> tuple[int, int]:
    """The least and the greatest key that the column may have."""
    if column.n_values is not None:
        return 0, column.n_values - 1
    most = float(np.finfo(np.float64).max)
    return key_of(column, -most), key_of(column, most)
