"""From submission to delivery, whoever grows the tree: grow, generalize, commit (spec §4 to §6)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from verix_anon.arrays import Ids, Ints, Numbers
from verix_anon.errors import ProviderError
from verix_anon.kernels import growing, trees
from verix_anon.machine import available_cores
from verix_anon.progress import Progress, ignore
from verix_anon.protocol import merkle
from verix_anon.protocol.messages import Delivered, Delivery, Header, Submission
from verix_anon.protocol.tree import Leaves, Tree

__all__ = ["Growth", "Settings", "anonymize", "pack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
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
    grow: Callable[[Submission, Settings], Growth],
    settings: Settings,
    *,
    engine: str,
    version: str,
) -> Delivery:
    """Grow the tree with `grow`, commit to it, and pack the delivery in ascending row."""
    began = time.perf_counter()
    growth = grow(submission, settings)
    settings.progress("commit", 0, 1)
    delivery = pack(submission, growth, np.arange(submission.records.n_rows), settings)
    settings.progress("commit", 1, 1)
    seconds = round(time.perf_counter() - began, 3)
    return replace(
        delivery, header=replace(delivery.header, engine=engine, version=version, seconds=seconds)
    )


def pack(submission: Submission, growth: Growth, rows: Ints, settings: Settings) -> Delivery:
    """A delivery of these rows of the submission, ascending, with a root that fits it.

    An honest delivery holds all rows; `growth.leaf_of_row` goes with them.
    """
    digest = submission.digest(threads=settings.threads)
    tree, records = growth.tree, submission.records
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
