"""Secret keys, and the tracker that names each record to the owner alone (spec §7).

One salt per submission; every key and every seed is derived from it by HKDF-SHA256 under a
label of its own, so that none tells anything about another.
"""

import secrets
import struct
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from verix_anon.arrays import Bytes
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.table import Records, wire_columns

__all__ = ["SALT_SIZE", "Secret", "TrapRole", "row_bytes", "trackers"]

SALT_SIZE = 32
TrapRole = str
"""`genuine`, `sentinel` or `twin`."""


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


def trackers(key: bytes, role: TrapRole, rows: Bytes, *, first: int = 0) -> Bytes:
    """The trackers of records of one role, from the `first` on; `rows` holds the bytes of each.

    That is HMAC-SHA256 over role, index within the role, and the record's sent values.
    """
    n, width = rows.shape
    index = np.arange(first, first + n, dtype="<u8").reshape(-1, 1)
    data = np.hstack([index.view(np.uint8), rows]).tobytes()
    begun = HMAC(key, SHA256())
    begun.update(role.encode() + b"\0")
    out = bytearray()
    for (record,) in struct.iter_unpack(f"{width + 8}s", data):
        # From a copy of the state: a tracker costs half of what a call of hmac.digest does.
        own = begun.copy()
        own.update(record)
        out += own.finalize()
    return np.frombuffer(out, np.uint8).reshape(n, 32)


def row_bytes(contract: Contract, records: Records) -> Bytes:
    """The sent values of each record as a chunk writes them, one record after the other."""
    everything = slice(0, records.n_rows)
    return np.hstack(
        [
            column.reshape(-1, 1).view(np.uint8)
            for column in wire_columns(contract, records, everything)
        ]
    )
