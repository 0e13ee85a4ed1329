"""Secret keys, trackers, and all records in the order of their trackers (spec §7).

One salt per submission; every key and every seed is derived from it by HKDF-SHA256 under a
label of its own, so that none tells anything about another. A tracker names a record to the owner
alone, and the order of trackers tells no one which records are genuine, sentinels or twins.
"""

import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from verix_anon.arrays import Bytes, Floats, Ids, Ints
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.records import TRACKER_SIZE, Records

SALT_SIZE = 32
TrapRole = str
"""`genuine`, `sentinel` or `twin`."""
Values = Floats | Ids
"""One column as it is sent: values, or positions in half the memory until all is assembled."""
BLOCK_ROWS = 65_536
"""How many trackers are made at a time."""


@dataclass(frozen=True, slots=True)
class Secret:
    """The salt of one submission; shown nowhere."""

    salt: bytes = field(repr=False)

    def __post_init__(self) -> None:
        assert len(self.salt) == SALT_SIZE

    @classmethod
    def fresh(cls) -> "Secret":
        """A salt from the operating system."""
        return cls(secrets.token_bytes(SALT_SIZE))

    @classmethod
    def unsafe_from_seed(cls, seed: int) -> "Secret":
        """A salt that anybody who knows the seed can repeat: for experiments only."""
        return cls(sha256(f"verix unsafe seed {seed}".encode()).digest())

    def key(self, label: str) -> bytes:
        """A key of 32 bytes for one purpose."""
        return HKDF(SHA256(), 32, salt=None, info=f"verix/2/{label}".encode()).derive(self.salt)

    def seed(self, purpose: str) -> int:
        """A seed of 256 bits for one purpose."""
        return int.from_bytes(self.key(f"seed/{purpose}"))

    def generator(self, purpose: str) -> np.random.Generator:
        """A generator for one purpose."""
        return np.random.default_rng(self.seed(purpose))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The records of one role; each column can be let go by itself."""

    values: list[Values]
    """By column, in contract order"""
    target: Bytes

    @property
    def n_rows(self) -> int:
        """How many records there are."""
        return int(self.target.size)

    def taken(self, column: int) -> Values:
        """A column, which is the caller's alone from now on."""
        values = self.values[column]
        self.values[column] = values[:0].copy()
        return values


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
    contract: Contract, parts: Mapping[TrapRole, Part], secret: Secret, *, threads: int
) -> Assembled:
    """Track the records of each role, and shuffle them all by ascending tracker (spec §7).

    The parts are used up: each of their columns ends when it stands in its place.
    """
    tracker = trackers(secret, {role: part.n_rows for role, part in parts.items()})
    order = ascending(tracker)
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
    n_genuine, n_sentinels = parts["genuine"].n_rows, parts["sentinel"].n_rows
    return Assembled(
        records=Records(tracker=tracker, values=values, target=target),
        owner_row=np.where(order < n_genuine, order, -1),
        genuine_row=row_of[:n_genuine],
        sentinel_row=row_of[n_genuine : n_genuine + n_sentinels].copy(),
        twin_row=row_of[n_genuine + n_sentinels :].copy(),
    )


def trackers(secret: Secret, counts: Mapping[TrapRole, int]) -> Bytes:
    """Return the trackers of so many records of each role, one role after the other.

    Tracker i of a role is bytes 32 i to 32 i + 32 of the ChaCha20 keystream under that role's own
    key, from block 0, with a nonce of zeros. No key is used twice, so the nonce need not vary.
    """
    found = np.empty((sum(counts.values()), TRACKER_SIZE), np.uint8)
    at = 0
    for role, n in counts.items():
        stream = Cipher(ChaCha20(secret.key(f"trackers/{role}"), bytes(16)), mode=None).encryptor()
        for block in np.array_split(found[at : at + n], n // BLOCK_ROWS + 1):
            keystream = stream.update(bytes(block.size))
            block[:] = np.frombuffer(keystream, np.uint8).reshape(block.shape)
        at += n
    return found


def ascending(tracker: Bytes) -> Ints:
    """The order of the trackers as bytes, most significant first."""
    words = tracker.view(">u8")
    top = words[:, 0].astype(np.uint64)
    order = np.argsort(top, kind="stable")
    top = top[order]
    # Two of a billion trackers begin with the same eight bytes in one case of 37.
    if (top[1:] == top[:-1]).any():
        order = np.lexsort(words.T[::-1])
        words = words[order]
        assert not (words[1:] == words[:-1]).all(axis=1).any(), "two trackers are equal"
    return order
