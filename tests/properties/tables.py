"""Submissions of every kind, small, with ties, constants and duplicates."""

import numpy as np
from hypothesis import strategies as st

from support import categorical, coded, numeric, submission
from verix_anon.protocol.contract import Commitment
from verix_anon.protocol.messages import Submission

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
COLUMN_KINDS = {
    "continuous": FLOATS,
    "huge or tiny": st.sampled_from([1e308, -1e308, 5e-324, -5e-324, 1e-300, 0.0, -0.0, 1.0]),
    "few values": st.integers(0, 3).map(float),
    "constant": st.just(7.0),
    "signed zeros": st.sampled_from([0.0, -0.0]),
    "neighbours": st.integers(0, 40).map(lambda i: float(np.float64(1.0) + i * 2.0**-52)),
    "whole numbers": st.integers(-(2**53), 2**53).map(float),
}


@st.composite
def coded_submissions(draw: st.DrawFn, least: int = 4) -> Submission:
    """Positions under either rule, in columns of few, many and mostly equal values."""
    k = draw(st.sampled_from([2, 2, 3, 5]))
    n_rows = draw(st.integers(max(2 * k, least), 90))
    below = draw(st.lists(st.sampled_from([1, 2, 3, 10, 300, 2**31 - 1]), min_size=1, max_size=4))
    columns = []
    for size in below:
        positions = st.integers(0, size - 1)
        if draw(st.booleans()):
            # A skewed column: most records share its last value or its first.
            positions = st.one_of(positions, *[st.just(draw(st.sampled_from([0, size - 1])))] * 6)
        columns.append(draw(st.lists(positions, min_size=n_rows, max_size=n_rows)))
    labels = st.lists(st.integers(0, 1), min_size=n_rows, max_size=n_rows)
    most = [2**52 // max(1, max(positions)) for positions in columns]
    return coded(
        columns,
        draw(st.one_of(st.none(), labels)),
        weights=[draw(st.one_of(st.just(1), st.integers(1, weight))) for weight in most],
        k=k,
        min_leaf=draw(st.integers(k, 2 * k)),
        max_depth=draw(st.sampled_from([1, 2, 50])),
    )


@st.composite
def clear_submissions(draw: st.DrawFn) -> Submission:
    k = draw(st.sampled_from([2, 2, 2, 3, 5, 8]))
    n_rows = draw(st.integers(2 * k, 90))
    kinds = draw(
        st.lists(st.sampled_from([*COLUMN_KINDS, "300 categories"]), min_size=1, max_size=4)
    )
    columns, described = [], []
    for i, kind in enumerate(kinds):
        if kind == "300 categories":
            values = st.integers(0, 299).map(float)
            described.append(categorical(f"c{i}", 300))
        else:
            values = COLUMN_KINDS[kind]
            described.append(numeric(f"x{i}"))
        columns.append(draw(st.lists(values, min_size=n_rows, max_size=n_rows)))
    if draw(st.booleans()):
        # Duplicate rows: the second half repeats the first.
        half = n_rows // 2
        columns = [[*c[:half], *c[:half], *c[2 * half :]] for c in columns]
    labels = st.sampled_from([st.integers(0, 1), st.just(0), st.just(1)])
    target = draw(st.lists(draw(labels), min_size=n_rows, max_size=n_rows))
    return submission(
        columns,
        target,
        k=k,
        min_leaf=draw(st.integers(k, 2 * k)),
        described=described,
        commitment=draw(st.sampled_from(list(Commitment))),
        max_depth=draw(st.sampled_from([1, 2, 50])),
    )


def any_submissions() -> st.SearchStrategy[Submission]:
    return st.one_of(clear_submissions(), coded_submissions())


@st.composite
def submissions(draw: st.DrawFn, least: int = 4) -> Submission:
    """Small tables with ties, constants and duplicates."""
    k = draw(st.sampled_from([2, 2, 3]))
    n_rows = draw(st.integers(max(2 * k, least), 60))
    columns, described = [], []
    kinds = draw(st.lists(st.sampled_from([*COLUMN_KINDS, "categories"]), min_size=1, max_size=4))
    for i, kind in enumerate(kinds):
        is_category = kind == "categories"
        values = st.integers(0, 4).map(float) if is_category else COLUMN_KINDS[kind]
        described.append(categorical(f"c{i}", 5) if is_category else numeric(f"x{i}"))
        columns.append(draw(st.lists(values, min_size=n_rows, max_size=n_rows)))
    if draw(st.booleans()):
        half = n_rows // 2
        columns = [[*c[:half], *c[:half], *c[2 * half :]] for c in columns]
    target = draw(st.lists(st.integers(0, 1), min_size=n_rows, max_size=n_rows))
    max_depth = draw(st.sampled_from([1, 2, 50, 50]))
    return submission(columns, target, k=k, described=described, max_depth=max_depth)
