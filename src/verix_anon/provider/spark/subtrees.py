"""The subtree that one task finishes with the local engine, and the one tree made of them all.

To place a subtree only its size and digest are needed, so nodes and leaves can follow one subtree
at a time. Nothing here knows Spark.
"""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from verix_anon.arrays import Ids, Ints
from verix_anon.kernels import trees
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.records import Records
from verix_anon.protocol.tree import Leaves, Tree
from verix_anon.provider.engine import EngineSettings, Growth, TopSplit, one_node, shifted
from verix_anon.provider.local import growth_of
from verix_anon.provider.spark.top import TreePart

TREE = ("column", "threshold", "left", "right", "leaf")
LEAVES = ("count", "minimum", "maximum")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Subtree:
    """A tree over some of the records; nodes and leaves are numbered from 0."""

    tree: Tree
    leaves: Leaves
    digest: Digest

    def to_bytes(self) -> bytes:
        """The tree and its leaves, without the digest."""
        file = io.BytesIO()
        arrays = {name: getattr(self.tree, name) for name in TREE}
        arrays |= {name: getattr(self.leaves, name) for name in LEAVES}
        np.savez(file, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, digest: Digest) -> "Subtree":
        """What `to_bytes` has written."""
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return cls(
                tree=Tree(**{name: arrays[name] for name in TREE}),
                leaves=Leaves(**{name: arrays[name] for name in LEAVES}),
                digest=digest,
            )


def finish(contract: Contract, part: TreePart, row: Ints, records: Records) -> tuple[Subtree, Ids]:
    """The subtree of all records of a part, in ascending row, and the leaf of each."""
    if part.is_leaf:
        growth = _leaf(records)
    else:
        # What is grown here lies that deep already.
        shallower = replace(contract, max_depth=contract.max_depth - part.depth)
        sent = Submission(contract=shallower, records=records)
        growth = growth_of(sent, EngineSettings(threads=1))
    grouped = trees.group_rows(growth.leaf_of_row, growth.tree.n_leaves)
    members = merkle.Members(*grouped, row, records.tracker)
    digest = merkle.top_digest(contract, growth.tree, growth.leaves, members)
    return Subtree(tree=growth.tree, leaves=growth.leaves, digest=digest), growth.leaf_of_row


def _leaf(records: Records) -> Growth:
    none, zero = np.full(1, -1, np.int32), np.zeros(1, np.int32)
    bounds = (records.values.min(axis=1), records.values.max(axis=1))
    minimum, maximum = (bound.reshape(1, -1) for bound in bounds)
    return Growth(
        tree=Tree(column=none, threshold=np.zeros(1), left=none, right=none, leaf=zero),
        leaves=Leaves(count=np.array([records.n_rows]), minimum=minimum, maximum=maximum),
        leaf_of_row=np.zeros(records.n_rows, np.int32),
    )


class SubtreeSize(NamedTuple):
    """How large a subtree is, and its digest."""

    n_nodes: int
    n_leaves: int
    digest: Digest


@dataclass(frozen=True, slots=True, eq=False)
class JoinedTree:
    """The top in preorder, each node a split or the size of a subtree."""

    contract: Contract
    top: tuple[TopSplit | SubtreeSize, ...]

    @property
    def sizes(self) -> list[SubtreeSize]:
        """The subtrees from left to right."""
        return [each for each in self.top if isinstance(each, SubtreeSize)]

    def first_leaves(self) -> Ints:
        """The number of each subtree's first leaf, and in the end that of all leaves."""
        return np.cumsum([0, *(size.n_leaves for size in self.sizes)])

    def digest(self) -> Digest:
        """The digest of the first node, from the last to the first: children come later."""
        waiting: list[Digest] = []
        for each in reversed(self.top):
            if isinstance(each, SubtreeSize):
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
            if isinstance(each, TopSplit):
                yield Tree(**one_node(each, n_nodes, right)), None
                n_nodes += 1
                continue
            found = next(following)
            yield replace(found.tree, **shifted(found.tree, n_nodes, n_leaves)), found.leaves
            n_nodes, n_leaves = n_nodes + each.n_nodes, n_leaves + each.n_leaves

    def _rights(self) -> list[int]:
        """The number of each split's right child, and -1 for subtrees."""
        found = [-1] * len(self.top)
        lacking: list[int] = []
        n_nodes = 0
        for at, each in enumerate(self.top):
            if isinstance(each, TopSplit):
                lacking.append(at)
                n_nodes += 1
                continue
            n_nodes += each.n_nodes
            # Where a subtree ends, the right side of the nearest split that lacks one begins.
            if lacking:
                found[lacking.pop()] = n_nodes
        return found
