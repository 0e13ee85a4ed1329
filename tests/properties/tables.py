"""Submissions of every kind, drawn by hypothesis."""

import numpy as np
from hypothesis import strategies as st

from support import categorical, numeric, submission
from verix_anon.protocol.messages import Submission

COLUMN_KINDS = {
    "continuous": st.floats(-1e9, 1e9),
    "huge or tiny": st.sampled_from([1e308, -1e308, 5e-324, -5e-324, 0.0, 1.0]),
    "few values": st.integers(0, 3).map(float),
    "constant": st.just(7.0),
    "neighbours": st.integers(0, 40).map(lambda i: float(np.float64(1.0) + i * 2.0**-52)),
}


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
