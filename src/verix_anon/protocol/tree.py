"""The tree as flat arrays in preorder: checked without recursion, rows routed to leaves."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verix_anon.errors import MalformedDeliveryError
from verix_anon.protocol import kernels

__all__ = ["Leaves", "Tree"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tree:
    """Nodes in preorder: root 0, then the left subtree, then the right one (spec §4, §8).

    At an inner node `column` is the index of a quasi-identifier and rows with a value
    <= `threshold` go left; at a leaf `column`, `left` and `right` are -1.
    """

    column: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float64]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.int32]

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

        After it, every child exists, comes later than its parent and has one parent, the
        leaves count from 0 from left to right, and no path is longer than `max_depth`.
        """
        if self.n_nodes % 2 == 0:
            raise MalformedDeliveryError(
                f"the tree has {self.n_nodes} nodes; a binary tree has an odd number"
            )
        node, problem = kernels.check_preorder(
            kernels.Nodes(self.column, self.threshold, self.left, self.right, self.leaf),
            n_quasi,
            max_depth,
        )
        if problem:
            raise MalformedDeliveryError(f"node {node}: {PROBLEMS[problem]}")

    def route(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        """The leaf of every record; `values` holds a row per quasi-identifier."""
        return kernels.route(
            kernels.Nodes(self.column, self.threshold, self.left, self.right, self.leaf), values
        )

    def depths(self) -> npt.NDArray[np.int64]:
        """How far each node of a checked tree lies from the root."""
        return kernels.depths(self.right)

    def depth(self) -> int:
        """The length of the longest path from the root."""
        return int(self.depths().max())


PROBLEMS = {
    kernels.BAD_COLUMN: "its column is not one of the quasi-identifiers",
    kernels.BAD_THRESHOLD: "its threshold is not finite, or not 0 at a leaf",
    kernels.BAD_CHILD: "its children are not where preorder puts them",
    kernels.BAD_LEAF: "its leaf number is not the next from left to right",
    kernels.TOO_DEEP: "it lies deeper than the contract's max_depth",
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Leaves:
    """What each leaf publishes: its record count and the bounds of its records (spec §5)."""

    count: npt.NDArray[np.int64]
    """(n_leaves,)"""
    minimum: npt.NDArray[np.float64]
    """(n_leaves, n_quasi), in contract order"""
    maximum: npt.NDArray[np.float64]
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

    def check(self, *, n_rows: int) -> None:
        """Raise MalformedDeliveryError unless bounds are finite, in order, and counts possible."""
        low, high = self.minimum, self.maximum
        if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
            raise MalformedDeliveryError("a leaf's bounds are not finite and in order")
        if not ((self.count >= 0) & (self.count <= n_rows)).all():
            raise MalformedDeliveryError("a leaf's count is out of range")
