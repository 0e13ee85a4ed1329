"""What the engine on a cluster computes, without one: any tasks, any order, any sizes."""

from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.tables import any_submissions
from verix_anon.arrays import Ints
from verix_anon.kernels import histograms
from verix_anon.protocol import merkle
from verix_anon.protocol.messages import Submission
from verix_anon.provider.local import LocalProvider
from verix_anon.provider.spark.counting import Counted, Counter, added, summaries
from verix_anon.provider.spark.joining import Joined, Size
from verix_anon.provider.spark.keys import keys_of
from verix_anon.provider.spark.medians import Summary
from verix_anon.provider.spark.subtrees import Subtree, finish
from verix_anon.provider.spark.top import Limits, Part, Pass, Top, grow_top

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

    def grow(self, limits: Limits) -> tuple[Joined, list[Subtree]]:
        sent = self.sent
        top = Top(sent.contract, sent.records.n_rows, limits)
        for _ in grow_top(top, self.run):
            pass
        node = np.empty(sent.records.n_rows, np.int32)
        histograms.route(self.keys, *top.routes(), node)
        entries: list[object] = []
        subtrees: list[Subtree] = []
        for number, each in top.preorder():
            if isinstance(each, Part):
                rows = np.flatnonzero(node == number)
                assert rows.size == each.n_rows
                records = type(sent.records)(
                    tracker=sent.records.tracker[rows],
                    values=np.ascontiguousarray(sent.records.values[:, rows]),
                    target=sent.records.target[rows],
                )
                made, _ = finish(sent.contract, each, rows, records)
                subtrees.append(Subtree.from_bytes(made.to_bytes(), made.digest))
                entries.append(Size(made.tree.n_nodes, made.tree.n_leaves, made.digest))
            else:
                entries.append(each)
        return Joined(sent.contract, tuple(entries)), subtrees  # type: ignore[arg-type]


def arrays(joined: Joined, subtrees: list[Subtree]) -> Iterator[bytes]:
    pieces = list(joined.pieces(subtrees))
    for name in ("column", "threshold", "left", "right", "leaf"):
        yield np.concatenate([getattr(tree, name) for tree, _ in pieces]).tobytes()
    leaves = [each for _, each in pieces if each is not None]
    for name in ("count", "minimum", "maximum"):
        yield np.concatenate([getattr(each, name) for each in leaves]).tobytes()


@settings(max_examples=200, deadline=None)
@given(any_submissions(), st.integers(1, 60), st.integers(1, 4), st.data())
def test_same_tree_and_root(
    sent: Submission, task_rows: int, n_tasks: int, data: st.DataObject
) -> None:
    n_rows = sent.records.n_rows
    tasks = np.array(data.draw(st.lists(st.integers(1, n_tasks), min_size=n_rows, max_size=n_rows)))
    # The least budget has 64 buckets for the columns of one node.
    budget = data.draw(st.sampled_from([1, 1 << 16, 1 << 22]))
    joined, subtrees = Cluster(sent, tasks).grow(Limits(task_rows, ENDLESS, budget))
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
