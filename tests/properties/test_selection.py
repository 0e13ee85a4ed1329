"""Selecting a value and sorting a block are what sorting is."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verix_anon.kernels import medians
from verix_anon.kernels.radix import BLOCK, sort_block


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=300)
    | st.lists(st.integers(0, 5).map(float), min_size=1, max_size=300)
    | st.integers(1, BLOCK).map(lambda n: (1.0 / np.arange(1.0, n + 1) ** 9).tolist()),
)
def test_blocks_are_sorted(values: list[float]) -> None:
    n = len(values)
    block, label = np.array(values) + 0.0, (np.arange(n) % 3 == 0).astype(np.uint8)
    order = np.empty(BLOCK, np.uint16)
    sort_block(block, label, np.empty((2, BLOCK), np.uint32), order)
    number = order[:n] >> 1
    assert sorted(number.tolist()) == list(range(n))
    assert (block[number] == np.sort(block)).all()
    assert ((order[:n] & 1) == label[number]).all()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-100, 100) | st.integers(0, 3).map(float), min_size=1, max_size=80))
def test_selection_is_sorting(values: list[float]) -> None:
    for position in range(len(values)):
        assert medians.select(np.array(values), position) == sorted(values)[position]


class Counted(np.ndarray[tuple[int], np.dtype[np.float64]]):
    """An array that counts how often a value of it is read."""

    n_read = 0

    def __getitem__(self, index: Any) -> Any:
        self.n_read += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("shape", ["ascending", "descending", "organ pipe", "two values"])
def test_selection_reads_patterns_a_few_times_only(shape: str) -> None:
    n = 2_001
    values = {
        "ascending": np.arange(n) * 1.0,
        "descending": np.arange(n)[::-1] * 1.0,
        "organ pipe": np.abs(np.arange(n) - n // 2) * 1.0,
        "two values": np.arange(n) % 2 * 1.0,
    }[shape]
    counted = values.astype(np.float64).view(Counted)
    assert medians.select.py_func(counted, n // 2) == np.sort(values)[n // 2]
    assert counted.n_read < 20 * n


@pytest.mark.parametrize("n", [512, 4_992, 59_968])
def test_a_bracket_holds_what_it_says(n: int) -> None:
    """Or says that it does not, which near the median must be rare, or it is of no use."""
    rng = np.random.default_rng(n)
    kinds: list[npt.NDArray[np.float64]] = [rng.normal(size=n), np.arange(float(n)), np.zeros(n)]
    kinds += [np.where(rng.random(n) < 0.7, 0.5, rng.random(n)), 10.0 ** rng.uniform(-300, 300, n)]
    kinds += [rng.integers(0, 3, n).astype(np.float64), np.tile([0.0, 1.0], n // 2)]
    kinds += [np.sort(rng.normal(size=(n // 64, 64)), axis=1).ravel()]
    anywhere = [0, n - 1, *rng.integers(0, n, 20).tolist()]
    middle = rng.integers(n * 2 // 5, n * 3 // 5, 20).tolist()
    n_missed = 0
    for values in kinds:
        in_order = np.sort(values)
        for position in (*anywhere, *middle):
            found = medians.by_bracket(values, position, np.empty(n + 1))
            assert np.isnan(found) or found == in_order[position]
            n_missed += np.isnan(found) and position in middle
    assert n_missed <= len(kinds) * len(middle) // 20
