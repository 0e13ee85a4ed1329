"""All that crosses the wire, and the one seam between the parties (spec §1)."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from verix.protocol import merkle
from verix.protocol.contract import Contract, Digest
from verix.protocol.table import Records
from verix.protocol.tree import Leaves, Tree

__all__ = ["DELIVERY_FORMAT", "Delivered", "Delivery", "Header", "Provider", "Submission"]

DELIVERY_FORMAT = "verix/delivery/1"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Submission:
    """The owner's records under the contract; it goes to the provider."""

    contract: Contract
    records: Records

    def __post_init__(self) -> None:
        self.records.check(self.contract)

    def digest(self, *, threads: int = 1) -> Digest:
        """What binds a delivery to this very submission; reads every byte of it."""
        return merkle.submission_digest(self.contract, self.records, threads=threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What delivery.json says; all of it is the provider's word."""

    contract: Digest
    submission: Digest
    root: Digest
    engine: str
    version: str
    rows: int
    leaves: int
    nodes: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Delivered:
    """The delivered records, in any order: which row lies in which leaf."""

    row: npt.NDArray[np.int64]
    tracker: npt.NDArray[np.uint8]
    """(n_rows, 32)"""
    leaf: npt.NDArray[np.int32]
    target: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        assert self.row.shape == self.leaf.shape == self.target.shape
        assert self.tracker.shape == (self.row.shape[0], 32)
        for array in (self.row, self.tracker, self.leaf, self.target):
            array.setflags(write=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Delivery:
    """What the provider returns: records with leaf numbers, leaves, tree and root."""

    header: Header
    records: Delivered
    leaves: Leaves
    tree: Tree


@runtime_checkable
class Provider(Protocol):
    """Whoever anonymizes: the local engine, a cluster, a service, every adversary."""

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize the submission as its contract says, or raise ProviderError."""
        ...
