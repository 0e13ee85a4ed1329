"""Both commitments: bytes in, bytes out (spec §6).

The first half is the formulas, one function each, with hashlib: they are the norm. The
second half computes the root of a whole delivery. It builds the same preimages in bulk and
hashes many at a time, because a million records have a hundred thousand leaves, and a call
from Python for each would cost more than the hashing.
"""

import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from verix_anon.protocol import kernels, lanes
from verix_anon.protocol.contract import Commitment, Contract, Digest
from verix_anon.protocol.table import Records, wire_columns
from verix_anon.protocol.tree import Leaves, Tree

__all__ = [
    "CHUNK_ROWS",
    "Digests",
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
# What one thread hashes at a time: few enough for the cache of a core.
TASK_RECORDS, TASK_LEAVES = 16384, 1024
MEMBER_BYTES, NODE_BYTES = 40, 77
LEAF, NODE, MEMBERS, ROOT, SUBMISSION, CHUNK = b"\0", b"\1", b"\2", b"\3", b"\4", b"\5"

Digests = npt.NDArray[np.uint8]
"""Many digests, (n, 32)."""


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
    *,
    threads: int = 1,
) -> Digests:
    """members_digest of every leaf: leaf i holds the records at positions[start[i]:start[i+1]].

    `row` must ascend, so that positions in ascending order are rows in ascending order.
    """
    out = np.empty((start.size - 1, 32), np.uint8)
    words = np.ascontiguousarray(tracker).view(np.uint64)

    def some(leaves: tuple[int, int]) -> None:
        lo, hi = leaves
        first, blocks = kernels.fill_members(positions, start[lo : hi + 1], row, words)
        if hi - lo >= lanes.LANES:
            lanes.digests(blocks, first, lanes.INITIAL, out[lo:hi])
            return
        # A few leaves with many records each: too few for lanes, and fast in hashlib.
        for i in range(lo, hi):
            size = 1 + MEMBER_BYTES * int(start[i + 1] - start[i])
            data = blocks[first[i - lo] :].reshape(-1)[:size].data
            out[i] = np.frombuffer(sha256(data).digest(), np.uint8)

    _share(some, _ranges(start, TASK_RECORDS), threads)
    return out


def _ranges(start: npt.NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Ranges of leaves that hold at most so many records together, or one leaf that holds more."""
    ranges, lo, n = [], 0, start.size - 1
    while lo < n:
        hi = max(lo + 1, int(np.searchsorted(start, start[lo] + most, side="right")) - 1)
        ranges.append((lo, hi))
        lo = hi
    return ranges


def _share(
    work: Callable[[tuple[int, int]], None], ranges: Sequence[tuple[int, int]], threads: int
) -> None:
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, ranges):
            pass


def leaf_digests(leaves: Leaves, members: Digests, *, threads: int = 1) -> Digests:
    """leaf_digest of every leaf."""
    n_leaves, n_quasi = leaves.minimum.shape
    width = 1 + 8 + 16 * n_quasi + 32
    out = np.empty((n_leaves, 32), np.uint8)

    def some(numbers: tuple[int, int]) -> None:
        at = slice(*numbers)
        blocks = lanes.padded(numbers[1] - numbers[0], width)
        blocks[:, 0] = LEAF[0]
        blocks[:, 1:9] = _single_bytes(leaves.count[at], "<u8")
        # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
        bounds = np.stack([leaves.minimum[at], leaves.maximum[at]], axis=2) + 0.0
        blocks[:, 9 : width - 32] = _single_bytes(bounds, "<f8")
        blocks[:, width - 32 : width] = members[at]
        out[at] = lanes.digest_rows(blocks)

    edges = [*range(0, n_leaves, TASK_LEAVES), n_leaves]
    _share(some, list(zip(edges[:-1], edges[1:], strict=True)), threads)
    return out


def _single_bytes(numbers: npt.NDArray[np.generic], kind: str) -> npt.NDArray[np.uint8]:
    """Numbers as they are hashed, all those of the first axis in one row."""
    return numbers.astype(kind).reshape(len(numbers), -1).view(np.uint8)


def commit(
    contract: Contract,
    submission: Digest,
    tree: Tree,
    leaves: Leaves,
    members: Digests,
    *,
    threads: int = 1,
) -> Digest:
    """The root that the contract asks for; `members` holds each leaf's members digest."""
    if contract.commitment is Commitment.PAPER:
        return _paper_root(contract, tree, leaves)
    top = _fold(tree, leaf_digests(leaves, members, threads=threads))
    return binding_root(contract.digest, submission, top)


def _fold(tree: Tree, of_leaf: Digests) -> Digest:
    """The digest of the top node, by levels from the deepest: a level needs only the one below."""
    digest = np.empty((tree.n_nodes, 32), np.uint8)
    digest[tree.leaf >= 0] = of_leaf
    depths = tree.depths().astype(np.int32)
    by_depth, start = kernels.group_rows(depths, int(depths.max()) + 1)
    for depth in range(start.size - 2, -1, -1):
        level = by_depth[start[depth] : start[depth + 1]]
        node = level[tree.column[level] >= 0]
        if node.size == 0:
            continue
        blocks = lanes.padded(node.size, NODE_BYTES)
        blocks[:, 0] = NODE[0]
        blocks[:, 1:5] = _single_bytes(tree.column[node], "<u4")
        blocks[:, 5:13] = _single_bytes(tree.threshold[node] + 0.0, "<f8")
        blocks[:, 13:45] = np.take(digest, tree.left[node], axis=0)
        blocks[:, 45:77] = np.take(digest, tree.right[node], axis=0)
        digest[node] = lanes.digest_rows(blocks)
    return Digest(digest[0].tobytes())


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
