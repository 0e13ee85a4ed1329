"""Aggregates in the evidence: right, bounded, quick, and nobody's values."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import cases
from verix_anon.adversaries import ADVERSARIES
from verix_anon.client import evidence
from verix_anon.client.evidence import EvasionCurve, ShapShift, SizeHistogram, TreeMap
from verix_anon.client.owner_files import parse_verdict
from verix_anon.client.verdict import Verdict
from verix_anon.client.verify import verify
from verix_anon.client.verify.case import Audit, VerifyOptions
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.protocol.tree import Tree


def balanced(depth: int, n_rows: int) -> tuple[Tree, np.ndarray]:
    """A tree whose every split halves its records, and the span of each node."""
    n = 2 ** (depth + 1) - 1
    right, leaf, spans = np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.zeros((n, 2), int)
    node = n_leaves = 0
    todo = [(depth, 0, n_rows, -1)]
    while todo:
        height, lo, hi, parent = todo.pop()
        if parent >= 0:
            right[parent] = node
        spans[node] = lo, hi
        if height == 0:
            leaf[node] = n_leaves
            n_leaves += 1
        else:
            middle = (lo + hi) // 2
            todo += [(height - 1, middle, hi, node), (height - 1, lo, middle, -1)]
        node += 1
    is_leaf = leaf >= 0
    left = np.where(is_leaf, -1, np.arange(1, n + 1)).astype(np.int32)
    column = np.where(is_leaf, -1, 0).astype(np.int32)
    return Tree(column=column, threshold=np.zeros(n), left=left, right=right, leaf=leaf), spans


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=200), st.integers(1, 10_000))
def test_sizes_are_all_counted(sizes: list[int], at_least: int) -> None:
    found = SizeHistogram.of(np.array(sizes), at_least)
    edges, counts = found.edges, found.counts
    assert len(edges) == len(counts) + 1 <= evidence.MOST_BINS + 2
    assert list(edges) == sorted(set(edges))
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        assert count == sum(low <= size < high for size in sizes)
    assert sum(counts) == len(sizes)
    # Those that are too small can be told from the others.
    small = sum(c for c, high in zip(counts, edges[1:], strict=True) if high <= at_least)
    assert small == sum(size < at_least for size in sizes)


def test_ends_of_a_paired_histogram_are_nobodys() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=2_000), rng.normal(3, 2, size=1_500)
    found = ShapShift.of("x", before, after)
    assert sum(found.before) == 2_000
    assert sum(found.after) == 1_500
    both = np.concatenate([before, after])
    assert not np.isin([found.low, found.high], both).any()
    assert both.min() < found.low < found.high < both.max()


@pytest.mark.parametrize("value", [0.0, -3.25, 1e30])
def test_paired_histogram_of_one_value(value: float) -> None:
    found = ShapShift.of("x", np.full(9, value), np.full(4, value))
    assert sum(found.before) == 9


def test_levels_of_a_map_are_full() -> None:
    tree, spans = balanced(7, 5_000)
    found = TreeMap.of(tree, spans, np.full(tree.n_nodes, evidence.RIGHT, np.uint8))
    assert len(found.levels) == 8
    for depth, level in enumerate(found.levels):
        assert sum(width for _, width in level) == evidence.UNITS
        assert {letter for letter, _ in level} <= {"r", "R"}
        if depth < 5:
            assert len(level) == 2**depth


@pytest.mark.parametrize("depth", [3, 10, 14])
def test_one_deviating_node_shows_however_small(depth: int) -> None:
    tree, spans = balanced(depth, 2**depth * 20)
    rng = np.random.default_rng(depth)
    for node in rng.choice(tree.n_nodes, 10):
        state = np.full(tree.n_nodes, evidence.RIGHT, np.uint8)
        state[node] = evidence.DEVIATES
        at = int(tree.depths()[node])
        for level, found in enumerate(TreeMap.of(tree, spans, state).levels):
            marked = sum(width for letter, width in found if letter in "wW")
            assert (marked > 0) == (level == at)


def test_partly_seen_is_neither_seen_nor_unseen() -> None:
    tree, spans = balanced(12, 2**12 * 20)
    state = np.zeros(tree.n_nodes, np.uint8)
    state[::2] = evidence.RIGHT
    letters = {letter for letter, _ in TreeMap.of(tree, spans, state).levels[-1]}
    assert "M" in letters <= set("MUR")


def test_aggregates_of_a_million_rows_are_small() -> None:
    tree, spans = balanced(16, 1_000_000)
    state = np.random.default_rng(0).integers(0, 3, tree.n_nodes).astype(np.uint8)
    sizes = spans[tree.leaf >= 0] @ [-1, 1]
    shap = np.random.default_rng(0).normal(size=(6, 2_000))
    found = [
        TreeMap.of(tree, spans, state).to_json(),
        SizeHistogram.of(sizes, 10).to_json(),
        *(ShapShift.of("x", shap[i], shap[i + 3]).to_json() for i in range(3)),
    ]
    assert len(json.dumps(found)) < 100_000


def test_aggregates_read_what_they_write() -> None:
    tree, spans = balanced(9, 40_000)
    state = np.random.default_rng(0).integers(0, 3, tree.n_nodes).astype(np.uint8)
    made = (
        TreeMap.of(tree, spans, state),
        SizeHistogram.of(spans[tree.leaf >= 0] @ [-1, 1], 10),
        ShapShift.of("x", np.arange(9.0), np.arange(4.0)),
        EvasionCurve.of(lambda drop: 1 - drop),
    )
    for each in made:
        fields = Fields.parse(json.dumps(each.to_json()), "evidence", TableError)
        assert type(each).from_json(fields) == each


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (TreeMap, '{"units": 400, "levels": []}'),
        (TreeMap, '{"units": 400, "levels": ["r399"]}'),
        (TreeMap, '{"units": 400, "levels": ["x400"]}'),
        (TreeMap, '{"units": 501, "levels": ["r501"]}'),
        (SizeHistogram, '{"edges": [1], "counts": []}'),
        (SizeHistogram, '{"edges": [2, 1], "counts": [1]}'),
        (SizeHistogram, '{"edges": [1, 2], "counts": [-1]}'),
        (SizeHistogram, '{"edges": [1, 2], "counts": [1], "at_least": -1}'),
        (ShapShift, '{"from": 0, "to": 1, "before": [1, 2], "after": [1]}'),
        (ShapShift, '{"from": 1, "to": 1, "before": [1], "after": [1]}'),
        (EvasionCurve, '{"drop": [0.1], "probability": [1.5]}'),
        (EvasionCurve, '{"drop": [0.1], "probability": []}'),
        (EvasionCurve, '{"drop": [0], "probability": [1]}'),
    ],
)
def test_what_is_not_an_aggregate_is_refused(kind: type[TreeMap], text: str) -> None:
    with pytest.raises(TableError, match=r"^evidence"):
        kind.from_json(Fields.parse(text, "evidence", TableError))


def judged(name: str | None, audit: Audit = Audit.ALL) -> Verdict:
    prepared = cases.prepared()
    provider = ADVERSARIES[name](0) if name else None
    sent = prepared.submission
    delivery = provider.anonymize(sent) if provider else cases.honest(sent)
    options = VerifyOptions(audit=audit, audit_fraction=0.2, audit_miss=0.2, threads=1)
    return verify(delivery, prepared.manifest, submission=sent, options=options)


@pytest.mark.usefixtures("quick_models")
def test_evidence_holds_the_aggregates_and_survives_a_file() -> None:
    verdict = judged("approximate")
    read = parse_verdict(verdict.to_json())
    assert read == replace(verdict, findings=read.findings)
    splits = read.finding("splits").evidence
    deviating = splits["deviating"]
    assert isinstance(deviating, list)
    texts = splits["first_deviations"]
    assert isinstance(texts, list)
    for named, text in zip(deviating, texts, strict=True):
        assert f"node {named['node']} with {named['records']:,} records" in text
        # The same, but for the thresholds.
        assert " at " in text
        assert not any(word.strip(".").isdigit() for word in named["kind"].split())
    assert "w" in "".join(splits["tree_map"]["levels"])  # type: ignore[index]
    sizes = read.finding("replay").evidence["leaf_sizes"]
    assert sizes["at_least"] == cases.prepared().manifest.contract.min_leaf  # type: ignore[index]
    assert verdict.time.endswith("+00:00")


@pytest.mark.usefixtures("quick_models")
def test_sample_shows_what_was_not_looked_at() -> None:
    honest = judged(None, Audit.SAMPLE)
    found = honest.finding("splits").evidence["tree_map"]
    assert isinstance(found, dict)
    read = TreeMap.from_json(Fields(found, "tree_map", TableError))
    letters = {letter for level in read.levels for letter, _ in level}
    assert letters & set("uUM")
    assert not letters & set("wW")


@pytest.mark.usefixtures("quick_models")
def test_thin_verification_maps_nothing() -> None:
    """Which nodes the witnesses pass would tell who they are."""
    prepared = cases.prepared()
    verdict = verify(cases.honest(prepared.submission), prepared.manifest)
    assert "tree_map" not in verdict.finding("splits").evidence
    assert "deviating" not in verdict.finding("splits").evidence


@pytest.mark.usefixtures("quick_models")
def test_thin_replay_says_what_without_where() -> None:
    prepared = cases.prepared()
    honest = cases.honest(prepared.submission)
    leaf = np.roll(honest.records.leaf, 1)
    moved = cases.resealed(prepared.submission, honest, records=replace(honest.records, leaf=leaf))
    evidence = verify(moved, prepared.manifest).finding("replay").evidence
    problems, found = evidence["problems"], evidence["found"]
    assert isinstance(problems, list)
    assert isinstance(found, list)
    assert len(problems) == len(found) > 0
    assert any("leaf" in problem and "the first" in problem for problem in problems)
    for sentence in found:
        assert sentence.endswith(".")
        assert "the first" not in sentence
        assert "leaf " not in sentence.replace("in a leaf that the tree does not", "")
        assert not re.search(r"\b(leaf|row|node) [0-9]", sentence)


def test_verdicts_without_a_time_are_read() -> None:
    verdict = judged(None)
    document = json.loads(verdict.to_json())
    del document["time"]
    assert parse_verdict(json.dumps(document)).time == ""
