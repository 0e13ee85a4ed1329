"""One tree from its top, which was split first, and from the subtrees that were grown apart."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from verix_anon.arrays import Ids
from verix_anon.kernels.growing import Grown

__all__ = ["Split", "stitch"]


class Split(NamedTuple):
    """A node of the top that was split."""

    column: int
    threshold: float


def stitch(top: Sequence[object], parts: list[Grown]) -> Grown:
    """One tree from its top in preorder and the subtrees of its nodes."""
    pieces: list[Grown] = []
    lacking_right: list[Grown] = []
    subtrees = iter(parts)
    n_nodes = n_leaves = 0
    for node in top:
        if isinstance(node, Split):
            piece = _one_node(node, n_nodes, n_quasi=parts[0].minimum.shape[1])
            lacking_right.append(piece)
        else:
            piece = _shifted(next(subtrees), n_nodes, n_leaves)
        pieces.append(piece)
        n_nodes += piece.column.size
        n_leaves += piece.size.size
        # Where a subtree ends, the right side of the nearest split that lacks one begins.
        if not isinstance(node, Split) and lacking_right:
            lacking_right.pop().right[0] = n_nodes
    return Grown(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))


def _one_node(split: Split, number: int, *, n_quasi: int) -> Grown:
    return Grown(
        column=np.array([split.column], np.int32),
        threshold=np.array([split.threshold]),
        left=np.array([number + 1], np.int32),
        right=np.array([-1], np.int32),
        leaf=np.array([-1], np.int32),
        size=np.empty(0, np.int64),
        minimum=np.empty((0, n_quasi)),
        maximum=np.empty((0, n_quasi)),
    )


def _shifted(grown: Grown, n_nodes: int, n_leaves: int) -> Grown:
    """A subtree renumbered to follow so many nodes and leaves."""

    def shift(numbers: Ids, by: int) -> Ids:
        return np.where(numbers >= 0, numbers + np.int32(by), numbers)

    return grown._replace(
        left=shift(grown.left, n_nodes),
        right=shift(grown.right, n_nodes),
        leaf=shift(grown.leaf, n_leaves),
    )
