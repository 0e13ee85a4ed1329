"""Secret keys, and the tracker that names each record to the owner alone (spec §7).

One salt per submission; every key and every seed is derived from it by HKDF-SHA256 under a
label of its own, so that none tells anything about another.
"""

import hmac
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from verix_anon.protocol import lanes
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.table import Records, wire_columns

__all__ = ["SALT_SIZE", "Secret", "TrapRole", "row_bytes", "smallest", "tracker", "trackers"]

SALT_SIZE = 32
TASK_ROWS = 1024
Bytes = npt.NDArray[np.uint8]
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


def trackers(
    key: bytes, role: TrapRole, rows: npt.NDArray[np.uint8], *, threads: int = 1
) -> npt.NDArray[np.uint8]:
    """The tracker of every record of one role; `rows` holds the bytes of each."""
    head = np.frombuffer(role.encode() + b"\0", np.uint8)
    index = np.arange(len(rows), dtype="<u8").reshape(-1, 1).view(np.uint8)

    def message(at: slice) -> list[npt.NDArray[np.uint8]]:
        return [np.broadcast_to(head, (len(rows[at]), head.size)), index[at], rows[at]]

    return _hmacs(key, message, len(rows), threads)


def _hmacs(
    key: bytes, message: Callable[[slice], Sequence[Bytes]], n: int, threads: int
) -> npt.NDArray[np.uint8]:
    """HMAC-SHA256 of n messages by its definition (RFC 2104), all under one key.

    `message` gives the parts of some of them, side by side. The key fills the first block of
    either hash, so the state after it is the same for all.
    """
    padded = np.frombuffer(key.ljust(lanes.BLOCK_BYTES, b"\0"), np.uint8)
    inner, outer = (lanes.state_after((padded ^ pad).tobytes()) for pad in (0x36, 0x5C))
    out = np.empty((n, 32), np.uint8)

    def some(begin: int) -> None:
        at = slice(begin, min(n, begin + TASK_ROWS))
        for state, parts in ((inner, message(at)), (outer, [out[at]])):
            width = sum(part.shape[1] for part in parts)
            blocks = lanes.padded(len(out[at]), width, before=lanes.BLOCK_BYTES)
            np.concatenate(parts, axis=1, out=blocks[:, :width])
            out[at] = lanes.digest_rows(blocks, state)

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(some, range(0, n, TASK_ROWS)):
            pass
    return out


def row_bytes(contract: Contract, records: Records) -> npt.NDArray[np.uint8]:
    """The sent values of each record as a chunk writes them, one record after the other."""
    everything = slice(0, records.n_rows)
    return np.hstack(
        [
            column.reshape(-1, 1).view(np.uint8)
            for column in wire_columns(contract, records, everything)
        ]
    )


def smallest(
    key: bytes, names: npt.NDArray[np.uint8], n: int, *, threads: int = 1
) -> npt.NDArray[np.int64]:
    """The positions of the n names with the smallest HMACs: a choice nobody else can repeat.

    In the order of the HMACs, so that the first few of them are a random choice as well.
    """
    marks = _hmacs(key, lambda at: [names[at]], len(names), threads).view(">u8")[:, 0]
    return np.argsort(marks.astype(np.uint64), kind="stable")[:n]
