"""Positions instead of values: dense, in order, and few if asked for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from verix_anon.client.table.coding import code

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.integers(1, 3))
def test_positions_are_dense_ranks(column: list[float], threads: int) -> None:
    values = np.array([column, column[::-1]])
    coding, found = code(values, places=None, threads=threads)
    occur = sorted(set(column))
    assert coding.sizes == (len(occur), len(occur))
    assert found[0].tolist() == [occur.index(value) for value in column]
    assert found[1].tolist() == found[0][::-1].tolist()
    assert np.array_equal(coding.positions(values), found)


@settings(max_examples=300, deadline=None)
@given(VALUES, st.integers(2, 20))
def test_places_are_quantiles(column: list[float], places: int) -> None:
    values = np.array([column])
    coding, (found,) = code(values, places=places, threads=1)
    assert np.array_equal(coding.positions(values), [found])
    occur = sorted(set(column))
    assert coding.sizes[0] <= places
    assert sorted(set(found)) == list(range(coding.sizes[0]))
    if len(occur) <= places:
        assert found.tolist() == [occur.index(value) for value in column]
        return
    by_hand = [places * sum(v < value for v in column) // len(column) for value in column]
    dense = sorted(set(by_hand))
    assert found.tolist() == [dense.index(place) for place in by_hand]
