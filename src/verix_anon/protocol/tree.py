"""The tree as flat arrays in preorder: checks it without recursion, and routes rows to leaves."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Flags, Floats, Ids, Ints
from verix_anon.errors import MalformedDeliveryError
from verix_anon.protocol.contract import Unit

MOST_POSITION = 2**31 - 1
MISPLACED = "its children are not where preorder puts them"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tree:
    """Nodes in preorder: root 0, then the left subtree, then the right one (spec §4, §8).

    At an inner node `column` is the index of a quasi-identifier, and rows with a value
    <= `threshold` go left. At a leaf, `column`, `left` and `right` are -1.
    """

    column: Ids
    threshold: Floats
    left: Ids
    right: Ids
    leaf: Ids

    def __post_init__(self) -> None:
        for array in (self.column, self.threshold, self.left, self.right, self.leaf):
            assert array.shape == self.column.shape
            array.setflags(write=False)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are, leaves included."""
        return int(self.column.shape[0])

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return (self.n_nodes + 1) // 2

    def check(self, *, n_quasi: int, max_depth: int) -> None:
        """Raise MalformedDeliveryError unless this is a tree in canonical preorder.

        Afterwards every child exists, comes after its parent and has one parent. The leaves are
        numbered from 0 from left to right, and no path is longer than `max_depth`.
        """
        if self.n_nodes % 2 == 0:
            raise MalformedDeliveryError(
                f"the tree has {self.n_nodes:,} nodes; a binary tree has an odd number"
            )
        is_leaf, is_inner = self.column == -1, self.column >= 0
        is_wrong = ~(is_leaf | is_inner) | (self.column >= n_quasi)
        _refuse(is_wrong, "its column is not one of the quasi-identifiers")
        is_wrong = ~np.isfinite(self.threshold) | (is_leaf & (self.threshold != 0.0))
        _refuse(is_wrong, "its threshold is not finite, or not 0 at a leaf")
        _refuse(_is_minus_zero(self.threshold), "its threshold is -0.0, not 0.0")
        left, right = _children(is_inner)
        _refuse((self.left != left) | (self.right != right), MISPLACED)
        is_wrong = self.leaf != np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)
        _refuse(is_wrong, "its leaf number is not the next from left to right")
        for depth, level in enumerate(self.levels()):
            if depth > max_depth:
                raise _problem(int(level.min()), "it lies deeper than the contract's max_depth")

    def levels(self) -> Iterator[Ints]:
        """Yield the nodes of each depth from the root down. The children must be checked."""
        level = np.zeros(1, np.int64)
        while level.size:
            yield level
            inner = level[self.column[level] >= 0]
            level = np.concatenate([inner + 1, self.right[inner].astype(np.int64)])

    def route(self, values: Floats) -> Ids:
        """Return the leaf of every record; `values` holds a row per quasi-identifier."""
        node = np.zeros(values.shape[1], np.int64)
        while (moving := np.flatnonzero(self.column[node] >= 0)).size:
            at = node[moving]
            goes_left = values[self.column[at], moving] <= self.threshold[at]
            node[moving] = np.where(goes_left, at + 1, self.right[at])
        return self.leaf[node]

    def depths(self) -> Ints:
        """Return how far each node of a checked tree is from the root."""
        depth = np.zeros(self.n_nodes, np.int64)
        for number, level in enumerate(self.levels()):
            depth[level] = number
        return depth

    def ends(self) -> Ints:
        """Return the number after each node's subtree, which ends at its rightmost leaf."""
        last = np.where(self.right >= 0, self.right, np.arange(self.n_nodes)).astype(np.int64)
        while not np.array_equal(further := last[last], last):
            last = further
        return last + 1

    def leaf_spans(self) -> Ints:
        """Return the first leaf under each node and the one after its last, (n_nodes, 2)."""
        leaves_before = np.concatenate([[0], np.cumsum(self.column < 0)])
        return np.column_stack([leaves_before[:-1], leaves_before[self.ends()]])

    def depth(self) -> int:
        """The length of the longest path from the root."""
        return sum(1 for _ in self.levels()) - 1


