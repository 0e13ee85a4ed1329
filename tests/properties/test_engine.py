"""The engine gives what the rules give, whatever the table, threads or commitment."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.tables import any_submissions
from support import assert_same, from_text, submission
from verix_anon.protocol import rules
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider import local
from verix_anon.provider import local as spread
from verix_anon.provider.local import LocalProvider


def arrays(delivery: Delivery) -> list[object]:
    tree, leaves = delivery.tree, delivery.leaves
    return [
        a.tobytes()
        for a in (
            tree.column, tree.threshold, tree.left, tree.right, tree.leaf,
            leaves.count, leaves.minimum, leaves.maximum, delivery.records.leaf,
        )
    ]  # fmt: skip


@settings(max_examples=800, deadline=None)
@given(any_submissions())
def test_engine_is_the_rules_and_the_text(given_submission: Submission) -> None:
    delivery = LocalProvider(threads=1).anonymize(given_submission)
    assert_same(delivery, from_text(given_submission))
    contract, records = given_submission.contract, given_submission.records
    columns = records.values.tolist()
    top = rules.grow(
        columns,
        rules.criterion(contract, records.target.tolist()),
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
@given(any_submissions(), st.integers(2, 5))
def test_threads_change_nothing(given_submission: Submission, threads: int) -> None:
    # Shared out, renumbered and stitched from the first row on, as only large tables are.
    with (
        mock.patch.multiple(local, SMALL_TASK=40, SMALL_NODE=4, SHRINK=2),
        mock.patch.multiple(spread, TASKS_PER_THREAD=20, BATCH_ROWS=3),
    ):
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
