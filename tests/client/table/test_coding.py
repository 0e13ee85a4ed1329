"""Positions instead of values: dense, in order, and few if asked for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from verix_anon.client.prepare.contract_columns import code

# As encoded: without -0.0.
VALUES = st.lists(st.floats(-1e6, 1e6).map(lambda value: value + 0.0), min_size=1, max_size=60)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_positions_are_dense_ranks(column: list[float]) -> None:
    values = np.array(column)
    coding, found = code(values, places=None)
    occur = sorted(set(column))
    assert coding.size == len(occur)
    assert found.dtype == np.int32
    assert found.tolist() == [occur.index(value) for value in column]
    assert coding.levels.tolist() == occur
    assert np.array_equal(coding.positions(values[::-1]), found[::-1])


@settings(max_examples=300, deadline=None)
@given(VALUES, st.integers(2, 20))
def test_places_are_quantiles(column: list[float], places: int) -> None:
    values = np.array(column)
    coding, found = code(values, places=places)
    assert np.array_equal(coding.positions(values), found)
    occur = sorted(set(column))
    assert coding.size <= places
    assert sorted(set(found)) == list(range(coding.size))
    if len(occur) <= places:
        assert found.tolist() == [occur.index(value) for value in column]
        return
    by_hand = [places * sum(v < value for v in column) // len(column) for value in column]
    dense = sorted(set(by_hand))
    assert found.tolist() == [dense.index(place) for place in by_hand]
