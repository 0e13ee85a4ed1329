"""Both commitments: bytes in, bytes out (spec §6).

The first half is the formulas, one function each: they are the norm. The second half computes
the root of a whole delivery from the same preimages, laid out for many leaves at a time, because
a million records have a hundred thousand leaves.
"""

import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from verix_anon.arrays import Bytes, Ints
from verix_anon.protocol.contract import Commitment, Contract, Digest
from verix_anon.protocol.table import Records, wire_columns
from verix_anon.protocol.tree import Leaves, Tree

__all__ = [
    "CHUNK_ROWS",
    "Members",
    "binding_root",
    "leaf_digest",
    "leaf_digests",
    "leaf_text",
    "node_digest",
    "node_text",
    "paper_number",
    "root_of",
    "submission_digest",
]

CHUNK_ROWS = 65536
# How many leaves are laid out at a time: few enough for the cache of a core.
BATCH_LEAVES = 1024
LEAF, NODE, ROOT, SUBMISSION, CHUNK = b"\0", b"\1", b"\3", b"\4", b"\5"


def _hash(*parts: bytes) -> Digest:
    return Digest(sha256(b"".join(parts)).digest())


def _f64(value: float) -> bytes:
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
    return struct.pack("<d", value + 0.0)


def leaf_digest(
    count: int, bounds: Sequence[tuple[float, float]], members: Sequence[tuple[int, bytes]]
) -> Digest:
    """One leaf: its count, its bounds in contract order, row and tracker of each record.

    The records are given in ascending row.
    """
    pairs = (_f64(low) + _f64(high) for low, high in bounds)
    records = (struct.pack("<Q", row) + tracker for row, tracker in members)
    return _hash(LEAF, struct.pack("<Q", count), *pairs, *records)


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


def submission_digest(
    contract: Contract, records: Records, *, threads: int | None = None
) -> Digest:
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


class Members(NamedTuple):
    """The records of every leaf: leaf i holds those at positions[start[i]:start[i + 1]].

    Rows ascend, so that positions in ascending order are rows in ascending order.
    """

    positions: Ints
    start: Ints
    row: Ints
    tracker: Bytes


def leaf_digests(leaves: Leaves, members: Members) -> list[Digest]:
    """leaf_digest of every leaf."""
    return [
        Digest(digest)
        for first in range(0, leaves.n_leaves, BATCH_LEAVES)
        for digest in _batch(leaves, members, slice(first, first + BATCH_LEAVES))
    ]


def _batch(leaves: Leaves, members: Members, at: slice) -> Iterator[bytes]:
    """The digests of some leaves, whose bytes are laid out together."""
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
    bounds = np.stack([leaves.minimum[at], leaves.maximum[at]], axis=2) + 0.0
    heads = np.empty((len(bounds), 9 + bounds[0].nbytes), np.uint8)
    heads[:, 0] = LEAF[0]
    heads[:, 1:9] = leaves.count[at].astype("<u8").reshape(-1, 1).view(np.uint8)
    heads[:, 9:] = bounds.astype("<f8", copy=False).reshape(len(bounds), -1).view(np.uint8)
    start = members.start[at.start : at.start + len(bounds) + 1]
    positions = members.positions[start[0] : start[-1]]
    records = np.empty((positions.size, 40), np.uint8)
    records[:, :8] = members.row[positions].astype("<u8").reshape(-1, 1).view(np.uint8)
    np.take(members.tracker, positions, axis=0, out=records[:, 8:])
    data = records.tobytes()
    ends = (40 * (start - start[0])).tolist()
    each_head = struct.iter_unpack(f"{heads.shape[1]}s", heads.tobytes())
    for (head,), begin, end in zip(each_head, ends, ends[1:], strict=False):
        yield sha256(head + data[begin:end]).digest()


def root_of(
    contract: Contract, submission: Digest, tree: Tree, leaves: Leaves, members: Members
) -> Digest:
    """The root that the contract asks for; the paper's commitment does not look at members."""
    if contract.commitment is Commitment.PAPER:
        return _paper_root(contract, tree, leaves)
    return binding_root(contract.digest, submission, _top(tree, leaf_digests(leaves, members)))


def _top(tree: Tree, of_leaf: Sequence[Digest]) -> Digest:
    """The digest of the top node, from the last node to the first: children come later."""
    heads = np.empty((tree.n_nodes, 13), np.uint8)
    heads[:, 0] = NODE[0]
    heads[:, 1:5] = tree.column.astype("<u4").reshape(-1, 1).view(np.uint8)
    heads[:, 5:] = (tree.threshold + 0.0).astype("<f8").reshape(-1, 1).view(np.uint8)
    data, right, leaf = heads.tobytes(), tree.right.tolist(), tree.leaf.tolist()
    digest: list[bytes] = [b""] * tree.n_nodes
    for node in range(tree.n_nodes - 1, -1, -1):
        if leaf[node] >= 0:
            digest[node] = of_leaf[leaf[node]]
        else:
            head = data[13 * node : 13 * node + 13]
            digest[node] = sha256(head + digest[node + 1] + digest[right[node]]).digest()
    return Digest(digest[0])


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
