"""The formulas of both commitments, one function each: bytes in, bytes out (spec §6).

These functions are the norm. They need only the standard library, so that checking one digest does
not load the code that computes a hundred thousand. Leaves, splits and roots are hashed with
different first bytes. So no one can pass off the digest of one as the digest of another.
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
    """Hash a leaf: its count, its bounds in contract order, then row and tracker of each record.

    The records come in ascending row and one at a time, because they may be a whole table.
    """
    digest = sha256(LEAF + struct.pack("<Q", count))
    for low, high in bounds:
        digest.update(_f64(low) + _f64(high))
    for row, tracker in members:
        digest.update(struct.pack("<Q", row) + tracker)
    return Digest(digest.digest())


def node_digest(index: int, threshold: float, left: Digest, right: Digest) -> Digest:
    """Hash a split: its column's index among the quasi-identifiers, threshold and both sides."""
    return _hash(NODE, struct.pack("<I", index), _f64(threshold), left, right)


def binding_root(contract: Digest, submission: Digest, top: Digest) -> Digest:
    """Hash the root: what was agreed, what was sent, and the top of the tree."""
    return _hash(ROOT, contract, submission, top)


def paper_number(value: float) -> str:
    """Write a number as the paper's commitment does: C's %.6f without negative zero."""
    text = f"{value:.6f}"
    return "0.000000" if text == "-0.000000" else text


def leaf_text(count: int, bounds: Sequence[tuple[str, float, float]]) -> str:
    """Return the text of a leaf that the paper's commitment hashes; bounds are (name, min, max)."""
    parts = [
        f"{name}:{paper_number(low)},{paper_number(high)}" for name, low, high in sorted(bounds)
    ]
    return "|".join(["LEAF", str(count), *parts])


def node_text(name: str, threshold: float, left: str, right: str) -> str:
    """Return the text of a split that the paper's commitment hashes; the sides are hexadecimal."""
    return f"INTERNAL|{name}|{paper_number(threshold)}|{left}|{right}"
