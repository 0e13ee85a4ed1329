"""What a model sees of published intervals and sets."""

import pyarrow as pa

from experiments.studies.rules.study import TREES, middle
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
