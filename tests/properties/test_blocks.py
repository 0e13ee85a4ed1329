"""Nodes examined in blocks, all at once, are what the rules say of each."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.tables import submissions
from support import submission
from tools import cases
from verix_anon.adversaries import SplitsBlindly
from verix_anon.client.verify.case import Case
from verix_anon.kernels import splits
from verix_anon.kernels.radix import BLOCK
from verix_anon.protocol import rules
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.providers import Provider
from verix_anon.protocol.tree import Tree
from verix_anon.provider.local import LocalProvider


def spans_of(case: Case) -> splits.Spans:
    """All nodes, to be looked at wherever there are records enough for two sides."""
    tree, span = case.delivery.tree, case.node_spans
    lo, hi = span.T.copy()
    positives = np.concatenate([[0], np.cumsum(case.target_by_leaf, dtype=np.int64)])
    return splits.Spans(
        lo,
        np.where(tree.column >= 0, span[tree.right, 0], -1),
        hi,
        positives[hi] - positives[lo],
        hi - lo < 2 * case.contract.min_leaf,
        case.contract.min_leaf,
    )


def best_of(examine: Callable[..., None], case: Case) -> splits.Best:
    spans = spans_of(case)
    n_nodes = spans.lo.size
    best = splits.Best(np.full(n_nodes, -1, np.int32), np.zeros(n_nodes), np.full(n_nodes, -1.0))
    for column, values in enumerate(case.values_by_leaf):
        examine(column, values, case.target_by_leaf, spans, best, np.empty(values.size + 1))
    return best


@settings(max_examples=200, deadline=None)
@given(submissions(), st.sampled_from([LocalProvider(threads=1), SplitsBlindly(1)]))
def test_examined_nodes_are_the_rules(sent: Submission, provider: Provider) -> None:
    """Whatever the tree, the best split found at each open node is that of rules.best_split."""
    case = cases.case_of(provider.anonymize(sent), cases.manifest_of(sent), sent)
    rows, target = case.grouped[0], sent.records.target.tolist()
    spans = spans_of(case)
    for examine in (splits.examine_all, splits.examine_some):
        best = best_of(examine, case)
        for node in np.flatnonzero(~spans.stops):
            expected = rules.best_split(
                sent.records.values.tolist(),
                rules.VarianceReduction(target),
                rows[spans.lo[node] : spans.hi[node]].tolist(),
                min_leaf=sent.contract.min_leaf,
            )
            if expected is None:
                assert best.column[node] == -1
            else:
                found = (best.column[node], best.threshold[node], best.score[node])
                assert found == (expected.column, expected.threshold, expected.score)


@pytest.mark.parametrize("provider", [LocalProvider(threads=1), SplitsBlindly(1)])
def test_blocks_change_nothing(provider: Provider) -> None:
    """Tables of several blocks are examined as their nodes are one by one, and as numpy does."""
    rng = np.random.default_rng(0)
    n_rows = 2 * BLOCK + 777
    columns = np.vstack([rng.integers(0, 9, (2, n_rows)), rng.normal(size=(1, n_rows))])
    sent = submission(columns.tolist(), rng.integers(0, 2, n_rows).tolist(), k=400)
    case = cases.case_of(
        provider.anonymize(sent), replace(cases.manifest_of(sent), witnesses=()), sent
    )
    assert_same_best(best_of(splits.examine_all, case), best_of(splits.examine_some, case))
    spans, scratch = spans_of(case), np.empty(n_rows + 1)
    for node in np.flatnonzero(~spans.stops):
        lo, hi = spans.lo[node], spans.hi[node]
        for values in case.values_by_leaf:
            part = np.sort(values[lo:hi])
            found = splits.candidate(values[lo:hi], case.target_by_leaf[lo:hi], 800, scratch)
            assert found.threshold == part[(part.size + 1) // 2 - 1]
            assert found.n_left == np.searchsorted(part, found.threshold, side="right")


def uneven(rng: np.random.Generator, n_rows: int) -> list[list[float]]:
    """Columns that are hard to sort by buckets, to cut into slices, or to tell apart."""
    tiny = np.float64(1.0) + rng.integers(0, 400, n_rows) * 2.0**-52
    columns = [
        rng.normal(size=n_rows),
        10.0 ** rng.uniform(-300, 300, n_rows),
        rng.choice([-1e308, -5e-324, 0.0, 5e-324, 1e308], n_rows),
        np.where(rng.random(n_rows) < 0.9, 0.5, rng.random(n_rows)),
        rng.integers(0, 50, n_rows).astype(np.float64),
        np.sort(rng.normal(size=n_rows)),
        tiny,
        np.full(n_rows, 3.0),
    ]
    return [column.tolist() for column in columns]


@pytest.mark.parametrize("k", [2, 30])
@pytest.mark.parametrize("provider", [LocalProvider(threads=1), SplitsBlindly(1)])
def test_every_size_of_node_and_kind_of_column(provider: Provider, k: int) -> None:
    rng = np.random.default_rng(k)
    n_rows = 5 * BLOCK + 321
    columns = uneven(rng, n_rows)
    # A part where the label never changes becomes a leaf that is larger than a block.
    target = np.where(np.array(columns[0]) > 0.0, 1, rng.integers(0, 2, n_rows)).tolist()
    sent = submission(columns, target, k=k)
    manifest = replace(cases.manifest_of(sent), witnesses=())
    case = cases.case_of(provider.anonymize(sent), manifest, sent)
    one_by_one = best_of(splits.examine_some, case)
    assert_same_best(best_of(splits.examine_all, case), one_by_one)


def assert_same_best(found: splits.Best, expected: splits.Best) -> None:
    for name in splits.Best._fields:
        assert (getattr(found, name) == getattr(expected, name)).all()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("digits", [1, 12])
@pytest.mark.parametrize(
    "sizes",
    [
        [9_000, 3, 5_000, 100, BLOCK, 700],
        [15, 9_000, 15],
        [5_000, 15, 15, 15, 40, 9_000],
        [300, 2_000, 3, 256, 257, 60, 255],
        [9_000, 3, 40, 15, 8_190],
    ],
)
def test_leaves_of_any_size_under_large_nodes(sizes: list[int], digits: int, side: str) -> None:
    """Providers that stop early or late: blocks must end where every larger node does."""
    rng = np.random.default_rng(1)
    n_rows = sum(sizes)
    values = np.round(rng.normal(size=n_rows), digits) + 0.0
    target = rng.integers(0, 2, n_rows).astype(np.uint8)
    tree = chain(len(sizes), side)
    tree.check(n_quasi=1, max_depth=50)
    everything = spans_under(tree, sizes, target, stops_below=20)
    expected = examined(splits.examine_some, values, target, everything)
    found = examined(splits.examine_all, values, target, everything)
    assert_same_best(found, expected)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.integers(1, 300)
        | st.integers(0, 200).map(lambda i: 32 + 64 * i)
        | st.integers(BLOCK - 130, BLOCK + 130),
        min_size=2,
        max_size=6,
    ),
    st.sampled_from([1, 3, 1_000_000]),
    st.sampled_from(["left", "right"]),
    st.integers(0, 9),
)
def test_blocks_of_every_size(sizes: list[int], n_values: int, side: str, seed: int) -> None:
    """Blocks begin and end where they must, whatever their size, and whatever is tied."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, n_values, BLOCK + sum(sizes)).astype(np.float64)
    # Some leaves lie wholly to one side of what others hold.
    values += np.repeat(rng.integers(-1, 2, len(sizes) + 1) * n_values, [BLOCK, *sizes])
    target = rng.integers(0, 2, values.size).astype(np.uint8)
    tree = chain(len(sizes) + 1, side)
    everything = spans_under(tree, [BLOCK, *sizes], target)
    # The rule stops at leaves of any size: where all labels are the same, or at the depth agreed.
    stops = everything.stops | ((tree.column < 0) & (rng.random(tree.n_nodes) < 0.5))
    everything = everything._replace(stops=stops)
    expected = examined(splits.examine_some, values, target, everything)
    found = examined(splits.examine_all, values, target, everything)
    assert_same_best(found, expected)