def _children(is_inner: Flags) -> tuple[Ints, ...]:
    """Return where preorder puts the children of each node, given which nodes are inner ones.

    The left child follows its parent. The right child follows the left child's subtree. To find
    where a subtree ends, count from its first node: an inner node opens one more subtree, and a
    leaf closes one. The subtree ends where the count first falls below its start.
    """
    n = is_inner.size
    promised = np.concatenate([[0], np.cumsum(np.where(is_inner, 1, -1))])
    # Find the first place after i where the count is one less: sort places by count, then place.
    place = np.argsort(promised, kind="stable")
    key = promised[place] * (n + 1) + place
    after = np.searchsorted(key, (promised[:-1] - 1) * (n + 1) + np.arange(1, n + 1))
    end = place[np.minimum(after, n)]
    if promised[n] != -1 or (promised[:n] < 0).any():
        raise _problem(0, MISPLACED)
    number = np.arange(n)
    left = np.where(is_inner, number + 1, -1)
    right = np.where(is_inner, end[np.minimum(number + 1, n - 1)], -1)
    return left, right


def _refuse(is_wrong: Flags, problem: str) -> None:
    """Raise for the first node that is wrong."""
    if is_wrong.any():
        raise _problem(int(np.argmax(is_wrong)), problem)


def _problem(node: int, problem: str) -> MalformedDeliveryError:
    return MalformedDeliveryError(f"node {node}: {problem}")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Leaves:
    """What each leaf publishes: how many records it has, and their bounds (spec §5)."""

    count: Ints
    """(n_leaves,)"""
    minimum: Floats | Ids
    """(n_leaves, n_quasi), in contract order"""
    maximum: Floats | Ids
    """(n_leaves, n_quasi), in contract order"""

    def __post_init__(self) -> None:
        assert self.minimum.shape == self.maximum.shape
        assert self.minimum.shape[0] == self.count.shape[0]
        for array in (self.count, self.minimum, self.maximum):
            array.setflags(write=False)

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return int(self.count.shape[0])

    def of(self, numbers: Ids | Ints) -> "Leaves":
        """Return the leaves with these numbers."""
        low, high = self.minimum[numbers], self.maximum[numbers]
        return Leaves(count=self.count[numbers], minimum=low, maximum=high)

    def narrowed(self) -> "Leaves":
        """Return the same bounds in half of the memory, if all are positions."""
        both = [_narrowed(bounds) for bounds in (self.minimum, self.maximum)]
        if both[0] is None or both[1] is None:
            return self
        return Leaves(count=self.count, minimum=both[0], maximum=both[1])

    def check(self, *, n_rows: int) -> None:
        """Raise MalformedDeliveryError unless bounds are finite, in order, and counts possible."""
        low, high = self.minimum, self.maximum
        if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
            raise MalformedDeliveryError("a leaf's bounds are not finite and in order")
        if _is_minus_zero(low).any() or _is_minus_zero(high).any():
            raise MalformedDeliveryError("a leaf's bound is -0.0, not 0.0")
        if not ((self.count >= 0) & (self.count <= n_rows)).all():
            raise MalformedDeliveryError("a leaf's count is out of range")


def _is_minus_zero(values: Floats | Ids) -> Flags:
    """Find negative zeros. They equal 0.0, so they would be a second way to write it."""
    found: Flags = np.signbit(values) & (values == 0)
    return found


def _narrowed(bounds: Floats | Ids) -> Ids | None:
    """Return bounds as int32 in the same order in memory, or None if some do not fit."""
    narrow = np.empty(bounds.T.shape, np.int32)
    for values, out in zip(bounds.T, narrow, strict=True):
        if values.size and (values.min() < 0 or values.max() > MOST_POSITION):
            return None
        out[:] = values
        if not np.array_equal(out, values):
            return None
    return narrow.T


NUMPY_UNITS = {unit: "D" if unit is Unit.DAY else unit.value for unit in Unit}


def midpoints(leaves: Leaves) -> Floats:
    """Return the middle of each leaf's bounds. Halving before adding avoids an overflow."""
    return leaves.minimum / 2 + leaves.maximum / 2
