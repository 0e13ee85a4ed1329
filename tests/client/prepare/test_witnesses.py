"""Witnesses: the paths that prepare() works out are those of the honest tree."""

import numpy as np
import pytest

from support import submission
from tools import cases
from verix_anon.client.manifest import Witness, WitnessStep
from verix_anon.client.prepare.expectations import find_witnesses
from verix_anon.kernels import trees
from verix_anon.protocol import digests, merkle, rules
from verix_anon.protocol.messages import Submission


def by_the_rules(sent: Submission, row: int) -> Witness:
    """One row's path, walked down the slow tree."""
    node, path = cases.grown(sent), []
    while isinstance(node, rules.Node):
        goes_left = bool(sent.records.values[node.column, row] <= node.threshold)
        count = len(cases.rows_of(node))
        path.append(WitnessStep(node.column, node.threshold, goes_left, count))
        node = node.left if goes_left else node.right
    rows = cases.rows_of(node)
    return Witness(
        row=row,
        path=tuple(path),
        leaf=digests.leaf_digest(
            len(rows),
            rules.bounds(sent.records.values.tolist(), rows),
            [(r, sent.records.tracker[r].tobytes()) for r in rows],
        ),
    )


# From which size on the records of a node lie side by side, and go to one thread.
@pytest.mark.parametrize("sizes", [(0, 0), (150, 40), (200, 200), (1 << 19, 1 << 17)])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_row_of_a_table(
    threads: int, sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in zip(("LAID_OUT", "ONE_THREAD"), sizes, strict=True):
        monkeypatch.setattr(f"verix_anon.client.prepare.expectations.{name}", size)
    sent = cases.prepared().submission
    rows = np.random.default_rng(0).permutation(sent.records.n_rows)[:60]
    found = find_witnesses(sent, rows, threads=threads)
    assert [w.row for w in found] == rows.tolist()
    for witness in found[:12]:
        assert witness == by_the_rules(sent, witness.row)


def test_ties_and_duplicates() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        n_rows = int(rng.integers(4, 60))
        columns = [*rng.integers(0, 4, (3, n_rows)).tolist(), [7.0] * n_rows]
        sent = submission(columns, rng.integers(0, 2, n_rows).tolist())
        for witness in find_witnesses(sent, np.arange(n_rows), threads=1):
            assert witness == by_the_rules(sent, witness.row)


def test_depth_is_limited() -> None:
    columns = [np.random.default_rng(2).normal(size=200).tolist()]
    sent = submission(columns, [0, 1] * 100, max_depth=2)
    for witness in find_witnesses(sent, np.arange(200), threads=1):
        assert len(witness.path) <= 2
        assert witness == by_the_rules(sent, witness.row)


def test_root_that_is_a_leaf() -> None:
    sent = submission([[1.0] * 8], [0, 1] * 4)
    (witness,) = find_witnesses(sent, np.array([3]), threads=1)
    assert witness.path == ()
    assert witness == by_the_rules(sent, 3)


def test_none_asked_for() -> None:
    sent = cases.prepared().submission
    assert find_witnesses(sent, np.empty(0, np.int64), threads=1) == ()


def test_they_agree_with_an_honest_delivery() -> None:
    prepared = cases.prepared()
    delivery = cases.honest(prepared.submission)
    records, leaves = delivery.records, delivery.leaves
    grouped = trees.group_rows(records.leaf, leaves.n_leaves)
    of_leaf = merkle.leaf_digests(leaves, merkle.Members(*grouped, records.row, records.tracker))
    for witness in prepared.manifest.witnesses:
        assert witness.leaf == of_leaf[records.leaf[witness.row]]
