"""From submission to delivery, whoever grows the tree: grow, generalize, commit (spec §4 to §6)."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verix.errors import ProviderError
from verix.protocol import kernels, merkle
from verix.protocol.messages import Delivered, Delivery, Header, Submission
from verix.protocol.tree import Leaves, Tree

__all__ = ["Growth", "Progress", "Settings", "anonymize"]

Progress = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and how much there is."""


def _ignore(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to run, as opposed to what to compute: nothing here changes a delivery's root."""

    threads: int = 1
    progress: Progress = _ignore

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ProviderError(f"threads must be at least 1, not {self.threads}")

    @classmethod
    def of(cls, threads: int | None = None, progress: Progress | None = None) -> "Settings":
        """Settings where None means every core this process may use, and no progress."""
        return cls(
            threads=available_cores() if threads is None else threads,
            progress=progress or _ignore,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Growth:
    """A grown tree, what its leaves publish, and the leaf of every row."""

    tree: Tree
    leaves: Leaves
    leaf_of_row: npt.NDArray[np.int32]


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    digest = submission.digest(threads=settings.threads)
    root = merkle.commit(
        submission.contract, digest, growth.tree, growth.leaves, _members(submission, growth)
    )
    settings.progress("commit", 1, 1)
    records = submission.records
    return Delivery(
        header=Header(
            contract=submission.contract.digest,
            submission=digest,
            root=root,
            engine=engine,
            version=version,
            rows=records.n_rows,
            leaves=growth.tree.n_leaves,
            nodes=growth.tree.n_nodes,
            seconds=round(time.perf_counter() - began, 3),
        ),
        records=Delivered(
            row=np.arange(records.n_rows),
            tracker=records.tracker,
            leaf=growth.leaf_of_row,
            target=records.target,
        ),
        leaves=growth.leaves,
        tree=growth.tree,
    )


def _members(submission: Submission, growth: Growth) -> list[bytes]:
    rows, start = kernels.group_rows(growth.leaf_of_row, growth.tree.n_leaves)
    return merkle.members_digests(rows, start, submission.records.tracker)
