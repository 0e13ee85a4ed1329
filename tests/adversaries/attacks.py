"""Deviations, each made as consistently as can be, and the layer that must see it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tools import cases
from verix_anon.adversaries import ForgesRoot
from verix_anon.client.prepare import Prepared
from verix_anon.client.verdict import Verdict
from verix_anon.client.verify import verify
from verix_anon.client.verify.case import VerifyOptions
from verix_anon.protocol import rules
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider.local import LocalProvider

LAYERS = ("commitment", "sentinels", "twins", "replay", "splits")


@dataclass(frozen=True)
class Attack:
    """A delivery, the layer that must see what is wrong with it, and the place it must name."""

    delivery: Delivery
    layer: str
    place: str


Make = Callable[[Submission], Attack]


def inner_nodes(top: cases.Top) -> list[tuple[int, rules.Node, int]]:
    """(number, node, depth) of every split."""
    found = enumerate(cases.nodes_of(top))
    return [(i, node, depth) for i, (node, depth) in found if isinstance(node, rules.Node)]


def leaf_nodes(top: cases.Top) -> list[tuple[int, rules.Leaf, int]]:
    found = enumerate(cases.nodes_of(top))
    return [(i, node, depth) for i, (node, depth) in found if isinstance(node, rules.Leaf)]


def altered(sent: Submission, **fields: Any) -> Delivery:
    """The honest delivery with other records, and with leaves and root that fit them."""
    delivery = cases.honest(sent)
    records = replace(delivery.records, **fields)
    leaves = cases.true_leaves(sent, records, delivery.tree.n_leaves)
    return cases.resealed(sent, delivery, records=records, leaves=leaves)


def drops_one(sent: Submission) -> Attack:
    delivery = cases.honest(sent)
    old = delivery.records
    # From a leaf that stays large enough.
    row = int(np.flatnonzero(delivery.leaves.count[old.leaf] > sent.contract.min_leaf)[50])
    kept = np.arange(sent.records.n_rows) != row
    names = ("row", "tracker", "leaf", "target")
    records = replace(old, **{name: getattr(old, name)[kept] for name in names})
    leaves = cases.true_leaves(sent, records, delivery.tree.n_leaves)
    made = cases.resealed(sent, delivery, records=records, leaves=leaves)
    return Attack(made, "replay", f"row {row}")


def doubles_one(sent: Submission) -> Attack:
    """One record stands in for another of its leaf."""
    delivery = cases.honest(sent)
    leaf = delivery.records.leaf
    gone, doubled = np.flatnonzero(leaf == leaf[50])[:2]
    row, tracker, target = (
        a.copy() for a in (delivery.records.row, delivery.records.tracker, delivery.records.target)
    )
    row[gone], tracker[gone], target[gone] = row[doubled], tracker[doubled], target[doubled]
    made = altered(sent, row=row, tracker=tracker, target=target)
    return Attack(made, "replay", f"row {gone} and row {doubled}")


def moves_bound(sent: Submission, *, high: bool, outwards: bool) -> Attack:
    delivery, leaf, column = cases.honest(sent), 3, 1
    leaves = delivery.leaves
    bound = (leaves.maximum if high else leaves.minimum).copy()
    bound[leaf, column] = np.nextafter(bound[leaf, column], np.inf if high is outwards else -np.inf)
    spoilt = replace(leaves, maximum=bound) if high else replace(leaves, minimum=bound)
    return Attack(cases.resealed(sent, delivery, leaves=spoilt), "replay", f"leaf {leaf} in column")


def widens_top(sent: Submission) -> Attack:
    return moves_bound(sent, high=True, outwards=True)


def narrows_top(sent: Submission) -> Attack:
    return moves_bound(sent, high=True, outwards=False)


def widens_bottom(sent: Submission) -> Attack:
    return moves_bound(sent, high=False, outwards=True)


def narrows_bottom(sent: Submission) -> Attack:
    return moves_bound(sent, high=False, outwards=False)


def swaps_leaves(sent: Submission) -> Attack:
    leaf = cases.honest(sent).records.leaf.copy()
    one, two = np.flatnonzero(leaf == 2)[0], np.flatnonzero(leaf == leaf.max())[0]
    leaf[[one, two]] = leaf[[two, one]]
    return Attack(
        altered(sent, leaf=leaf),
        "replay",
        "Leaf 2 holds a record that belongs on the other side of node 0",
    )


def swaps_trackers(sent: Submission) -> Attack:
    tracker = cases.honest(sent).records.tracker.copy()
    tracker[[20, 70]] = tracker[[70, 20]]
    return Attack(altered(sent, tracker=tracker), "replay", "2 rows, the first row 20")


def flips_target(sent: Submission) -> Attack:
    target = cases.honest(sent).records.target.copy()
    target[99] ^= 1
    made = altered(sent, target=target)
    if sent.contract.target is None:
        return Attack(made, "commitment", "a target is neither 0 nor 1, or none was sent")
    return Attack(made, "replay", "in 1 row, the first row 99")


def claims_more(sent: Submission) -> Attack:
    """A count that is one too high: k looks better than it is."""
    delivery = cases.honest(sent)
    count = delivery.leaves.count.copy()
    count[4] += 1
    made = cases.resealed(sent, delivery, leaves=replace(delivery.leaves, count=count))
    return Attack(made, "replay", f"leaf 4 says {count[4]} and holds {count[4] - 1}")


def mirrors_a_split(sent: Submission) -> Attack:
    """Left and right exchanged at a node over two leaves: every bound stays true."""
    top = cases.grown(sent)
    number, node, _ = next(n for n in inner_nodes(top) if isinstance(n[1].left, rules.Leaf))
    mirrored = replace(node, left=node.right, right=node.left)
    made = cases.delivered(sent, cases.replaced(top, node, mirrored))
    return Attack(made, "replay", f"the other side of node {number}")


def moves_threshold(sent: Submission) -> Attack:
    """To the next observed value, with the rule followed again below."""
    top = cases.grown(sent)
    for number, node, depth in inner_nodes(top)[2:]:
        values = sorted(set(sent.records.values[node.column][cases.rows_of(node)].tolist()))
        threshold = values[values.index(node.threshold) + 1]
        moved = cases.split(sent, node, depth, node.column, threshold)
        sizes = [len(n.rows) for _, n, _ in leaf_nodes(moved)]
        if min(sizes) >= sent.contract.min_leaf:
            made = cases.delivered(sent, cases.replaced(top, node, moved))
            return Attack(made, "splits", f"node {number} with")
    raise AssertionError("no node to move")


def shades_threshold(sent: Submission) -> Attack:
    """By one ulp, so that every record stays where it is."""
    top = cases.grown(sent)
    number, node, _ = inner_nodes(top)[-1]
    shaded = replace(node, threshold=float(np.nextafter(node.threshold, np.inf)))
    made = cases.delivered(sent, cases.replaced(top, node, shaded))
    return Attack(made, "splits", f"node {number} with")


def takes_second_best(sent: Submission) -> Attack:
    top = cases.grown(sent)
    for number, node, depth in reversed(inner_nodes(top)):
        found = cases.candidates(sent, node)
        if len(found) > 1:
            second = cases.split(sent, node, depth, found[1].column, found[1].threshold)
            made = cases.delivered(sent, cases.replaced(top, node, second))
            return Attack(made, "splits", f"node {number} with")
    raise AssertionError("no node with two candidates")


def cuts_subtree(sent: Submission) -> Attack:
    top = cases.grown(sent)
    number, node, _ = inner_nodes(top)[5]
    leaf = rules.Leaf(tuple(cases.rows_of(node)))
    made = cases.delivered(sent, cases.replaced(top, node, leaf))
    return Attack(made, "splits", f"node {number} with {len(leaf.rows)} records: a leaf")


def splits_pure_leaf(sent: Submission) -> Attack:
    """A leaf that was pure, halved: every leaf is still large enough."""
    top, values = cases.grown(sent), sent.records.values
    for number, leaf, depth in leaf_nodes(top):
        if len(leaf.rows) < 2 * sent.contract.min_leaf:
            continue
        for column in range(len(values)):
            threshold = rules.lower_median(values[column][list(leaf.rows)].tolist())
            further = cases.split(sent, leaf, depth, column, threshold)
            if min(len(n.rows) for _, n, _ in leaf_nodes(further)) >= sent.contract.min_leaf:
                made = cases.delivered(sent, cases.replaced(top, leaf, further))
                return Attack(made, "splits", f"node {number} with {len(leaf.rows)} records")
    pytest.skip("the rule splits every leaf that can be halved")


def splits_small_leaf(sent: Submission) -> Attack:
    """A leaf of fewer than 4k records, halved all the same: two leaves are too small.

    Two leaves are merged elsewhere, or there would be more than n / 2k of them.
    """
    top, min_leaf = cases.grown(sent), sent.contract.min_leaf
    leaves = [n for _, n, _ in leaf_nodes(top) if len(n.rows) < 2 * min_leaf]
    leaf = leaves[0]
    further = cases.split(sent, leaf, 0, 1, rules.lower_median(
        sent.records.values[1][list(leaf.rows)].tolist()))  # fmt: skip
    spoilt = cases.replaced(top, leaf, further)
    number = next(i for i, n in enumerate(rules.flatten(spoilt)[1]) if len(n) < min_leaf)
    return Attack(cases.delivered(sent, spoilt), "replay", f"leaf {number} holds")


def halves_k(sent: Submission) -> Attack:
    """Grown with half of min_leaf, to depth 4 so that the number of leaves gives nothing away."""
    contract, records = sent.contract, sent.records
    top = rules.grow(
        records.values.tolist(),
        rules.criterion(contract, records.target.tolist()),
        min_leaf=contract.min_leaf // 2,
        max_depth=50,
    )
    leaves = rules.flatten(top)[1]
    if len(leaves) > records.n_rows // contract.min_leaf:
        return Attack(cases.delivered(sent, top), "commitment", "make 1 to")
    return Attack(cases.delivered(sent, top), "replay", "Leaves with fewer than")


def grows_on_a_sample(sent: Submission) -> Attack:
    """From 95 % of the records; the others are routed in afterwards, so nothing is missing."""
    n_rows = sent.records.n_rows
    some = np.sort(np.random.default_rng(0).choice(n_rows, round(0.95 * n_rows), replace=False))
    top = cases.routed(cases.grown(sent, some.tolist()), sent.records.values, np.arange(n_rows))
    return Attack(cases.delivered(sent, top), "splits", "node ")


def scores_on_a_sample(sent: Submission) -> Attack:
    """Medians of all records, but the column chosen by the labels of one in twenty."""
    rng = np.random.default_rng(0)
    contract, target = sent.contract, sent.records.target

    def grow(rows: cases.Rows, depth: int) -> cases.Top:
        leaf = rules.Leaf(tuple(rows.tolist()))
        positive = int(target[rows].sum())
        if rows.size < 2 * contract.min_leaf or positive in (0, rows.size):
            return leaf
        found = cases.candidates(sent, leaf)
        if not found:
            return leaf
        seen = rng.choice(rows, max(1, rows.size // 20), replace=False)

        def score(split: rules.Split) -> float:
            left = sent.records.values[split.column][seen] <= split.threshold
            halves = (target[seen][left], target[seen][~left])
            return sum((float(h.sum()) ** 2 / int(h.size) for h in halves if h.size), 0.0)

        best = max(found, key=score)
        left = sent.records.values[best.column][rows] <= best.threshold
        return rules.Node(
            best.column, best.threshold, grow(rows[left], depth + 1), grow(rows[~left], depth + 1)
        )

    top = grow(np.arange(sent.records.n_rows), 0)
    return Attack(cases.delivered(sent, top), "splits", "node ")


def forges_root(sent: Submission) -> Attack:
    made = ForgesRoot(LocalProvider(threads=1)).anonymize(sent)
    return Attack(made, "commitment", "its root does not follow")


def stops_early(sent: Submission) -> Attack:
    """One leaf for all: perfectly anonymous, and worthless."""
    top = rules.Leaf(tuple(range(sent.records.n_rows)))
    return Attack(cases.delivered(sent, top), "splits", "node 0 with")


MATRIX: tuple[Make, ...] = (
    drops_one,
    doubles_one,
    widens_top,
    narrows_top,
    widens_bottom,
    narrows_bottom,
    swaps_leaves,
    swaps_trackers,
    flips_target,
    claims_more,
    mirrors_a_split,
    moves_threshold,
    shades_threshold,
    takes_second_best,
    cuts_subtree,
    splits_pure_leaf,
    splits_small_leaf,
    halves_k,
    grows_on_a_sample,
    scores_on_a_sample,
    forges_root,
    stops_early,
)


def full(delivery: Delivery, made: Prepared) -> Verdict:
    options = VerifyOptions(threads=1)
    return verify(delivery, made.manifest, submission=made.submission, options=options)
