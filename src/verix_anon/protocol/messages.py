"""The messages between the parties; `providers` names their senders (spec §1)."""

from dataclasses import dataclass, field, replace

import numpy as np

from verix_anon.arrays import Bytes, Ids, Ints
from verix_anon.errors import MalformedDeliveryError
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.records import Records
from verix_anon.protocol.tree import Leaves, Tree

DELIVERY_FORMAT = "verix/delivery/2"
SUBMISSION_FORMAT = "verix/submission/2"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Submission:
    """The owner's records under the contract; it goes to the provider.

    Examples:
        >>> submission = verix_anon.read_submission("job/submission")
    """

    contract: Contract
    records: Records
    _digest: Digest | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.records.check(self.contract)

    def __repr__(self) -> str:
        contract, n_rows = self.contract, self.records.n_rows
        return (
            f"<Submission {contract.submission_id}: {n_rows:,} records,"
            f" {len(contract.quasi)} quasi-identifiers, k {contract.k:,}>"
        )

    def digest(self, *, threads: int | None = None) -> Digest:
        """Return the digest that binds a delivery to this submission; the first call hashes all."""
        if self._digest is None:
            digest = merkle.submission_digest(self.contract, self.records, threads=threads)
            object.__setattr__(self, "_digest", digest)
            return digest
        return self._digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What delivery.json says. All of it is a claim of the provider.

    Examples:
        >>> root = verix_anon.LocalProvider().anonymize("job/submission").header.root
    """

    contract: Digest
    submission: Digest
    root: Digest
    engine: str
    version: str
    rows: int
    leaves: int
    nodes: int
    seconds: float

    def check(self, contract: Contract, *, n_rows: int) -> None:
        """Raise MalformedDeliveryError unless these counts are possible for `n_rows` records."""
        most_leaves = n_rows // contract.min_leaf
        if not 1 <= self.leaves <= most_leaves:
            raise MalformedDeliveryError(
                f"{n_rows:,} records make 1 to {most_leaves:,} leaves, not {self.leaves:,}"
            )
        if self.nodes != 2 * self.leaves - 1:
            raise MalformedDeliveryError(
                f"{self.leaves:,} leaves make {2 * self.leaves - 1:,} nodes, not {self.nodes:,}"
            )
        if not 1 <= self.rows <= n_rows:
            came = f"{self.rows:,} rows came back"
            raise MalformedDeliveryError(f"{came} of {n_rows:,} that were sent")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Delivered:
    """The delivered records, in any order: each row with its leaf."""

    row: Ints
    tracker: Bytes
    """(n_rows, 32)"""
    leaf: Ids
    target: Bytes
    """All 0 if no target was sent"""
    has_target: bool = True

    def __post_init__(self) -> None:
        assert self.row.shape == self.leaf.shape == self.target.shape
        assert self.tracker.shape == (self.row.shape[0], 32)
        for array in (self.row, self.tracker, self.leaf, self.target):
            array.setflags(write=False)

    def in_order(self) -> "Delivered":
        """Return the records in ascending row, stable if rows repeat."""
        if (self.row[1:] >= self.row[:-1]).all():
            return self
        order = np.argsort(self.row, kind="stable")
        names = ("row", "tracker", "leaf", "target")
        return replace(self, **{name: getattr(self, name)[order] for name in names})

    def check(self, *, n_rows: int, n_leaves: int) -> None:
        """Raise MalformedDeliveryError unless rows, leaves and targets are in range."""
        if self.row.min() < 0 or self.row.max() >= n_rows:
            raise MalformedDeliveryError(f"records: a row is not one of the {n_rows:,} sent")
        if self.leaf.min() < 0 or self.leaf.max() >= n_leaves:
            raise MalformedDeliveryError(f"records: a leaf is not one of the {n_leaves} delivered")
        if self.target.max() > self.has_target:
            raise MalformedDeliveryError("records: a target is neither 0 nor 1, or none was sent")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Delivery:
    """What the provider returns: records with leaf numbers, leaves, tree and root.

    Examples:
        >>> delivery = verix_anon.LocalProvider().anonymize("job/submission")
    """

    header: Header
    records: Delivered
    leaves: Leaves
    tree: Tree

    def __repr__(self) -> str:
        header = self.header
        root = header.root.hex()[:16]
        return f"<Delivery {root}…: {header.rows:,} records in {header.leaves:,} leaves>"

    def check(self, contract: Contract, *, n_rows: int) -> None:
        """Raise MalformedDeliveryError unless this can be a delivery of `n_rows` records.

        Afterwards the tree is canonical and no deeper than agreed, each leaf has finite bounds in
        order, and rows, leaf numbers and targets are in range. So the layers can index arrays
        safely. The layers judge whether the contents are true.
        """
        self.header.check(contract, n_rows=n_rows)
        if self.records.has_target is not (contract.target is not None):
            raise MalformedDeliveryError(
                "records: a target was delivered, or not, against the contract"
            )
        header, records, leaves = self.header, self.records, self.leaves
        sizes = (records.row.size, leaves.n_leaves, self.tree.n_nodes)
        if sizes != (header.rows, header.leaves, header.nodes):
            says = f"{header.rows:,} rows, {header.leaves:,} leaves and {header.nodes:,} nodes"
            are = f"{sizes[0]:,}, {sizes[1]:,} and {sizes[2]:,}"
            raise MalformedDeliveryError(f"the header says {says}, but there are {are}")
        n_quasi = len(contract.quasi)
        if leaves.minimum.shape[1] != n_quasi:
            raise MalformedDeliveryError(
                f"the leaves have bounds for {leaves.minimum.shape[1]} columns, not {n_quasi}"
            )
        self.tree.check(n_quasi=n_quasi, max_depth=contract.max_depth)
        leaves.check(n_rows=n_rows)
        records.check(n_rows=n_rows, n_leaves=header.leaves)
