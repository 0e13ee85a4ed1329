"""Secret keys, and the tracker that names each record to the owner alone (spec §7).

One salt per submission; every key and every seed is derived from it by HKDF-SHA256 under a
label of its own, so that none tells anything about another.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from verix.protocol.contract import Contract
from verix.protocol.table import Records, wire_columns

__all__ = ["SALT_SIZE", "Secret", "TrapRole", "row_bytes", "smallest", "tracker", "trackers"]

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
        return HKDF(SHA256(), 32, salt=None, info=f"verix/1/{label}".encode()).derive(self.salt)

    def seed(self, purpose: str) -> int:
        """A seed of 256 bits for one purpose."""
        return int.from_bytes(self.key(f"seed/{purpose}"))

    def generator(self, purpose: str) -> np.random.Generator:
        """A generator for one purpose."""
        return np.random.default_rng(self.seed(purpose))


def tracker(key: bytes, role: TrapRole, index: int, row: bytes) -> bytes:
    """HMAC-SHA256 over role, index within the role, and the record's sent values."""
    message = role.encode() + b"\0" + index.to_bytes(8, "little") + row
    return hmac.digest(key, message, "sha256")


def trackers(key: bytes, role: TrapRole, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The tracker of every record of one role; `rows` holds the bytes of each."""
    head = role.encode() + b"\0"
    n_rows = len(rows)
    index = np.arange(n_rows, dtype="<u8").reshape(-1, 1).view(np.uint8)
    messages = np.hstack(
        [np.broadcast_to(np.frombuffer(head, np.uint8), (n_rows, len(head))), index, rows]
    )
    return np.frombuffer(b"".join(_hmacs(key, messages)), np.uint8).reshape(n_rows, 32)


def _hmacs(key: bytes, messages: npt.NDArray[np.uint8]) -> list[bytes]:
    """HMAC-SHA256 of every row, by its definition (RFC 2104) on hashlib.

    `hmac.digest` gives the same and takes twice as long, since it pads the key every time.
    """
    padded = np.frombuffer(key.ljust(64, b"\0"), np.uint8)
    inner, outer = (padded ^ 0x36).tobytes(), (padded ^ 0x5C).tobytes()
    data, size = messages.tobytes(), messages.shape[1]
    return [
        sha256(outer + sha256(inner + data[at : at + size]).digest()).digest()
        for at in range(0, len(data), size)
    ]


def row_bytes(contract: Contract, records: Records) -> npt.NDArray[np.uint8]:
    """The sent values of each record as a chunk writes them, one record after the other."""
    everything = slice(0, records.n_rows)
    return np.hstack(
        [
            column.reshape(-1, 1).view(np.uint8)
            for column in wire_columns(contract, records, everything)
        ]
    )


def smallest(key: bytes, names: npt.NDArray[np.uint8], n: int) -> npt.NDArray[np.int64]:
    """The positions of the n names with the smallest HMACs: a choice nobody else can repeat.

    In the order of the HMACs, so that the first few of them are a random choice as well.
    """
    marks = np.frombuffer(b"".join(_hmacs(key, names)), ">u8")[::4]
    return np.argsort(marks, kind="stable")[:n]
