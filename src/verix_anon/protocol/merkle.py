"""Computes both commitments of a whole delivery: arrays in, bytes out (spec §6).

The formulas are in `digests`. This module hashes the same bytes for many leaves at a time, because
a million records have a hundred thousand leaves.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from verix_anon.arrays import Bytes, Ints, Numbers
from verix_anon.protocol.contract import Commitment, Contract, Digest
from verix_anon.protocol.digests import LEAF, NODE, binding_root, leaf_text, node_digest, node_text
from verix_anon.protocol.records import Records, wire_columns
from verix_anon.protocol.tree import Leaves, Tree

CHUNK_ROWS = 65536
# How many leaves are hashed at a time: few enough for the cache of a core.
BATCH_LEAVES = 1024
BATCH_NODES = 2 * BATCH_LEAVES
SUBMISSION, CHUNK = b"\4", b"\5"


def chunk_digest(contract: Contract, number: int, records: Records) -> Digest:
    """Hash one chunk of the sent rows, in ascending row. `number` counts the chunks."""
    return columns_digest(number, [records.tracker, *wire_columns(contract, records, slice(None))])


def columns_digest(number: int, columns: Iterable[npt.NDArray[Any]]) -> Digest:
    """Hash one chunk from its trackers and its columns in their written form."""
    digest = sha256(CHUNK + struct.pack("<Q", number))
    for column in columns:
        digest.update(np.ascontiguousarray(column).data)
    return Digest(digest.digest())


def chunks_digest(contract: Contract, n_rows: int, chunks: Iterable[bytes]) -> Digest:
    """Hash the submission from the digests of its chunks, in ascending number."""
    head = SUBMISSION + contract.digest + struct.pack("<Q", n_rows)
    return Digest(sha256(head + b"".join(chunks)).digest())


def submission_digest(
    contract: Contract, records: Records, *, threads: int | None = None
) -> Digest:
    """Hash what was sent, the contract and every record in order, by chunks of rows."""

    def chunk(number: int) -> bytes:
        rows = slice(number * CHUNK_ROWS, (number + 1) * CHUNK_ROWS)
        return chunk_digest(contract, number, records.part(rows))

    n_chunks = -(-records.n_rows // CHUNK_ROWS)
    with ThreadPoolExecutor(threads) as pool:
        return chunks_digest(contract, records.n_rows, pool.map(chunk, range(n_chunks)))


class Members(NamedTuple):
    """The records of all leaves: leaf i holds those at positions[start[i]:start[i + 1]].

    Rows ascend, so ascending positions also mean ascending rows.
    """

    positions: Numbers | Ints
    start: Ints
    row: Ints
    tracker: Bytes


def leaf_digests(leaves: Leaves, members: Members) -> list[Digest]:
    """Return `digests.leaf_digest` of every leaf."""
    return [
        Digest(digest)
        for first in range(0, leaves.n_leaves, BATCH_LEAVES)
        for digest in _batch(leaves, members, slice(first, first + BATCH_LEAVES))
    ]


def _batch(leaves: Leaves, members: Members, at: slice) -> Iterator[bytes]:
    """Hash some leaves whose bytes are laid out together."""
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
    bounds = np.stack([leaves.minimum[at], leaves.maximum[at]], axis=2, dtype=np.float64) + 0.0
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
    """Return the root that the contract asks for. The paper's commitment ignores members."""
    return root_over(contract, submission, top_digest(contract, tree, leaves, members))


def root_over(contract: Contract, submission: Digest, top: Digest) -> Digest:
    """Return the root, given the digest of the top node."""
    if contract.commitment is Commitment.PAPER:
        return top
    return binding_root(contract.digest, submission, top)


def top_digest(contract: Contract, tree: Tree, leaves: Leaves, members: Members) -> Digest:
    """Return the digest of a tree's first node under the contract's commitment."""
    if contract.commitment is Commitment.PAPER:
        return _paper_top(contract, tree, leaves)
    # In preorder the leaves of a batch of nodes are consecutive. Read backwards, a node's children
    # are the last two digests that were pushed.
    open_: list[bytes] = []
    for first in range((tree.n_nodes - 1) // BATCH_NODES * BATCH_NODES, -1, -BATCH_NODES):
        heads, is_leaf = _heads(tree, slice(first, first + BATCH_NODES))
        numbers = tree.leaf[first : first + BATCH_NODES]
        numbers = numbers[numbers >= 0]
        of_leaf: list[bytes] = []
        if numbers.size:
            of_leaf += _batch(leaves, members, slice(int(numbers[0]), int(numbers[-1]) + 1))
        for head, is_one in zip(reversed(heads), reversed(is_leaf), strict=True):
            if is_one:
                open_.append(of_leaf.pop())
            else:
                left, right = open_.pop(), open_.pop()
                open_.append(sha256(head + left + right).digest())
    return Digest(open_.pop())


def split_digest(
    contract: Contract, index: int, threshold: float, left: Digest, right: Digest
) -> Digest:
    """Return the digest of one split over two trees under the contract's commitment."""
    if contract.commitment is Commitment.PAPER:
        text = node_text(contract.quasi[index].name, threshold, left.hex(), right.hex())
        return Digest(sha256(text.encode("utf-8")).digest())
    return node_digest(index, threshold, left, right)


def node_digests(tree: Tree, of_leaf: Sequence[Digest]) -> list[Digest]:
    """Return the digest of every node, computed from the last node: children come later."""
    heads, _ = _heads(tree, slice(0, tree.n_nodes))
    right, leaf = tree.right.tolist(), tree.leaf.tolist()
    digest = [Digest(b"")] * tree.n_nodes
    for node in range(tree.n_nodes - 1, -1, -1):
        if leaf[node] >= 0:
            digest[node] = of_leaf[leaf[node]]
        else:
            both = digest[node + 1] + digest[right[node]]
            digest[node] = Digest(sha256(heads[node] + both).digest())
    return digest


def _heads(tree: Tree, at: slice) -> tuple[list[bytes], list[bool]]:
    """Return the first bytes to hash for some splits, and which of these nodes are leaves."""
    column = tree.column[at]
    heads = np.empty((column.size, 13), np.uint8)
    heads[:, 0] = NODE[0]
    heads[:, 1:5] = column.astype("<u4").reshape(-1, 1).view(np.uint8)
    heads[:, 5:] = (tree.threshold[at] + 0.0).astype("<f8").reshape(-1, 1).view(np.uint8)
    return [head for (head,) in struct.iter_unpack("13s", heads.tobytes())], (column < 0).tolist()


def _paper_top(contract: Contract, tree: Tree, leaves: Leaves) -> Digest:
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
