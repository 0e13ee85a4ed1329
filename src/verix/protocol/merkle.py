"""Both commitments: bytes in, bytes out (spec §6).

The first half is the formulas, one function each. The second half computes the root of a
whole delivery; it builds the same preimages in bulk, because a million records have a
hundred thousand leaves and a Python call per number would cost more than the hashing.
"""

import struct
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from verix.protocol import kernels
from verix.protocol.contract import Commitment, Contract, Digest
from verix.protocol.table import Records, wire_columns
from verix.protocol.tree import Leaves, Tree

__all__ = [
    "CHUNK_ROWS",
    "binding_root",
    "commit",
    "leaf_digest",
    "leaf_digests",
    "leaf_text",
    "members_digest",
    "members_digests",
    "node_digest",
    "node_text",
    "paper_number",
    "submission_digest",
]

CHUNK_ROWS = 65536
LEAF, NODE, MEMBERS, ROOT, SUBMISSION, CHUNK = b"\0", b"\1", b"\2", b"\3", b"\4", b"\5"


def _hash(*parts: bytes) -> Digest:
    return Digest(sha256(b"".join(parts)).digest())


def _f64(value: float) -> bytes:
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
    return struct.pack("<d", value + 0.0)


def members_digest(rows_and_trackers: Sequence[tuple[int, bytes]]) -> Digest:
    """The records of one leaf, given in ascending row."""
    return _hash(MEMBERS, *(struct.pack("<Q", row) + tid for row, tid in rows_and_trackers))


def leaf_digest(count: int, bounds: Sequence[tuple[float, float]], members: Digest) -> Digest:
    """One leaf: its count, its bounds in contract order, its members."""
    pairs = (_f64(low) + _f64(high) for low, high in bounds)
    return _hash(LEAF, struct.pack("<Q", count), *pairs, members)


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


def submission_digest(contract: Contract, records: Records, *, threads: int = 1) -> Digest:
    """What was sent: the contract and every record in order, hashed by chunks of rows."""

    def chunk(number: int) -> bytes:
        rows = slice(number * CHUNK_ROWS, (number + 1) * CHUNK_ROWS)
        digest = sha256(CHUNK + struct.pack("<Q", number))
        digest.update(np.ascontiguousarray(records.tracker[rows]).data)
        for column in wire_columns(contract, records, rows):
            digest.update(column.data)
        return digest.digest()

    n_chunks = -(-records.n_rows // CHUNK_ROWS)
    with ThreadPoolExecutor(threads) as pool:
        chunks = b"".join(pool.map(chunk, range(n_chunks)))
    return _hash(SUBMISSION, contract.digest, struct.pack("<Q", records.n_rows), chunks)


def members_digests(
    positions: npt.NDArray[np.int64],
    start: npt.NDArray[np.int64],
    row: npt.NDArray[np.int64],
    tracker: npt.NDArray[np.uint8],
) -> list[bytes]:
    """members_digest of every leaf: leaf i holds the records at positions[start[i]:start[i+1]].

    `row` must ascend, so that positions in ascending order are rows in ascending order.
    """
    # Words are copied, never interpreted, so only the row number has a byte order.
    words = kernels.gather_members(positions, row, np.ascontiguousarray(tracker).view(np.uint64))
    if sys.byteorder == "big":
        words[:, 0].byteswap(inplace=True)
    data = words.tobytes()
    ends = (start * 40).tolist()
    return [
        sha256(MEMBERS + data[begin:end]).digest()
        for begin, end in zip(ends[:-1], ends[1:], strict=True)
    ]


def leaf_digests(leaves: Leaves, members: Sequence[bytes]) -> list[bytes]:
    """leaf_digest of every leaf."""
    n_leaves, n_quasi = leaves.minimum.shape
    width = 1 + 8 + 16 * n_quasi + 32
    preimages = np.empty((n_leaves, width), np.uint8)
    preimages[:, :1] = 0
    preimages[:, 1:9] = leaves.count.astype("<u8").reshape(-1, 1).view(np.uint8)
    bounds = np.empty((n_leaves, n_quasi, 2), "<f8")
    np.add(leaves.minimum, 0.0, out=bounds[:, :, 0])
    np.add(leaves.maximum, 0.0, out=bounds[:, :, 1])
    preimages[:, 9:-32] = bounds.reshape(n_leaves, -1).view(np.uint8)
    preimages[:, -32:] = np.frombuffer(b"".join(members), np.uint8).reshape(-1, 32)
    view = preimages.reshape(-1).data
    return [sha256(view[at : at + width]).digest() for at in range(0, len(view), width)]


def commit(
    contract: Contract,
    submission: Digest,
    tree: Tree,
    leaves: Leaves,
    members: Sequence[bytes],
) -> Digest:
    """The root that the contract asks for; `members` holds each leaf's members digest."""
    if contract.commitment is Commitment.PAPER:
        return _paper_root(contract, tree, leaves)
    digests = _fold(tree, leaf_digests(leaves, members))
    return binding_root(contract.digest, submission, digests)


def _fold(tree: Tree, of_leaf: Sequence[bytes]) -> Digest:
    """The digest of the top node: children come after parents, so walk backwards."""
    heads = _node_heads(tree)
    right = tree.right.tolist()
    leaf = tree.leaf.tolist()
    digest: list[bytes] = [b""] * tree.n_nodes
    for node in range(tree.n_nodes - 1, -1, -1):
        if leaf[node] >= 0:
            digest[node] = of_leaf[leaf[node]]
        else:
            digest[node] = sha256(heads[node] + digest[node + 1] + digest[right[node]]).digest()
    return Digest(digest[0])


def _node_heads(tree: Tree) -> list[bytes]:
    """0x01, the column and the threshold of every node: all of a split but its sides."""
    heads = np.empty((tree.n_nodes, 13), np.uint8)
    heads[:, :1] = 1
    heads[:, 1:5] = tree.column.astype("<u4").reshape(-1, 1).view(np.uint8)
    heads[:, 5:] = (tree.threshold + 0.0).astype("<f8").reshape(-1, 1).view(np.uint8)
    data = heads.tobytes()
    return [data[at : at + 13] for at in range(0, len(data), 13)]


def _paper_root(contract: Contract, tree: Tree, leaves: Leaves) -> Digest:
    names = [column.name for column in contract.quasi]
    digest: list[str] = [""] * tree.n_nodes
    for node in range(tree.n_nodes - 1, -1, -1):
        leaf = int(tree.leaf[node])
        if leaf >= 0:
            low, high = leaves.minimum[leaf].tolist(), leaves.maximum[leaf].tolist()
            text = leaf_text(int(leaves.count[leaf]), list(zip(names, low, high, strict=True)))
        else:
            text = node_text(
                names[tree.column[node]],
                float(tree.threshold[node]),
                digest[node + 1],
                digest[tree.right[node]],
            )
        digest[node] = sha256(text.encode("utf-8")).hexdigest()
    return Digest(bytes.fromhex(digest[0]))
