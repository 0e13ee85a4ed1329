"""Layer `splits`: what its findings say, node by node and witness by witness."""

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from support import numeric, submission
from tools import cases
from verix_anon.client.prepare import Prepared
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.verdict import Finding, Status
from verix_anon.client.verify import splits, verify
from verix_anon.client.verify.case import Audit, VerifyOptions
from verix_anon.errors import TableError
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Column, Kind, Unit
from verix_anon.protocol.messages import Delivery


def thin(delivery: Delivery, made: Prepared) -> Finding:
    return splits.check(cases.case_of(delivery, made.manifest))


def test_honest_findings_say_what_was_looked_at() -> None:
    made = cases.prepared()
    delivery = cases.honest(made.submission)
    finding = splits.check(cases.case_of(delivery, made.manifest, made.submission))
    n_nodes = delivery.tree.n_nodes
    assert finding.status is Status.PASS
    assert finding.evidence["nodes"] == finding.evidence["examined"] == n_nodes
    assert finding.guarantee.startswith("Exact")


def test_deviation_shows_what_was_delivered_and_what_the_rule_gives() -> None:
    made = cases.prepared(clear=True)
    sent = made.submission
    top = cases.grown(sent)
    assert isinstance(top, rules.Node)
    second = cases.candidates(sent, top)[1]
    spoilt = cases.split(sent, top, 0, second.column, second.threshold)
    finding = splits.check(
        cases.case_of(cases.delivered(sent, spoilt), made.manifest, made.submission)
    )
    (first,) = cast(list[str], finding.evidence["first_deviations"])
    names = [column.name for column in sent.contract.quasi]
    assert first.startswith(f"node 0 with {sent.records.n_rows} records: a split of ")
    assert repr(names[second.column]) in first
    assert first.index(repr(names[second.column])) < first.index("the rule gives")
    assert repr(names[top.column]) in first


def test_only_the_first_deviations_are_shown() -> None:
    made = cases.prepared()
    sent = made.submission
    top = cases.grown(sent)
    pairs = [
        node
        for node, _ in cases.nodes_of(top)
        if isinstance(node, rules.Node)
        and isinstance(node.left, rules.Leaf)
        and isinstance(node.right, rules.Leaf)
    ]
    for node in pairs:
        top = cases.replaced(top, node, rules.Leaf(tuple(cases.rows_of(node))))
    finding = splits.check(cases.case_of(cases.delivered(sent, top), made.manifest, sent))
    assert finding.evidence["deviations"] == len(pairs) > splits.MAX_SHOWN
    shown = finding.evidence["first_deviations"]
    assert isinstance(shown, list)
    assert len(shown) == splits.MAX_SHOWN


def test_depth_is_held_to_the_contract() -> None:
    """A tree that stops one level early, and says it was the depth."""
    columns = [np.random.default_rng(2).normal(size=80).tolist()]
    sent = submission(columns, [0, 1] * 40, max_depth=3)
    shallow = submission(columns, [0, 1] * 40, max_depth=2)
    delivery = cases.delivered(sent, cases.grown(shallow))
    case = cases.case_of(delivery, cases.manifest_of(sent), sent)
    deviations = splits.examine(case, np.arange(delivery.tree.n_nodes))
    assert len(deviations) == 4
    assert {d.delivered for d in deviations} == {"a leaf"}


@pytest.mark.parametrize(
    ("column", "threshold", "shown"),
    [
        (numeric("a"), 2.5, "2.5"),
        (numeric("a"), 1e300, "1e+300"),
        (Column(name="c", kind=Kind.CATEGORICAL, categories=("x", "y")), 1.0, "y"),
        (Column(name="c", kind=Kind.CATEGORICAL, categories=("x", "y")), 99.0, "99.0"),
        (Column(name="c", kind=Kind.CATEGORICAL, categories=("x", "y")), -1.0, "-1.0"),
        (Column(name="d", kind=Kind.DATETIME, unit=Unit.DAY), 1.0, "1970-01-02"),
        (Column(name="d", kind=Kind.DATETIME, unit=Unit.DAY), 1e300, "1e+300"),
        (Column(name="d", kind=Kind.DATETIME, unit=Unit.MICROSECOND), -1e300, "-1e+300"),
    ],
)
def test_any_threshold_can_be_shown(column: Column, threshold: float, shown: str) -> None:
    assert splits._shown(column, threshold) == shown


