"""Put genuine records, sentinels and twins together, in the order of their trackers."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from verix_anon.arrays import Bytes, Ints
from verix_anon.client.prepare.parts import Part
from verix_anon.client.prepare.trackers import Secret, row_bytes, trackers
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.table import TRACKER_SIZE, Records

__all__ = ["Assembled", "assemble"]

BLOCK_ROWS = 65_536
"""Of how many records the bytes are held at a time."""


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


def assemble(
    contract: Contract, parts: Mapping[str, Part], secret: Secret, *, threads: int
) -> Assembled:
    """Track the records of each role, and shuffle them all by ascending tracker (spec §7).

    The parts are used up: each of their columns ends when it stands in its place.
    """
    tracker = _tracked(contract, parts, secret)
    order = _ascending(tracker)
    tracker = tracker[order]
    values = np.empty((len(contract.quasi), order.size))

    def place(j: int) -> None:
        values[j] = np.concatenate([part.taken(j) for part in parts.values()])[order]

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(place, range(len(values))):
            pass
    target = np.concatenate([part.target for part in parts.values()])[order]
    row_of = np.empty_like(order)
    row_of[order] = np.arange(order.size)
    n_genuine = parts["genuine"].n_rows
    n_sentinels = parts["sentinel"].n_rows
    return Assembled(
        records=Records(tracker=tracker, values=values, target=target),
        owner_row=np.where(order < n_genuine, order, -1),
        genuine_row=row_of[:n_genuine],
        sentinel_row=row_of[n_genuine : n_genuine + n_sentinels].copy(),
        twin_row=row_of[n_genuine + n_sentinels :].copy(),
    )


def _tracked(contract: Contract, parts: Mapping[str, Part], secret: Secret) -> Bytes:
    """The trackers of all parts, one after the other."""
    key = secret.key("trackers")
    found = np.empty((sum(part.n_rows for part in parts.values()), TRACKER_SIZE), np.uint8)
    at = 0
    for role, part in parts.items():
        for first in range(0, part.n_rows, BLOCK_ROWS):
            block = row_bytes(contract, part.records(slice(first, first + BLOCK_ROWS)))
            found[at : at + len(block)] = trackers(key, role, block, first=first)
            at += len(block)
    return found


def _ascending(tracker: Bytes) -> Ints:
    """The order of the trackers as bytes, most significant first."""
    words = tracker.view(">u8")
    top = words[:, 0].astype(np.uint64)
    order = np.argsort(top, kind="stable")
    # Eight bytes tell any two of a billion trackers apart, but for a chance of one in 37.
    top = top[order]
    if (top[1:] == top[:-1]).any():
        order = np.lexsort(words.T[::-1])
    return order
