"""The case to judge: a delivery beside what the owner kept, and the order of its records."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ids, Ints, Numbers, Words
from verix_anon.client.arguments import check_fields
from verix_anon.client.manifest import Manifest
from verix_anon.client.verdict import Finding
from verix_anon.errors import ReceiptError, TableError
from verix_anon.files.submissions import SpilledSubmission
from verix_anon.files.trust import NO_TRUST, Trust
from verix_anon.machine import available_cores, shares
from verix_anon.progress import Progress, ignore
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.messages import Delivered, Delivery, Submission

KEPT_BYTES = 1 << 28
"""Values up to this size are laid out leaf by leaf once, and kept for the next layer."""
AT_ONCE = 40_000_000
"""How many values of a larger table are laid out at a time; each takes up to 24 bytes."""
BLOCK_ROWS = 1 << 20
"""How many rows are compared at a time."""


def is_kept(n_rows: int, n_quasi: int) -> bool:
    """Whether all values are laid out at once."""
    return 8 * n_rows * n_quasi <= KEPT_BYTES


def columns_at_once(n_rows: int, n_quasi: int, threads: int) -> int:
    """How many columns are looked at side by side."""
    return threads if is_kept(n_rows, n_quasi) else min(threads, max(1, AT_ONCE // n_rows))


class Audit(StrEnum):
    """Which nodes `splits` looks at when the submission is at hand."""

    ALL = "all"
    SAMPLE = "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """How to verify; the defaults look at everything there is.

    Examples:
        >>> options = verix_anon.VerifyOptions(audit="sample")
    """

    audit: Audit | str = Audit.ALL
    audit_miss: float = 0.01
    """The sampled audit misses with at most this probability ..."""
    audit_fraction: float = 0.01
    """... a provider whose deviations touch this share of the records' paths or of the nodes."""
    epsilon: float | None = None
    epsilon_per_feature: Mapping[str, float] = field(default_factory=dict)
    skip: Sequence[str] | str = ()
    """Informing layers to leave out."""
    threads: int = field(default_factory=available_cores)
    progress: Progress = ignore
    decided: Callable[[Sequence[Finding]], None] = lambda _: None
    """Called with what the deciding layers found, which may be before the others are done."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("audit_miss", "audit_fraction"):
            if not 0 < getattr(self, name) < 1:
                raise TableError(f"{name} must lie between 0 and 1")
        given = [] if self.epsilon is None else [self.epsilon]
        if not all(epsilon > 0 for epsilon in (*given, *self.epsilon_per_feature.values())):
            raise TableError("epsilon must be greater than 0")
        if self.threads < 1:
            raise TableError(f"threads must be at least 1, not {self.threads}")
        if isinstance(self.skip, str):
            object.__setattr__(self, "skip", (self.skip,))


CaseSubmission = Submission | SpilledSubmission
"""In memory, or in a scratch file."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """All that a layer may look at; the submission is missing in a thin verification."""

    delivery: Delivery
    manifest: Manifest
    submission: CaseSubmission | None
    options: VerifyOptions = field(default_factory=VerifyOptions)
    damaged: tuple[str, ...] = ()
    """Files that are not those whose digests the delivery states."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of every file that is judged."""
    receipt: bytes | ReceiptError | None = None
    """The provider's receipt as it came, or why it cannot be read."""
    trust: Trust = NO_TRUST
    """The provider's keys; where none is pinned, the receipt is not looked at."""

    @property
    def contract(self) -> Contract:
        """The owner's own contract, never the provider's word on it."""
        return self.manifest.contract

    @cached_property
    def records(self) -> Delivered:
        """The delivered records in ascending row, stable where rows repeat."""
        return self.delivery.records.in_order()

    def bounds_of(self, column: int) -> tuple[Floats, Floats]:
        """The delivered bounds of the leaves in one column."""
        leaves = self.delivery.leaves
        low = np.ascontiguousarray(leaves.minimum[:, column], np.float64)
        high = np.ascontiguousarray(leaves.maximum[:, column], np.float64)
        for bounds in (low, high):
            # As those are that lie so already: else kernels would be compiled for both.
            bounds.setflags(write=False)
        return low, high

    @cached_property
    def is_complete(self) -> bool:
        """Whether every submitted row came back exactly once."""
        row = self.records.row
        # They ascend, and none is out of range.
        return row.size == self.manifest.n_rows and bool((row[1:] != row[:-1]).all())

    def positions_of(self, rows: Ints) -> Ints:
        """Where submitted rows stand in `records`, -1 where they do not; the last of several."""
        if self.is_complete:
            return rows
        came = self.records.row
        position = np.searchsorted(came, rows, side="right") - 1
        return np.where((position >= 0) & (came[position] == rows), position, -1)

    def leaves_of(self, rows: Ints) -> Ids:
        """The claimed leaves of submitted rows, -1 where they did not come back."""
        position = self.positions_of(rows)
        return np.where(position >= 0, self.records.leaf[position], np.int32(-1))

    @cached_property
    def grouped(self) -> tuple[Numbers, Ints]:
        """Positions in `records` leaf by leaf, ascending within each, and where each starts."""
        from verix_anon.kernels import trees

        return trees.group_rows(self.records.leaf, self.delivery.tree.n_leaves)

    @cached_property
    def node_spans(self) -> Ints:
        """Where each node's records lie in `grouped`, (n_nodes, 2)."""
        return self.grouped[1][self.delivery.tree.leaf_spans()]

    @cached_property
    def values_by_leaf(self) -> Floats:
        """The submitted values leaf by leaf, (n_quasi, n_rows), of a complete delivery."""
        assert self.submission is not None
        out = np.empty((len(self.contract.quasi), self.manifest.n_rows))
        self.each(lambda column: self._lay_out(column, out[column]), len(out))
        return out

    def _lay_out(self, column: int, out: Floats, spans: Ints | None = None) -> None:
        from verix_anon.kernels import trees

        assert self.submission is not None
        assert self.is_complete
        values, rows = self.submission.records.column(column), self.grouped[0]
        if spans is None:
            trees.gather(values, rows, out)
        else:
            trees.gather_some(values, rows, spans, out)

    @cached_property
    def target_by_leaf(self) -> Bytes:
        """The submitted targets leaf by leaf."""
        from verix_anon.kernels import trees

        assert self.submission is not None
        out = np.empty(self.manifest.n_rows, np.uint8)
        trees.gather(self.submission.records.target, self.grouped[0], out)
        return out

    @cached_property
    def shares(self) -> list[tuple[int, int]]:
        """The range of columns that each thread has; of a large table few have any."""
        n_rows, n_quasi = self.manifest.n_rows, len(self.contract.quasi)
        return shares(n_quasi, columns_at_once(n_rows, n_quasi, self.options.threads))

    def each_column(
        self,
        work: Callable[[int, int, Floats], object],
        where: Callable[[int, int], Ints] | None = None,
    ) -> None:
        """Do some work with the submitted values of every column, laid out leaf by leaf.

        Each thread has a share of the columns, in contract order; the work is told the share,
        the column and its values, which it must not hold on to. Of a large table a column at a
        time is laid out, by each layer again: touching memory for all takes longer. `where` says
        which spans of a column the work looks at; others need not be there, and where there is
        none, there is no work.
        """
        is_whole = is_kept(self.manifest.n_rows, len(self.contract.quasi))

        def do_share(share: int) -> None:
            buffer = None if is_whole else np.empty(self.manifest.n_rows)
            for column in range(*self.shares[share]):
                spans = None if where is None else where(share, column)
                if spans is not None and not len(spans):
                    continue
                if buffer is None:
                    work(share, column, self.values_by_leaf[column])
                else:
                    self._lay_out(column, buffer, spans)
                    work(share, column, buffer)

        if is_whole:
            _ = self.values_by_leaf
        self.each(do_share, len(self.shares))

    def blocks(self) -> Iterator[tuple[int, int]]:
        """All rows, some at a time."""
        n_rows = self.manifest.n_rows
        for first in range(0, n_rows, BLOCK_ROWS):
            yield first, min(first + BLOCK_ROWS, n_rows)

    def each(self, work: Callable[[int], object], n: int) -> None:
        """Do some work for 0 .. n - 1, shared among the threads."""
        with ThreadPoolExecutor(self.options.threads) as pool:
            for _ in pool.map(work, range(n)):
                pass


def as_words(tracker: Bytes) -> Words:
    """Trackers as four words each: the same when compared, eight bytes at a time."""
    return np.ascontiguousarray(tracker).view(np.uint64)