def spans_under(
    tree: Tree, sizes: list[int], target: npt.NDArray[np.uint8], stops_below: int = 2
) -> splits.Spans:
    """The nodes of a tree whose leaves hold so many records."""
    span = np.cumsum([0, *sizes])[tree.leaf_spans()]
    lo, hi = span.T.copy()
    middle = np.where(tree.column >= 0, span[tree.right, 0], -1)
    positives = np.concatenate([[0], np.cumsum(target, dtype=np.int64)])
    min_leaf = max(1, stops_below // 2)
    return splits.Spans(
        lo, middle, hi, positives[hi] - positives[lo], hi - lo < stops_below, min_leaf
    )


def chain(n_leaves: int, side: str) -> Tree:
    """A tree in which each split takes one leaf off, on this side."""
    column, right, leaf = [], [], []
    n_inner = n_leaves - 1
    if side == "left":
        for i in range(n_inner):
            column += [0, -1]
            right += [2 * i + 2, -1]
            leaf += [-1, i]
    else:
        column, leaf = [0] * n_inner, [-1] * n_inner
        right = [2 * n_inner - i for i in range(n_inner)]
    n_last = n_leaves - len([number for number in leaf if number >= 0])
    leaf += range(n_leaves - n_last, n_leaves)
    column, right = column + [-1] * n_last, right + [-1] * n_last
    numbers = np.arange(len(column))
    is_inner = np.array(column) >= 0
    return Tree(
        column=np.array(column, np.int32),
        threshold=np.zeros(len(column)),
        left=np.where(is_inner, numbers + 1, -1).astype(np.int32),
        right=np.array(right, np.int32),
        leaf=np.array(leaf, np.int32),
    )


def examined(
    examine: Callable[..., None],
    values: npt.NDArray[np.float64],
    target: npt.NDArray[np.uint8],
    spans: splits.Spans,
) -> splits.Best:
    n = spans.lo.size
    best = splits.Best(np.full(n, -1, np.int32), np.zeros(n), np.full(n, -1.0))
    examine(0, values, target, spans, best, np.empty(values.size + 1))
    return best
