"""Compiled loops that select a value without sorting: the twins of `rules.lower_median`."""

import numba
import numpy as np

from verix_anon.arrays import Floats

# For up to FEW values, counting pairs is the fastest way to a median. From MANY values on, a
# sample narrows the search.
FEW, MANY = 48, 512
# It has no common factor with a power of two, and is about 0.618 of one.
JUMP = 40_503


@numba.njit(cache=True, nogil=True)
def select(values: Floats, position: int) -> float:
    """Return the value at a sorted position; reorders the values (Hoare's quickselect)."""
    lo, hi = 0, values.size - 1
    while lo < hi:
        a, b, c = values[lo], values[(lo + hi) // 2], values[hi]
        # The pivot is the median of three, because sorted input is common and must not be slow.
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = lo, hi
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if position <= j:
            hi = j
        elif position >= i:
            lo = i
        else:
            break
    return np.float64(values[position])


@numba.njit(cache=True, nogil=True)
def _by_rank(values: Floats, position: int) -> float:
    """Return the value at a sorted position, for few values: count how many are smaller."""
    n = values.size
    for i in range(n):
        value = values[i]
        below, same = 0, 0
        for j in range(n):
            below += values[j] < value
            same += values[j] == value
        if below <= position < below + same:
            return np.float64(value)
    return np.float64(np.nan)


@numba.njit(cache=True, nogil=True)
def by_bracket(values: Floats, position: int, buffer: Floats) -> float:
    """Return the value at a sorted position, for many values, or NaN if the sample misled.

    A sample gives two values around it. One pass without branches keeps the values between them.
    The same is done with the kept values, and few are left to select from. The sample misleads
    about once in hundreds of calls.
    """
    low, high, n_below, n_kept = _narrow(values, position, buffer)
    position -= n_below
    if not 0 <= position < n_kept:
        return np.float64(np.nan)
    if low == high:
        return np.float64(low)
    kept, rest = buffer[:n_kept], buffer[n_kept:]
    if n_kept >= MANY and rest.size > n_kept:
        low, high, n_below, n_again = _narrow(kept, position, rest)
        if n_below <= position < n_below + n_again:
            return select(rest[:n_again], position - n_below)
    return select(kept, position)


@numba.njit(cache=True, nogil=True)
def _narrow(values: Floats, position: int, buffer: Floats) -> tuple[float, float, int, int]:
    """Return two values around a sorted position, how many lie below, and how many between.

    The values between are left in `buffer`, which holds n + 1.
    """
    n = values.size
    n_sample = int(4.0 * np.sqrt(n))
    step = n // n_sample
    sample = buffer[:n_sample]
    for i in range(n_sample):
        # Do not always take the same place of a step: values may lie in sorted runs of a few steps.
        sample[i] = values[i * step + i * JUMP % step]
    middle = position * n_sample // n
    # Three standard deviations of the rank of a median.
    reach = int(1.5 * np.sqrt(n_sample)) + 1
    low = select(sample, max(0, middle - reach))
    high = select(sample, min(n_sample - 1, middle + reach))
    n_below, n_kept = 0, np.uint64(0)
    for i in range(n):
        value = values[i]
        n_below += value < low
        buffer[n_kept] = value
        n_kept += np.uint64((value >= low) & (value <= high))
    return low, high, n_below, int(np.int64(n_kept))


@numba.njit(cache=True, nogil=True)
def nth(values: Floats, position: int, buffer: Floats) -> float:
    """Return the value at a sorted position; the buffer holds n + 1."""
    n = values.size
    if n >= MANY:
        found = by_bracket(values, position, buffer)
        if not np.isnan(found):
            return found
    for i in range(n):
        buffer[i] = values[i]
    return select(buffer[:n], position)


@numba.njit(cache=True, nogil=True)
def lower_median(values: Floats, buffer: Floats) -> float:
    """Return the value at position ceil(n/2), counted from 1; the buffer holds n + 1."""
    position = (values.size + 1) // 2 - 1
    if values.size <= FEW:
        return _by_rank(values, position)
    return nth(values, position, buffer)
