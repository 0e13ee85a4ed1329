"""What every engine shares: settings, and the delivery of a grown tree (spec §4 to §6).

An engine grows subtrees, which `stitch` makes one tree of; `anonymize` and `pack` commit to it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from verix_anon.arrays import Ids, Ints, Numbers
from verix_anon.errors import ProviderError
from verix_anon.kernels import growing, trees
from verix_anon.kernels.growing import Grown
from verix_anon.machine import available_cores
from verix_anon.progress import Progress, ignore
from verix_anon.protocol import merkle
from verix_anon.protocol.messages import Delivered, Delivery, Header, Submission
from verix_anon.protocol.tree import Leaves, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How to run, as opposed to what to compute: nothing here changes a delivery's root."""

    threads: int = field(default_factory=available_cores)
    progress: Progress = ignore

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ProviderError(f"threads must be at least 1, not {self.threads}")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Growth:
    """A grown tree, what its leaves publish, and the leaf of every row."""

    tree: Tree
    leaves: Leaves
    leaf_of_row: Ids

    @classmethod
    def of(cls, grown: growing.Grown, rows: Numbers) -> "Growth":
        """What a kernel has grown; `rows` are given leaf by leaf."""
        leaf_of_row = np.empty(rows.size, np.int32)
        leaf_of_row[rows] = np.repeat(np.arange(grown.size.size, dtype=np.int32), grown.size)
        return cls(
            tree=Tree(
                column=grown.column,
                threshold=grown.threshold,
                left=grown.left,
                right=grown.right,
                leaf=grown.leaf,
            ),
            leaves=Leaves(count=grown.size, minimum=grown.minimum, maximum=grown.maximum),
            leaf_of_row=leaf_of_row,
        )


def anonymize(
    submission: Submission,
    grow: Callable[[Submission, EngineSettings], Growth],
    settings: EngineSettings,
    *,
    engine: str,
    version: str,
) -> Delivery:
    """Grow the tree with `grow`, commit to it, and pack the delivery in ascending row."""
    began = time.perf_counter()
    growth = grow(submission, settings)
    settings.progress("commit", 0, 1)
    delivery = pack(submission, growth, settings=settings)
    settings.progress("commit", 1, 1)
    seconds = round(time.perf_counter() - began, 3)
    return replace(
        delivery, header=replace(delivery.header, engine=engine, version=version, seconds=seconds)
    )


def pack(
    submission: Submission,
    growth: Growth,
    rows: Ints | None = None,
    settings: EngineSettings | None = None,
) -> Delivery:
    """A delivery of these rows of the submission, ascending, with a root that fits it.

    An honest delivery holds all rows; `growth.leaf_of_row` goes with them.
    """
    digest = submission.digest(threads=(settings or EngineSettings()).threads)
    tree, records = growth.tree, submission.records
    rows = np.arange(records.n_rows) if rows is None else rows
    delivered = Delivered(
        row=rows,
        tracker=records.tracker[rows],
        leaf=growth.leaf_of_row,
        target=records.target[rows],
        has_target=submission.contract.target is not None,
    )
    grouped = trees.group_rows(delivered.leaf, tree.n_leaves)
    members = merkle.Members(*grouped, rows, delivered.tracker)
    root = merkle.root_of(submission.contract, digest, tree, growth.leaves, members)
    return Delivery(
        header=Header(
            contract=submission.contract.digest,
            submission=digest,
            root=root,
            engine="",
            version="",
            rows=rows.size,
            leaves=tree.n_leaves,
            nodes=tree.n_nodes,
            seconds=0.0,
        ),
        records=delivered,
        leaves=growth.leaves,
        tree=tree,
    )


class TopSplit(NamedTuple):
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
        if isinstance(node, TopSplit):
            sizes, bounds = np.empty(0, np.int64), np.empty((0, parts[0].minimum.shape[1]))
            split = one_node(node, n_nodes, -1)
            piece = Grown(**split, size=sizes, minimum=bounds, maximum=bounds)
            lacking_right.append(piece)
        else:
            subtree = next(subtrees)
            piece = subtree._replace(**shifted(subtree, n_nodes, n_leaves))
        pieces.append(piece)
        n_nodes += piece.column.size
        n_leaves += piece.size.size
        # Where a subtree ends, the right side of the nearest split that lacks one begins.
        if not isinstance(node, TopSplit) and lacking_right:
            lacking_right.pop().right[0] = n_nodes
    return Grown(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))


def one_node(split: TopSplit, number: int, right: int) -> dict[str, Any]:
    """The arrays of a split; its left side is the next node."""
    return {
        "column": np.array([split.column], np.int32),
        "threshold": np.array([split.threshold]),
        "left": np.array([number + 1], np.int32),
        "right": np.array([right], np.int32),
        "leaf": np.array([-1], np.int32),
    }


def shifted(tree: Grown | Tree, n_nodes: int, n_leaves: int) -> dict[str, Any]:
    """The numbers in a subtree, made to follow so many nodes and leaves."""
    numbers = {"left": (tree.left, n_nodes), "right": (tree.right, n_nodes)}
    numbers["leaf"] = (tree.leaf, n_leaves)
    return {
        name: np.where(each >= 0, each + np.int32(by), each) for name, (each, by) in numbers.items()
    }
