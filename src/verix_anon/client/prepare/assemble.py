"""Put genuine records, sentinels and twins together, in the order of their trackers."""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from verix_anon.arrays import Bytes, Ints
from verix_anon.client.prepare.trackers import Secret, row_bytes, trackers
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.table import Records

__all__ = ["Assembled", "assemble"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Assembled:
    """The submitted records, and where each came from."""

    records: Records
    owner_row: Ints
    """For each submitted row its row in the owner's table, -1 for a trap."""
    genuine_row: Ints
    """For each row of the owner's table its submitted row."""
    sentinel_row: Ints
    twin_row: Ints

    @property
    def tracker_column(self) -> Digest:
        """SHA-256 of the tracker column in row order."""
        return Digest(sha256(np.ascontiguousarray(self.records.tracker).data).digest())

    @property
    def target_column(self) -> Digest:
        """SHA-256 of the target column in row order."""
        return Digest(sha256(np.ascontiguousarray(self.records.target).data).digest())


def assemble(contract: Contract, parts: dict[str, Records], secret: Secret) -> Assembled:
    """Track the records of each role, and shuffle them all by ascending tracker (spec §7)."""
    key = secret.key("trackers")
    tracker = np.concatenate(
        [trackers(key, role, row_bytes(contract, part)) for role, part in parts.items()]
    )
    order = _ascending(tracker)
    values = np.empty((len(contract.quasi), order.size))
    for j, column in enumerate(values):
        column[:] = np.concatenate([part.values[j] for part in parts.values()])[order]
    target = np.concatenate([part.target for part in parts.values()])[order]
    row_of = np.empty_like(order)
    row_of[order] = np.arange(order.size)
    n_genuine = parts["genuine"].n_rows
    n_sentinels = parts["sentinel"].n_rows
    return Assembled(
        records=Records(tracker=tracker[order], values=values, target=target),
        owner_row=np.where(order < n_genuine, order, -1),
        genuine_row=row_of[:n_genuine],
        sentinel_row=row_of[n_genuine : n_genuine + n_sentinels],
        twin_row=row_of[n_genuine + n_sentinels :],
    )


def _ascending(tracker: Bytes) -> Ints:
    """The order of the trackers as bytes, most significant first."""
    words = tracker.view(">u8").astype(np.uint64)
    order = np.argsort(words[:, 0], kind="stable")
    # Eight bytes tell any two of a billion trackers apart, but for a chance of one in 37.
    if (np.diff(words[order, 0]) == 0).any():
        order = np.lexsort(words.T[::-1])
    return order
