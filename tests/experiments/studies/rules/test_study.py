"""What a model sees of published intervals and sets."""

import pyarrow as pa
import pytest

from experiments.core.cells import Result
from experiments.studies.rules.render import count
from experiments.studies.rules.study import AUTO, OURS, PAPER, TREES, Tree, middle, summarize
from verix_anon.client.prepare.traps import Traps
from verix_anon.protocol.contract import Column, Kind


def test_middles_of_intervals_and_mean_positions_of_sets() -> None:
    columns = [
        Column(name="age", kind=Kind.NUMERIC),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "a, b", "b", "c")),
    ]
    published = pa.table(
        {"age": ["17..20", "(-3)..(-3)", "(-1.5)..0.5"], "job": ['{"a, b", c}', "{a, c}", "{b}"]}
    )
    assert middle(published, columns).tolist() == [[18.5, 2.0], [-3.0, 1.5], [-0.5, 2.0]]


def test_trees_differ_in_nothing_but_the_rule_its_weights_and_the_least_leaf() -> None:
    made = [tree.options(7) for tree in TREES]
    assert {(o.traps, o.clear, o.places, o.unsafe_seed) for o in made} == {
        (Traps.ADAPTIVE, False, None, 7)
    }
    assert len({(o.rule, o.importance, o.min_leaf) for o in made}) == len(TREES)


def test_equal_weights_are_compared_with_the_papers_rule_and_with_auto_of_the_same_l() -> None:
    def run(tree: Tree, least: int, seed: int) -> Result:
        lost = {PAPER: 0.5, OURS: 0.1 * seed, AUTO: 0.3}[tree] + 0.2 * (least - 1)
        named: Result = {
            "rule": tree.rule.value,
            "importance": tree.importance,
            "min_leaf": tree.min_leaf,
        }
        return {**named, "l": least, "view": "interval", "ncp": lost, "auc": 1 - lost}

    def result(seed: int) -> Result:
        runs = [run(tree, least, seed) for tree in (PAPER, OURS, AUTO) for least in (1, 2)]
        return {"raw": {"auc": 1.0}, "runs": runs, "columns": 3}

    params: Result = {"data": "adult", "target": "target", "quasi": 0, "rows": 9}
    found = summarize([({**params, "seed": seed}, result(seed)) for seed in (1, 2)])
    means = {
        (p["against"], p["importance"], p["measure"], p["l"]): p["mean"] for p in found["pairs"]
    }
    assert means["auto", "uniform", "ncp", 1] == pytest.approx(-0.15)
    assert means["auto", "uniform", "ncp", 2] == pytest.approx(-0.15)
    assert means["paper", "uniform", "ncp", 1] == pytest.approx(-0.35)
    # The paper's rule is the baseline as it is, without l.
    assert means["paper", "uniform", "ncp", 2] == pytest.approx(-0.15)
    assert means["paper", "auto", "auc", 1] == pytest.approx(0.2)
    assert means["raw", "auto", "auc", 2] == pytest.approx(-0.5)
    assert ("auto", "auto", "ncp", 1) not in means


def test_what_is_better_by_the_mean_is_not_better_beyond_the_interval() -> None:
    table = {"target": "target", "quasi": 0}
    pair = {"against": "paper", "importance": "uniform", "measure": "ncp", "l": 1}
    ends = {"adult": (-0.3, -0.1), "bank": (-0.3, 0.1), "magic": (0.1, 0.3), "nomao": (None, None)}
    found = {
        "raw": [{"data": name, **table} for name in ends],
        "pairs": [
            {"data": name, **table, **pair, "mean": 0.2 if low == 0.1 else -0.2}
            | {"low": low, "high": high}
            for name, (low, high) in ends.items()
        ],
    }
    assert count(found, "ncp") == (3, 1, 1, 4)
