"""Bits and bytes, compared with plain Python."""

import numba
import numpy as np
import numpy.typing as npt
from hypothesis import example, given, settings
from hypothesis import strategies as st

from verix_anon.kernels import bits

WORDS = st.integers(0, 2**64 - 1)
steady = settings(deadline=None, derandomize=True)


@numba.njit(nogil=True)
def counted(word: np.uint64) -> int:
    return bits.count_bits(word)


@numba.njit(nogil=True)
def compared(numbers: npt.NDArray[np.uint8], at: int, low: np.uint8, last: np.uint8) -> np.uint64:
    return bits.within(numbers, at, low, last)


@steady
@given(WORDS)
@example(0)
@example(2**64 - 1)
def test_count(word: int) -> None:
    assert counted(np.uint64(word)) == word.bit_count()


@steady
@given(WORDS.filter(bool), st.data())
def test_first_bits(word: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, word.bit_count()))
    place = [i for i in range(64) if word >> i & 1][n - 1]
    assert int(bits.first_bits(np.uint64(word), n)) == 2 ** (place + 1) - 1


@steady
@given(st.binary(min_size=192, max_size=192), st.integers(0, 128), st.integers(0, 255), st.data())
@example(bytes(range(192)), 64, 0, None)
def test_within(numbers: bytes, at: int, low: int, data: st.DataObject | None) -> None:
    last = 255 if data is None else data.draw(st.integers(low, 255))
    array = np.frombuffer(numbers, np.uint8).copy()
    expected = sum((low <= numbers[at + i] <= last) << i for i in range(64))
    assert int(compared(array, at, np.uint8(low), np.uint8(last))) == expected
