"""The formulas of both commitments, one function each: bytes in, bytes out (spec §6).

They are the norm, and need nothing but the standard library, so that who checks one digest need
not load what computes a hundred thousand.
"""

import struct
from collections.abc import Iterable, Sequence
from hashlib import sha256

from verix_anon.protocol.contract import Digest

LEAF, NODE, ROOT = b"\0", b"\1", b"\3"


def _hash(*parts: bytes) -> Digest:
    return Digest(sha256(b"".join(parts)).digest())


def _f64(value: float) -> bytes:
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
    return struct.pack("<d", value + 0.0)


def leaf_digest(
    count: int, bounds: Iterable[tuple[float, float]], members: Iterable[tuple[int, bytes]]
) -> Digest:
    """One leaf: its count, its bounds in contract order, row and tracker of each record.

    The records are given in ascending row, one by one: they may be a whole table.
    """
    digest = sha256(LEAF + struct.pack("<Q", count))
    for low, high in bounds:
        digest.update(_f64(low) + _f64(high))
    for row, tracker in members:
        digest.update(struct.pack("<Q", row) + tracker)
    return Digest(digest.digest())


def node_digest(index: int, threshold: float, left: Digest, right: Digest) -> Digest:
    """One split: the column's index among the quasi-identifiers, its threshold, its sides."""
    return _hash(NODE, struct.pack("<I", index), _f64(threshold), left, right)


def binding_root(contract: Digest, submission: Digest, top: Digest) -> Digest:
    """The root: what was agreed, what was sent, what came of it."""
    return _hash(ROOT, contract, submission, top)


def paper_number(value: float) -> str:
    """A number as the paper's commitment writes it: C's %.6f without negative zero."""
    text = f"{value:.6f}"
    return "0.000000" if text == "-0.000000" else text


def leaf_text(count: int, bounds: Sequence[tuple[str, float, float]]) -> str:
    """What the paper's commitment hashes of a leaf; bounds are (name, min, max)."""
    parts = [
        f"{name}:{paper_number(low)},{paper_number(high)}" for name, low, high in sorted(bounds)
    ]
    return "|".join(["LEAF", str(count), *parts])


def node_text(name: str, threshold: float, left: str, right: str) -> str:
    """What the paper's commitment hashes of a split; left and right are hexadecimal."""
    return f"INTERNAL|{name}|{paper_number(threshold)}|{left}|{right}"
