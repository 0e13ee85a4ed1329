"""What the engine on a cluster computes, without one: any tasks, any order, any sizes."""

import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.tables import any_submissions
from provider.made_cluster import MadeCluster
from provider.spark_cluster import read, scatter
from verix_anon.arrays import Ints
from verix_anon.files.folder_writer import write_submission
from verix_anon.kernels import histograms
from verix_anon.protocol import merkle
from verix_anon.protocol.messages import Submission
from verix_anon.provider import spark
from verix_anon.provider.local import LocalProvider
from verix_anon.provider.spark.submission_reader import keys_of
from verix_anon.provider.spark.subtrees import JoinedTree, Subtree, SubtreeSize, finish
from verix_anon.provider.spark.top import (
    ClusterLimits,
    Counted,
    Counter,
    Pass,
    Summary,
    Top,
    TreePart,
    added,
    grow_top,
    summaries,
)

ENDLESS = 2**31


class Cluster:
    """Records shared out among tasks, in any order."""

    def __init__(self, sent: Submission, tasks: Ints) -> None:
        self.sent, self.tasks = sent, tasks
        columns = zip(sent.contract.quasi, sent.records.values, strict=True)
        self.keys = np.column_stack([keys_of(*column) for column in columns])
        self.n_passes = 0

    def run(self, wanted: Pass) -> tuple[Ints, Summary]:
        self.n_passes += 1
        counts: list[Counted] = []
        for task in np.unique(self.tasks):
            rows = np.flatnonzero(self.tasks == task)
            counter = Counter(wanted)
            for some in np.array_split(rows, 2):
                counter.add(self.keys[some], self.sent.records.target[some])
            counts += counter.result()
        cells = added(counts, wanted.n_buckets)
        which, found = zip(*summaries(cells, wanted.ranks), strict=True)
        return np.array(which), Summary(*np.array(found).T)

    def grow(self, limits: ClusterLimits) -> tuple[JoinedTree, list[Subtree]]:
        sent = self.sent
        top = Top(sent.contract, sent.records.n_rows, limits)
        for _ in grow_top(top, self.run):
            pass
        node = np.empty(sent.records.n_rows, np.int32)
        histograms.route(self.keys, *top.routes(), node)
        entries: list[object] = []
        subtrees: list[Subtree] = []
        for number, each in top.preorder():
            if isinstance(each, TreePart):
                rows = np.flatnonzero(node == number)
                assert rows.size == each.n_rows
                records = type(sent.records)(
                    tracker=sent.records.tracker[rows],
                    values=np.ascontiguousarray(sent.records.values[:, rows]),
                    target=sent.records.target[rows],
                )
                made, _ = finish(sent.contract, each, rows, records)
                subtrees.append(Subtree.from_bytes(made.to_bytes(), made.digest))
                entries.append(SubtreeSize(made.tree.n_nodes, made.tree.n_leaves, made.digest))
            else:
                entries.append(each)
        return JoinedTree(sent.contract, tuple(entries)), subtrees  # type: ignore[arg-type]


def arrays(joined: JoinedTree, subtrees: list[Subtree]) -> Iterator[bytes]:
    pieces = list(joined.pieces(subtrees))
    for name in ("column", "threshold", "left", "right", "leaf"):
        yield np.concatenate([getattr(tree, name) for tree, _ in pieces]).tobytes()
    leaves = [each for _, each in pieces if each is not None]
    for name in ("count", "minimum", "maximum"):
        yield np.concatenate([getattr(each, name) for each in leaves]).tobytes()


@settings(max_examples=80, deadline=None)
@given(any_submissions(), st.integers(1, 60), st.integers(1, 4), st.data())
def test_same_tree_and_root(
    sent: Submission, task_rows: int, n_tasks: int, data: st.DataObject
) -> None:
    n_rows = sent.records.n_rows
    tasks = np.array(data.draw(st.lists(st.integers(1, n_tasks), min_size=n_rows, max_size=n_rows)))
    # The least budget has 64 buckets for the columns of one node.
    budget = data.draw(st.sampled_from([1, 1 << 16, 1 << 22]))
    joined, subtrees = Cluster(sent, tasks).grow(ClusterLimits(task_rows, ENDLESS, budget))
    expected = LocalProvider(threads=1).anonymize(sent)
    root = merkle.root_over(sent.contract, sent.digest(), joined.digest())
    assert root == expected.header.root
    tree, leaves = expected.tree, expected.leaves
    assert list(arrays(joined, subtrees)) == [
        each.tobytes()
        for each in (
            tree.column, tree.threshold, tree.left, tree.right, tree.leaf,
            leaves.count, leaves.minimum, leaves.maximum,
        )
    ]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    any_submissions(),
    st.integers(1, 60),
    st.one_of(st.none(), st.integers(1, 5)),
    st.integers(1, 4),
    st.integers(0, 2**32),
)
def test_same_delivery_from_any_files(
    sent: Submission, task_rows: int, n_parts: int | None, n_cores: int, seed: int
) -> None:
    """The whole job with its files, as one or in parts; tasks may run more than once."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        write_submission(sent, folder / "submission")
        if n_parts is not None:
            scatter(folder / "submission", n_parts, rng)
        patch.setattr(
            spark, "session", lambda configuration: nullcontext(MadeCluster(n_cores, rng))
        )
        patch.setattr(spark, "_told", nullcontext)
        provider = spark.SparkProvider(task_rows=task_rows)
        header = provider.anonymize_folder(folder / "submission", folder / "delivery")
        found = read(folder / "delivery", sent)
        assert sorted(path.name for path in folder.iterdir()) == ["delivery", "submission"]
        assert not list((folder / "delivery").glob(".*"))
    expected = LocalProvider(threads=1).anonymize(sent)
    assert header.root == expected.header.root
    in_order = np.argsort(found.records.row)
    for each in ("row", "tracker", "leaf", "target"):
        delivered = getattr(found.records, each)[in_order]
        np.testing.assert_array_equal(delivered, getattr(expected.records, each))
