"""The engine gives what the rules give, whatever the table, threads or commitment."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import assert_same, categorical, from_text, numeric, submission
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Commitment
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider import local
from verix_anon.provider.local import LocalProvider

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
def submissions(draw: st.DrawFn) -> Submission:
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
        described=described,
        commitment=draw(st.sampled_from(list(Commitment))),
        max_depth=draw(st.sampled_from([1, 2, 50])),
    )


def arrays(delivery: Delivery) -> list[object]:
    tree, leaves = delivery.tree, delivery.leaves
    return [
        a.tobytes()
        for a in (
            tree.column, tree.threshold, tree.left, tree.right, tree.leaf,
            leaves.count, leaves.minimum, leaves.maximum, delivery.records.leaf,
        )
    ]  # fmt: skip


@settings(max_examples=2500, deadline=None)
@given(submissions())
def test_engine_is_the_rules_and_the_text(given_submission: Submission) -> None:
    delivery = LocalProvider(threads=1).anonymize(given_submission)
    assert_same(delivery, from_text(given_submission))
    contract, records = given_submission.contract, given_submission.records
    columns = records.values.tolist()
    top = rules.grow(
        columns,
        records.target.tolist(),
        min_leaf=contract.min_leaf,
        max_depth=contract.max_depth,
    )
    nodes, leaf_rows = rules.flatten(top)
    tree, leaves = delivery.tree, delivery.leaves
    assert nodes == list(
        zip(tree.column.tolist(), tree.threshold.tolist(), tree.left.tolist(),
            tree.right.tolist(), tree.leaf.tolist(), strict=True)
    )  # fmt: skip
    for leaf, rows in enumerate(leaf_rows):
        assert np.flatnonzero(delivery.records.leaf == leaf).tolist() == list(rows)
        pairs = list(zip(leaves.minimum[leaf].tolist(), leaves.maximum[leaf].tolist(), strict=True))
        assert pairs == rules.bounds(columns, rows)


@settings(max_examples=200, deadline=None)
@given(submissions(), st.integers(2, 5))
def test_threads_change_nothing(given_submission: Submission, threads: int) -> None:
    # Shared out, renumbered and stitched from the first row on, as only large tables are.
    with mock.patch.multiple(local, SMALL_TASK=40, SMALL_NODE=4, SHRINK=2):
        many = LocalProvider(threads=threads).anonymize(given_submission)
    one = LocalProvider(threads=1).anonymize(given_submission)
    assert many.header.root == one.header.root
    assert arrays(many) == arrays(one)


@pytest.mark.parametrize("row_bits", [20, 27, 31])
def test_rank_bits_change_nothing(row_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Large tables leave few or no bits for the rank, and ties are settled by value.
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.integers(0, 50, (3, 4000)), rng.standard_normal((2, 4000))])
    table = submission(values.tolist(), rng.integers(0, 2, 4000).tolist(), k=3)
    expected = LocalProvider(threads=1).anonymize(table)
    monkeypatch.setattr(local, "row_bits", lambda n_rows: row_bits)
    assert arrays(LocalProvider(threads=1).anonymize(table)) == arrays(expected)


def test_submission_digest_spans_chunks() -> None:
    rng = np.random.default_rng(5)
    n_rows = 65536 + 5
    table = submission(
        rng.integers(0, 9, (1, n_rows)).tolist(), rng.integers(0, 2, n_rows).tolist(), k=2000
    )
    assert_same(LocalProvider(threads=2).anonymize(table), from_text(table))
