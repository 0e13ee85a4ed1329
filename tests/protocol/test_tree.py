"""Only a canonical preorder tree passes the check, and rows follow it to their leaves."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verix_anon.errors import MalformedDeliveryError
from verix_anon.protocol.rules import FlatNode, Leaf, Node, flatten
from verix_anon.protocol.tree import Leaves, Tree

steady = settings(deadline=None, derandomize=True)

N_QUASI = 3
INT32 = np.iinfo(np.int32)


def tree(nodes: list[FlatNode]) -> Tree:
    column, threshold, left, right, leaf = zip(*nodes, strict=True) if nodes else ((),) * 5
    return Tree(
        column=np.array(column, np.int32),
        threshold=np.array(threshold, np.float64),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        leaf=np.array(leaf, np.int32),
    )


# Root, left child a leaf, right child split once more.
SMALL: list[FlatNode] = [
    (0, 1.5, 1, 2, -1),
    (-1, 0.0, -1, -1, 0),
    (2, -7.0, 3, 4, -1),
    (-1, 0.0, -1, -1, 1),
    (-1, 0.0, -1, -1, 2),
]
FIELDS = ["column", "threshold", "left", "right", "leaf"]


def with_field(node: int, field: str, value: float) -> list[FlatNode]:
    nodes: list[Any] = [list(n) for n in SMALL]
    nodes[node][FIELDS.index(field)] = value
    return [tuple(n) for n in nodes]


def check(nodes: list[FlatNode], max_depth: int = 50) -> None:
    tree(nodes).check(n_quasi=N_QUASI, max_depth=max_depth)


def refused(nodes: list[FlatNode], message: str = "node", max_depth: int = 50) -> None:
    with pytest.raises(MalformedDeliveryError, match=message):
        check(nodes, max_depth)


def is_preorder(nodes: list[FlatNode], max_depth: int) -> bool:
    """The definition, by recursion: a tree is a leaf, or a split and two trees."""
    leaves = 0

    def end(at: int, depth: int) -> int:
        """Where the subtree that starts here ends, or -1 if there is none."""
        nonlocal leaves
        if not 0 <= at < len(nodes) or depth > max_depth:
            return -1
        column, threshold, left, right, leaf = nodes[at]
        if math.copysign(1, threshold) < 0 and threshold == 0:
            return -1
        if column == -1:
            leaves += 1
            plain = (threshold, left, right, leaf) == (0.0, -1, -1, leaves - 1)
            return at + 1 if plain else -1
        if not (0 <= column < N_QUASI and np.isfinite(threshold) and leaf == -1):
            return -1
        if left != at + 1:
            return -1
        middle = end(left, depth + 1)
        return end(right, depth + 1) if middle == right else -1

    return end(0, 0) == len(nodes)


def test_valid_trees_pass() -> None:
    check([(-1, 0.0, -1, -1, 0)])
    check(SMALL)
    check(SMALL, max_depth=2)
    assert (tree(SMALL).n_nodes, tree(SMALL).n_leaves, tree(SMALL).depth()) == (5, 3, 2)
    assert tree(SMALL[1:2]).depth() == 0


@pytest.mark.parametrize(
    ("node", "field", "value", "message"),
    [
        (0, "column", 3, "node 0: its column is not one of the quasi-identifiers"),
        (0, "column", -2, "node 0: its column"),
        (0, "column", INT32.max, "node 0: its column"),
        (0, "column", INT32.min, "node 0: its column"),
        (0, "column", -1, "node 0: its threshold is not finite, or not 0 at a leaf"),
        (0, "threshold", float("nan"), "node 0: its threshold"),
        (2, "threshold", float("inf"), "node 2: its threshold"),
        (2, "threshold", float("-inf"), "node 2: its threshold"),
        (1, "threshold", 5e-324, "node 1: its threshold"),
        (1, "threshold", float("nan"), "node 1: its threshold"),
        (0, "left", 0, "node 0: its children are not where preorder puts them"),
        (0, "left", -1, "node 0: its children"),
        (0, "left", 2, "node 0: its children"),
        (0, "right", 0, "node 0: its children"),
        (0, "right", 1, "node 0: its children"),
        (0, "right", 3, "node 0: its children"),
        (0, "right", 5, "node 0: its children"),
        (0, "right", -1, "node 0: its children"),
        (2, "left", 1, "node 2: its children"),
        (2, "right", 0, "node 2: its children"),
        (2, "right", INT32.max, "node 2: its children"),
        (2, "right", INT32.min, "node 2: its children"),
        (1, "left", 2, "node 1: its children"),
        (4, "right", 0, "node 4: its children"),
        (0, "leaf", 0, "node 0: its leaf number"),
        (1, "leaf", 1, "node 1: its leaf number is not the next from left to right"),
        (1, "leaf", -1, "node 1: its leaf number"),
        (3, "leaf", 2, "node 3: its leaf number"),
        (4, "leaf", 3, "node 4: its leaf number"),
        (4, "leaf", INT32.max, "node 4: its leaf number"),
        (1, "column", 0, "node 0: its children"),
        (4, "column", 0, "node 0: its children"),
        (2, "column", -1, "node 2: its threshold"),
    ],
)
def test_one_wrong_field(node: int, field: str, value: float, message: str) -> None:
    nodes = with_field(node, field, value)
    assert not is_preorder(nodes, 50)
    refused(nodes, message)


LEAF_0, LEAF_1, LEAF_2 = ((-1, 0.0, -1, -1, i) for i in range(3))


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        SMALL[:2],
        SMALL[:4],
        [*SMALL, LEAF_2],
        # An odd number, but the last two belong to nobody.
        [*SMALL, (-1, 0.0, -1, -1, 3), (-1, 0.0, -1, -1, 4)],
        [LEAF_0, LEAF_1, LEAF_2],
        # Children before parents.
        [LEAF_0, LEAF_1, (0, 1.0, 0, 1, -1)],
        # Right subtree written before the left one.
        [(0, 1.0, 4, 1, -1), (0, 1.0, 2, 3, -1), LEAF_0, LEAF_1, LEAF_2],
        # Breadth first: both children of the root, then theirs.
        [(0, 1.0, 1, 2, -1), (0, 1.0, 3, 4, -1), LEAF_2, LEAF_0, LEAF_1],
        # Two splits share their children.
        [(0, 1.0, 1, 2, -1), LEAF_0, (0, 1.0, 1, 1, -1)],
        # Only splits.
        [(0, 1.0, 1, 2, -1)] * 3,
        [(0, 1.0, 0, 0, -1)],
    ],
)
def test_other_shapes(nodes: list[FlatNode]) -> None:
    assert not is_preorder(nodes, 50)
    refused(nodes)


def test_an_even_number_is_named() -> None:
    refused(SMALL[:4], "the tree has 4 nodes; a binary tree has an odd number")


def chain(depth: int) -> Tree:
    """A split, a leaf, a split, a leaf, …: as deep as it has splits."""
    inner = np.arange(2 * depth + 1) % 2 == 0
    inner[-1] = False
    number = np.arange(2 * depth + 1)
    return Tree(
        column=np.where(inner, 0, -1).astype(np.int32),
        threshold=np.zeros(2 * depth + 1),
        left=np.where(inner, number + 1, -1).astype(np.int32),
        right=np.where(inner, number + 2, -1).astype(np.int32),
        leaf=np.where(inner, -1, number // 2).astype(np.int32),
    )


def test_depth_is_limited() -> None:
    for depth in (1, 49, 50):
        chain(depth).check(n_quasi=1, max_depth=50)
        assert chain(depth).depth() == depth
    with pytest.raises(MalformedDeliveryError, match="node 101: it lies deeper than"):
        chain(51).check(n_quasi=1, max_depth=50)
    refused(SMALL, "node 3: it lies deeper than the contract's max_depth", max_depth=1)


def test_a_million_nodes_in_a_chain_are_not_followed() -> None:
    chain(1).check(n_quasi=1, max_depth=50)
    with pytest.raises(MalformedDeliveryError, match="node 101: it lies deeper"):
        chain(500_000).check(n_quasi=1, max_depth=50)


THRESHOLDS = st.sampled_from([-1.0, 0.0, 0.5, 1.0])
SHAPES: st.SearchStrategy[Leaf | Node] = st.recursive(
    st.just(Leaf(())),
    lambda child: st.builds(Node, st.integers(0, N_QUASI - 1), THRESHOLDS, child, child),
    max_leaves=12,
)


@steady
@given(SHAPES)
def test_every_tree_in_preorder_passes(shape: Leaf | Node) -> None:
    nodes, _ = flatten(shape)
    assert is_preorder(nodes, 50)
    check(nodes)


@steady
@given(SHAPES, st.data())
def test_a_changed_field_is_refused_or_makes_another_tree(
    shape: Leaf | Node, data: st.DataObject
) -> None:
    nodes: list[Any] = [list(node) for node in flatten(shape)[0]]
    max_depth = data.draw(st.integers(0, 12))
    for _ in range(data.draw(st.integers(1, 3))):
        node = data.draw(st.integers(0, len(nodes) - 1))
        field = data.draw(st.integers(0, 4))
        number = st.integers(-2, len(nodes) + 1) | st.sampled_from([INT32.min, INT32.max])
        threshold = THRESHOLDS | st.sampled_from([-0.0, np.nan, np.inf])
        nodes[node][field] = data.draw(threshold if field == 1 else number)
    changed: list[FlatNode] = [tuple(node) for node in nodes]
    if is_preorder(changed, max_depth):
        check(changed, max_depth)
    else:
        refused(changed, max_depth=max_depth)


def walk(nodes: list[FlatNode], row: npt.NDArray[np.float64]) -> int:
    node = 0
    while nodes[node][0] != -1:
        column, threshold, left, right, _ = nodes[node]
        node = left if row[column] <= threshold else right
    return nodes[node][4]


@steady
@given(
    SHAPES,
    st.lists(st.tuples(*[THRESHOLDS | st.just(-0.0) | st.floats(-2, 2)] * N_QUASI), max_size=8),
)
def test_routing_is_a_walk_from_the_root(shape: Leaf | Node, rows: list[tuple[float, ...]]) -> None:
    nodes, _ = flatten(shape)
    values = np.array(rows, np.float64).reshape(-1, N_QUASI)
    leaf = tree(nodes).route(np.ascontiguousarray(values.T))
    assert leaf.dtype == np.int32
    assert leaf.tolist() == [walk(nodes, row) for row in values]


def test_equal_goes_left_and_zeros_are_equal() -> None:
    nodes: list[FlatNode] = [(0, 0.0, 1, 2, -1), LEAF_0, LEAF_1]
    above = np.nextafter(0.0, 1.0)
    assert tree(nodes).route(np.array([[0.0, -0.0, above, -1.0]])).tolist() == [0, 0, 1, 0]
    nodes[0] = (0, -0.0, 1, 2, -1)
    assert tree(nodes).route(np.array([[0.0, -0.0, above, -1.0]])).tolist() == [0, 0, 1, 0]


def test_arrays_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValueError, match="read-only"):
        tree(SMALL).column[0] = 1
    leaves = Leaves(count=np.array([4]), minimum=np.zeros((1, 2)), maximum=np.ones((1, 2)))
    assert leaves.n_leaves == 1
    with pytest.raises(ValueError, match="read-only"):
        leaves.minimum[0, 0] = 1


@pytest.mark.parametrize("odd", [None, 0.5, -1.0, 2.0**31])
def test_bounds_take_half_of_the_memory_if_all_are_positions(odd: float | None) -> None:
    low = np.array([[0.0, 2.0], [1.0, 2.0**31 - 1]])
    high = low.copy()
    if odd is not None:
        high[1, 0] = odd
    leaves = Leaves(count=np.array([3, 4]), minimum=low, maximum=high)
    narrow = leaves.narrowed()
    assert (narrow is leaves) is (odd is not None)
    assert np.array_equal(narrow.minimum, low)
    assert np.array_equal(narrow.maximum, high)
    if odd is None:
        assert narrow.minimum.dtype == narrow.maximum.dtype == np.int32