@pytest.mark.parametrize("name", ["town", "since"])
@pytest.mark.parametrize("threshold", [1e300, -1e300, 1e9])
def test_thin_hostile_threshold_is_no_crash(name: str, threshold: float) -> None:
    """A threshold far from any category or date, at the root, where every witness passes."""
    made = cases.prepared(clear=True)
    names = [column.name for column in made.submission.contract.quasi]
    honest = cases.honest(made.submission)
    column, thresholds = honest.tree.column.copy(), honest.tree.threshold.copy()
    column[0], thresholds[0] = names.index(name), threshold
    tree = replace(honest.tree, column=column, threshold=thresholds)
    delivery = cases.resealed(made.submission, honest, tree=tree)
    assert not verify(delivery, made.manifest)
    finding = thin(delivery, made)
    assert finding.status is Status.FAIL
    assert repr(threshold) in finding.summary or name == "since"


def test_thin_says_what_it_misses() -> None:
    made = cases.prepared()
    finding = thin(cases.honest(made.submission), made)
    assert finding.status is Status.PASS
    assert "(1 - d)^20" in finding.guarantee
    assert finding.evidence["witnesses"] == 20


def test_thin_without_witnesses_is_inconclusive() -> None:
    made = cases.prepared(witnesses=0)
    assert thin(cases.honest(made.submission), made).status is Status.INCONCLUSIVE


def all_watch() -> Prepared:
    """Every record is a witness."""
    return cases.prepared(n_rows=150, traps=Traps.NONE, witnesses=150)


@pytest.mark.parametrize("change", ["bounds", "members", "count"])
def test_a_witness_sees_its_leaf(change: str) -> None:
    made = all_watch()
    honest = cases.honest(made.submission)
    leaves, records = honest.leaves, honest.records
    if change == "bounds":
        maximum = leaves.maximum.copy()
        maximum[0, 0] += 1
        leaves = replace(leaves, maximum=maximum)
    elif change == "count":
        leaves = replace(leaves, count=leaves.count + (np.arange(leaves.n_leaves) == 0))
    else:
        tracker = records.tracker.copy()
        rows = np.flatnonzero(records.leaf == 0)[:2]
        tracker[rows] = tracker[rows[::-1]]
        records = replace(records, tracker=tracker)
    delivery = cases.resealed(made.submission, honest, records=records, leaves=leaves)
    finding = thin(delivery, made)
    assert finding.status is Status.FAIL
    assert "leaf 0 with" in finding.summary


def test_a_witness_counts_the_records_on_its_way() -> None:
    """The tree is right, but a record was claimed for another side of it."""
    made = all_watch()
    honest = cases.honest(made.submission)
    leaf = honest.records.leaf.copy()
    leaf[np.flatnonzero(leaf == 0)[0]] = leaf.max()
    records = replace(honest.records, leaf=leaf)
    delivery = cases.resealed(made.submission, honest, records=records)
    finding = thin(delivery, made)
    assert finding.status is Status.FAIL
    shown = str(finding.evidence["first_deviations"])
    assert "the rule gives a node with " in shown


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_change_nothing(threads: int) -> None:
    made = cases.prepared()
    sent = made.submission
    top = cases.grown(sent)
    second = cases.candidates(sent, top)[1]
    delivery = cases.delivered(sent, cases.split(sent, top, 0, second.column, second.threshold))
    case = cases.case_of(delivery, made.manifest, sent, VerifyOptions(threads=threads))
    assert [d.node for d in splits.examine(case, np.arange(delivery.tree.n_nodes))] == [0]


def test_paths_are_those_of_the_tree() -> None:
    made = cases.prepared()
    case = cases.case_of(cases.honest(made.submission), made.manifest, made.submission)
    tree = case.delivery.tree
    parent = {}
    for node in range(tree.n_nodes):
        if tree.column[node] >= 0:
            parent[int(tree.left[node])] = parent[int(tree.right[node])] = node
    for leaf in range(tree.n_leaves):
        node = int(np.flatnonzero(tree.leaf == leaf)[0])
        path = [node]
        while path[0] != 0:
            path.insert(0, parent[path[0]])
        assert splits._path(tree, tree.leaf_spans()[:, 0], leaf) == path


@pytest.mark.parametrize("name", ["audit_miss", "audit_fraction"])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_impossible_wishes_are_refused(name: str, value: float) -> None:
    with pytest.raises(TableError, match=name):
        VerifyOptions(audit=Audit.SAMPLE, **{name: value})  # type: ignore[arg-type]
