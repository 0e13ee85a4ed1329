"""Compiled loop that sorts a column into the order that `kernels` works on."""

import numba
import numpy as np
import numpy.typing as npt

from verix_anon.protocol.sorting import sort_words

# Compiled in (`make stamps`): sorting f1fac2c1.
__all__ = ["sort_column"]


@numba.njit(cache=True, nogil=True)
def sort_column(
    values: npt.NDArray[np.float64],
    target: npt.NDArray[np.uint8],
    order: npt.NDArray[np.uint32],
    row_bits: int,
    buffer: npt.NDArray[np.uint64],
) -> np.int64:
    """Fill a column's order and return its number of distinct values."""
    word, is_partial = sort_words(values, row_bits, buffer)
    bits = values.view(np.uint64)
    room = np.uint64(row_bits)
    row_mask = (np.uint64(1) << room) - np.uint64(1)
    rank = np.uint32(0)
    one = np.uint32(1)
    for i in range(values.size):
        row = word[i] & row_mask
        if i > 0:
            before = word[i - 1]
            if word[i] >> room != before >> room or (
                is_partial and bits[row] != bits[before & row_mask]
            ):
                rank += one
        entry = (np.uint32(row) << one) | np.uint32(target[row])
        # A shift by 32 is undefined, and leaves no room for a rank anyway.
        if row_bits < 31:
            entry |= rank << np.uint32(row_bits + 1)
        order[i] = entry
    return np.int64(rank) + 1
