"""The audit is the rule: nothing honest is flagged, and no single change goes unseen."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from properties.tables import coded_submissions, submissions
from tools import cases
from verix_anon.client.verdict import Status
from verix_anon.client.verify import replay
from verix_anon.client.verify import splits as layer
from verix_anon.client.verify.case import Audit, VerifyOptions
from verix_anon.kernels import splits
from verix_anon.protocol import rules
from verix_anon.protocol.messages import Delivery, Submission


def judged(
    delivery: Delivery, sent: Submission, options: VerifyOptions
) -> tuple[Status, Status | None]:
    """What `replay` and, after it, `splits` find with the submission at hand."""
    delivery.check(sent.contract, n_rows=sent.records.n_rows)
    case = cases.case_of(delivery, cases.manifest_of(sent), sent, options)
    first = replay.check(case).status
    return first, layer.check(case).status if first is Status.PASS else None


FULL = VerifyOptions(threads=1)


@settings(max_examples=120, deadline=None)
@given(submissions())
def test_candidates_are_the_rules(sent: Submission) -> None:
    contract, records = sent.contract, sent.records
    scratch = np.empty(records.n_rows + 1)
    target = records.target.tolist()
    for node, _ in cases.nodes_of(cases.grown(sent)):
        rows = cases.rows_of(node)
        for values in records.values:
            part = np.ascontiguousarray(values[rows])
            found = splits.candidate(part, records.target[rows], contract.min_leaf, scratch)
            expected = rules.best_split(
                [values.tolist()], rules.VarianceReduction(target), rows, min_leaf=contract.min_leaf
            )
            assert found.is_valid == (expected is not None)
            assert found.threshold == rules.lower_median(part.tolist())
            if expected is not None:
                positive = int(records.target[rows].sum())
                value = splits.score(len(rows), positive, found.n_left, found.positive_left)
                assert (found.threshold, value) == (expected.threshold, expected.score)


@settings(max_examples=120, deadline=None)
@given(st.one_of(submissions(), coded_submissions()), st.sampled_from([0.01, 0.2, 0.5]))
def test_nothing_honest_is_flagged(sent: Submission, fraction: float) -> None:
    delivery = cases.honest(sent)
    sample = VerifyOptions(audit=Audit.SAMPLE, audit_miss=0.5, audit_fraction=fraction, threads=1)
    for options in (FULL, VerifyOptions(threads=3), sample):
        assert judged(delivery, sent, options) == (Status.PASS, Status.PASS)
    thin = cases.case_of(delivery, cases.manifest_of(sent))
    assert replay.check(thin).status is Status.PASS
    assert layer.check(thin).status is Status.PASS


@st.composite
def mutations(draw: st.DrawFn) -> tuple[Submission, cases.Top, cases.Top, str]:
    """A table, its honest tree, one with a single node changed, and how it was changed."""
    sent = draw(st.one_of(submissions(least=16), coded_submissions(least=16)))
    top = cases.grown(sent)
    found = list(cases.nodes_of(top))
    inner = [pair for pair in found if isinstance(pair[0], rules.Node)]
    leaves = [pair for pair in found if isinstance(pair[0], rules.Leaf)]
    kind = draw(st.sampled_from(["threshold", "between", "column", "cut", "further"]))
    node, depth = draw(st.sampled_from(leaves if kind == "further" else (inner or leaves)))
    new = _mutated(draw, sent, node, depth, kind)
    assume(new is not None)
    assert new is not None
    return sent, top, cases.replaced(top, node, new), kind


def _mutated(
    draw: st.DrawFn, sent: Submission, node: cases.Top, depth: int, kind: str
) -> cases.Top | None:
    rows = cases.rows_of(node)
    if kind == "further":
        column = draw(st.integers(0, len(sent.records.values) - 1))
        threshold = draw(st.sampled_from(sent.records.values[column][rows].tolist()))
        if depth >= sent.contract.max_depth:
            return None
        return _checked(sent, cases.split(sent, node, depth, column, threshold))
    if isinstance(node, rules.Leaf):
        return None
    if kind == "cut":
        return rules.Leaf(tuple(rows))
    if kind == "column":
        others = [c for c in cases.candidates(sent, node) if c.column != node.column]
        if not others:
            return None
        chosen = draw(st.sampled_from(others))
        return cases.split(sent, node, depth, chosen.column, chosen.threshold)
    values = sorted(set(sent.records.values[node.column][rows].tolist()))
    at = values.index(node.threshold)
    if kind == "between":
        # The same records on each side; only the number is another one.
        between = float(np.nextafter(node.threshold, values[at + 1]))
        return replace(node, threshold=between) if between < values[at + 1] else None
    neighbours = [values[i] for i in (at - 1, at + 1) if 0 <= i < len(values) - 1]
    if not neighbours:
        return None
    chosen_value = draw(st.sampled_from(neighbours))
    return _checked(sent, cases.split(sent, node, depth, node.column, chosen_value))


def _checked(sent: Submission, top: cases.Top) -> cases.Top | None:
    """None if a leaf has no record at all: such a tree has no bounds to publish."""
    return top if all(cases.rows_of(node) for node, _ in cases.nodes_of(top)) else None


@settings(max_examples=120, deadline=None)
@given(mutations())
def test_no_single_change_goes_unseen(
    mutation: tuple[Submission, cases.Top, cases.Top, str],
) -> None:
    sent, top, changed, _ = mutation
    assume(rules.flatten(changed) != rules.flatten(top))
    n_leaves = len(rules.flatten(changed)[1])
    # More leaves than 2k allows are refused before any layer runs.
    assume(n_leaves <= sent.records.n_rows // sent.contract.min_leaf)
    delivery = cases.delivered(sent, changed)
    found = judged(delivery, sent, FULL)
    small = min(len(rows) for rows in rules.flatten(changed)[1]) < sent.contract.min_leaf
    assert found == ((Status.FAIL, None) if small else (Status.PASS, Status.FAIL))


@settings(max_examples=120, deadline=None)
@given(mutations())
def test_a_witness_under_the_change_sees_it(
    mutation: tuple[Submission, cases.Top, cases.Top, str],
) -> None:
    """Thin, with every record a witness, no change of the tree goes unseen either."""
    sent, top, changed, _ = mutation
    assume(rules.flatten(changed) != rules.flatten(top))
    n_leaves = len(rules.flatten(changed)[1])
    assume(n_leaves <= sent.records.n_rows // sent.contract.min_leaf)
    case = cases.case_of(cases.delivered(sent, changed), cases.manifest_of(sent))
    assert Status.FAIL in (replay.check(case).status, layer.check(case).status)
