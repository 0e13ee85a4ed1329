"""The audit of `importance-spread` says of every node what the rules say, whatever the tree."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.tables import coded_submissions
from support import coded
from tools import cases
from verix_anon.client.verify import splits as layer
from verix_anon.client.verify.case import VerifyOptions
from verix_anon.client.verify.splits import best_splits
from verix_anon.kernels import offers
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Submission


@st.composite
def trees(draw: st.DrawFn) -> tuple[Submission, cases.Top]:
    """A submission, and a tree that splits it anywhere, leaves large enough."""
    sent = draw(
        coded_submissions(least=16).filter(lambda s: s.contract.rule is Rule.IMPORTANCE_SPREAD)
    )
    values, min_leaf = sent.records.values, sent.contract.min_leaf

    def grown(rows: list[int], depth: int) -> cases.Top:
        leaf = rules.Leaf(tuple(rows))
        if depth >= sent.contract.max_depth or draw(st.integers(0, 3)) == 0:
            return leaf
        column = draw(st.integers(0, len(values) - 1))
        threshold = draw(st.sampled_from(sorted(values[column][rows].tolist())))
        left = [row for row in rows if values[column][row] <= threshold]
        right = [row for row in rows if values[column][row] > threshold]
        if min(len(left), len(right)) < min_leaf:
            return leaf
        return rules.Node(column, threshold, grown(left, depth + 1), grown(right, depth + 1))

    return sent, grown(list(range(sent.records.n_rows)), 0)


@settings(max_examples=250, deadline=None)
@given(trees(), st.integers(1, 3))
def test_exactly_the_wrong_nodes_are_named(
    made: tuple[Submission, cases.Top], threads: int
) -> None:
    sent, top = made
    contract, columns = sent.contract, sent.records.values.tolist()
    rule = rules.criterion(contract, [])
    wrong = {}
    for number, (node, depth) in enumerate(cases.nodes_of(top)):
        rows = cases.rows_of(node)
        expected = None
        if len(rows) >= 2 * contract.min_leaf and depth < contract.max_depth:
            expected = rules.best_split(columns, rule, rows, min_leaf=contract.min_leaf)
        delivered = (node.column, node.threshold) if isinstance(node, rules.Node) else None
        given = None if expected is None else (expected.column, expected.threshold)
        if delivered != given:
            wrong[number] = given
    case = cases.case_of(
        cases.delivered(sent, top),
        cases.manifest_of(sent),
        sent,
        VerifyOptions(threads=threads),
    )
    found = best_splits(case, np.arange(case.delivery.tree.n_nodes))
    assert [d.node for d in layer.examine(case, np.arange(found.column.size))] == list(wrong)
    for number, given in wrong.items():
        assert found.column[number] == (-1 if given is None else given[0])
        assert given is None or found.threshold[number] == given[1]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=2, max_size=80), st.integers(1, 12))
def test_an_offer_is_the_rules(values: list[int], min_leaf: int) -> None:
    expected = rules.threshold([float(value) for value in values], min_leaf)
    found = offers.offer(np.array(values, np.float64), min_leaf, np.empty(len(values) + 1))
    assert np.isnan(found) if expected is None else found == expected


def test_a_skewed_column_is_split_below_its_median() -> None:
    # Nine in ten share the last value; without the second threshold nothing is ever split here.
    sent = coded([[0] * 4 + [1] * 36], k=2)
    delivery = cases.honest(sent)
    assert delivery.tree.threshold.tolist() == [0.0, 0.0, 0.0]
    assert delivery.leaves.count.tolist() == [4, 36]
