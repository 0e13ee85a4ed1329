"""The whole tree from its top and the subtrees of tasks: numbers, digests and the root.

Of a subtree only its size and digest are needed to place it, so that nodes and leaves can follow
one subtree at a time. Nothing here knows Spark.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from verix_anon.arrays import Ids, Ints
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.tree import Leaves, Tree
from verix_anon.provider.spark.subtrees import Subtree
from verix_anon.provider.stitching import Split

__all__ = ["Joined", "Size"]


class Size(NamedTuple):
    """How large a subtree is, and its digest."""

    n_nodes: int
    n_leaves: int
    digest: Digest


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """The top in preorder, each node a split or the size of a subtree."""

    contract: Contract
    top: tuple[Split | Size, ...]

    @property
    def sizes(self) -> list[Size]:
        """The subtrees from left to right."""
        return [each for each in self.top if isinstance(each, Size)]

    def first_leaves(self) -> Ints:
        """The number of each subtree's first leaf, and in the end that of all leaves."""
        return np.cumsum([0, *(size.n_leaves for size in self.sizes)])

    def digest(self) -> Digest:
        """The digest of the first node, from the last to the first: children come later."""
        waiting: list[Digest] = []
        for each in reversed(self.top):
            if isinstance(each, Size):
                waiting.append(each.digest)
            else:
                left, right = waiting.pop(), waiting.pop()
                waiting.append(
                    merkle.split_digest(self.contract, each.column, each.threshold, left, right)
                )
        return waiting[0]

    def pieces(self, subtrees: Iterable[Subtree]) -> Iterator[tuple[Tree, Leaves | None]]:
        """Runs of nodes in preorder, numbered, with the leaves of those that have any."""
        following = iter(subtrees)
        n_nodes = n_leaves = 0
        for each, right in zip(self.top, self._rights(), strict=True):
            if isinstance(each, Split):
                yield _one_node(each, n_nodes, right), None
                n_nodes += 1
                continue
            found = next(following)
            yield _shifted(found.tree, n_nodes, n_leaves), found.leaves
            n_nodes, n_leaves = n_nodes + each.n_nodes, n_leaves + each.n_leaves

    def _rights(self) -> list[int]:
        """The number of each split's right child, and -1 for subtrees."""
        found = [-1] * len(self.top)
        lacking: list[int] = []
        n_nodes = 0
        for at, each in enumerate(self.top):
            if isinstance(each, Split):
                lacking.append(at)
                n_nodes += 1
                continue
            n_nodes += each.n_nodes
            # Where a subtree ends, the right side of the nearest split that lacks one begins.
            if lacking:
                found[lacking.pop()] = n_nodes
        return found


def _one_node(split: Split, number: int, right: int) -> Tree:
    return Tree(
        column=np.array([split.column], np.int32),
        threshold=np.array([split.threshold]),
        left=np.array([number + 1], np.int32),
        right=np.array([right], np.int32),
        leaf=np.array([-1], np.int32),
    )


def _shifted(tree: Tree, n_nodes: int, n_leaves: int) -> Tree:
    """A subtree renumbered to follow so many nodes and leaves."""

    def shift(numbers: Ids, by: int) -> Ids:
        return np.where(numbers >= 0, numbers + np.int32(by), numbers)

    return Tree(
        column=tree.column,
        threshold=tree.threshold,
        left=shift(tree.left, n_nodes),
        right=shift(tree.right, n_nodes),
        leaf=shift(tree.leaf, n_leaves),
    )
