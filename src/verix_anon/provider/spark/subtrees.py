"""What one task finishes: the subtree of its records, by the local engine, and its digest.

Nothing here knows Spark.
"""

import io
from dataclasses import dataclass, replace

import numpy as np

from verix_anon.arrays import Ids, Ints
from verix_anon.kernels import trees
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.table import Records
from verix_anon.protocol.tree import Leaves, Tree
from verix_anon.provider.engine import Growth, Settings
from verix_anon.provider.local import growth_of
from verix_anon.provider.spark.top import Part

__all__ = ["Subtree", "finish"]

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


def finish(contract: Contract, part: Part, row: Ints, records: Records) -> tuple[Subtree, Ids]:
    """The subtree of all records of a part, in ascending row, and the leaf of each."""
    growth = _leaf(records) if part.is_leaf else _grow(contract, part.depth, records)
    grouped = trees.group_rows(growth.leaf_of_row, growth.tree.n_leaves)
    members = merkle.Members(*grouped, row, records.tracker)
    digest = merkle.top_digest(contract, growth.tree, growth.leaves, members)
    return Subtree(tree=growth.tree, leaves=growth.leaves, digest=digest), growth.leaf_of_row


def _grow(contract: Contract, depth: int, records: Records) -> Growth:
    # What is grown here lies that deep already.
    shallower = replace(contract, max_depth=contract.max_depth - depth)
    return growth_of(Submission(contract=shallower, records=records), Settings(threads=1))


def _leaf(records: Records) -> Growth:
    none, zero = np.full(1, -1, np.int32), np.zeros(1, np.int32)
    bounds = (records.values.min(axis=1), records.values.max(axis=1))
    minimum, maximum = (bound.reshape(1, -1) for bound in bounds)
    return Growth(
        tree=Tree(column=none, threshold=np.zeros(1), left=none, right=none, leaf=zero),
        leaves=Leaves(count=np.array([records.n_rows]), minimum=minimum, maximum=maximum),
        leaf_of_row=np.zeros(records.n_rows, np.int32),
    )
