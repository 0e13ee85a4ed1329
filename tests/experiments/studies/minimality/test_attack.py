"""The attack's own joining is that of releases, and it finds less than it did."""

from typing import Any

import numpy as np
import pytest

from experiments.studies.minimality.attack import Leaves, Rule, attack, form
from verix_anon.client.release import join
from verix_anon.client.release.privacy import Attribute
from verix_anon.protocol.tree import Tree

K = 5
NOW = Rule(K, join.SMALL, join.CHANCE)
BEFORE = Rule(K, 0, 0.0)
N_ROWS = 3_000


def grown(values: Any) -> tuple[Tree, Any]:
    """Split at a place that is often not the middle, by one column after the other."""
    column, right, leaf = list[int](), dict[int, int](), np.empty(values.shape[1], np.int32)
    n_leaves = 0

    def grow(rows: Any, depth: int) -> None:
        nonlocal n_leaves
        node = len(column)
        order = rows[np.argsort(values[depth % len(values), rows], kind="stable")]
        at = rows.size // (2, 2, 6)[depth % 3]
        if min(at, rows.size - at) < K:
            column.append(-1)
            leaf[rows] = n_leaves
            n_leaves += 1
            return
        column.append(0)
        grow(order[:at], depth + 1)
        right[node] = len(column)
        grow(order[at:], depth + 1)

    grow(np.arange(values.shape[1]), 0)
    inner = np.array(column) >= 0
    tree = Tree(
        column=np.array(column, np.int32),
        threshold=np.zeros(inner.size),
        left=np.where(inner, np.arange(inner.size) + 1, -1).astype(np.int32),
        right=np.array([right.get(i, -1) for i in range(inner.size)], np.int32),
        leaf=np.where(inner, -1, np.cumsum(~inner) - 1).astype(np.int32),
    )
    return tree, leaf


class Case:
    """A table of numbers and categories, some missing, and a label that depends on them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self.values = rng.random((3, N_ROWS))
        self.values[2] = rng.integers(0, 9, N_ROWS)
        self.values[:, rng.integers(0, N_ROWS, 40)] = np.nan
        filled = np.nan_to_num(self.values, nan=0.5)
        self.tree, self.leaf = grown(filled)
        chance = np.clip(1.6 * filled[0] * filled[1], 0.02, 0.98)
        self.label = (rng.random(N_ROWS) < chance).astype(np.int64)
        self.genuine = join.Genuine(
            leaf_of_row=self.leaf,
            person_of_row=None,
            values=lambda: self.values,
            is_category=np.array([False, False, True]),
        )

    def joined(self, seed: int = 1) -> join.Joined:
        column = Attribute("label", "target", self.label, is_ordered=False)
        demand = join.Demand(column=column, least_values=2)
        chance = np.random.default_rng(seed)
        return join.join(self.tree, self.genuine, K, [demand], chance)

    def leaves(self, rule: Rule) -> tuple[Leaves, Any, Any, Any]:
        """Leaves, labels in them, drawn nodes, and the leaf of each row."""
        tree, leaf = self.tree, self.leaf.astype(np.int64)
        if rule.small:
            tree, place = join.balanced(tree, self.genuine)
            leaf = place[leaf]
        found = Leaves.of(tree, leaf, list(self.values), [False, False, True])
        positive = np.bincount(leaf, self.label, tree.n_leaves).astype(np.int64)
        drawn = np.random.default_rng(1).random(tree.n_nodes) < rule.chance
        return found, positive, drawn, leaf


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


def test_the_twin_joins_as_a_release_does(case: Case) -> None:
    leaves, positive, drawn, leaf = case.leaves(NOW)
    home, joined = form(leaves, positive, 0, NOW, drawn), case.joined()
    pairs = set(zip(home[leaf].tolist(), joined.class_of_leaf[case.leaf].tolist(), strict=True))
    assert len(pairs) == joined.n_classes == len(set(home[leaf].tolist()))
    assert 0 < joined.is_joined.sum() < joined.n_classes


def test_the_attack_finds_far_fewer_who_are_certain(case: Case) -> None:
    certain = {}
    for rule in (BEFORE, NOW):
        leaves, positive, drawn, leaf = case.leaves(rule)
        home = form(leaves, positive, 0, rule, drawn)
        found = attack(leaves, positive, rule, drawn, home, seed=1, tries=5_000)
        is_told = found.is_certain & (found.published <= 0.95)
        # What is certain is true.
        share = positive / leaves.size
        assert set(share[is_told].tolist()) <= {0.0, 1.0}
        certain[rule] = int(is_told[leaf].sum())
        assert found.is_decided[leaf].mean() > 0.97
    assert certain[BEFORE] > 60
    assert certain[NOW] * 10 <= certain[BEFORE]


def test_no_more_are_certain_than_the_bound_says(case: Case) -> None:
    leaves, positive, drawn, leaf = case.leaves(NOW)
    home = form(leaves, positive, 0, NOW, drawn)
    found = attack(leaves, positive, NOW, drawn, home, seed=2, most=0.999, tries=5_000)
    told = case.joined().is_told[case.leaf]
    assert 0 < told.mean() < 0.5
    assert not (found.is_certain[leaf] & ~told).any()


def test_chance_decides_what_else_is_joined(case: Case) -> None:
    first, again, other = case.joined(1), case.joined(1), case.joined(2)
    assert np.array_equal(first.class_of_leaf, again.class_of_leaf)
    assert not np.array_equal(first.class_of_leaf, other.class_of_leaf)
