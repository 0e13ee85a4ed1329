"""Compiled loops that both parties may use: the fast twins of plain Python.

Arrays in, arrays out; counts are integers; no `fastmath` and no parallel reduction, so the
same bits come out on every machine (numba runs on little-endian ones alone). They release
the GIL, so callers may share the work among threads by ranges. Compiled on first use and
cached on disk by numba.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from verix_anon.protocol.bits import prefetch

# Compiled in (`make stamps`): bits 27534896.
__all__ = ["AHEAD", "Nodes", "check_preorder", "depths", "fill_members", "group_rows", "route"]

AHEAD = 64
"""Where reads go all over the memory, each is asked for so many before it is needed."""

BAD_COLUMN, BAD_THRESHOLD, BAD_CHILD, BAD_LEAF, TOO_DEEP = range(1, 6)


class Nodes(NamedTuple):
    """The arrays of a Tree."""

    column: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float64]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.int32]


@numba.njit(cache=True, nogil=True)
def check_preorder(nodes: Nodes, n_quasi: int, max_depth: int) -> tuple[int, int]:
    """The first problem found as (node, code), or (0, 0) if this is a canonical tree.

    Sizes are summed from the last node to the first, so a node's right child is known to
    stand where its left subtree ends, and nothing is followed before it was checked.
    """
    n = nodes.column.size
    size = np.zeros(n, np.int64)
    for i in range(n - 1, -1, -1):
        if nodes.column[i] == -1:
            if nodes.threshold[i] != 0.0:
                return i, BAD_THRESHOLD
            if nodes.left[i] != -1 or nodes.right[i] != -1:
                return i, BAD_CHILD
            size[i] = 1
            continue
        if nodes.column[i] < 0 or nodes.column[i] >= n_quasi:
            return i, BAD_COLUMN
        if not np.isfinite(nodes.threshold[i]):
            return i, BAD_THRESHOLD
        if nodes.left[i] != i + 1 or i + 1 >= n:
            return i, BAD_CHILD
        right = i + 1 + size[i + 1]
        if right >= n or nodes.right[i] != right:
            return i, BAD_CHILD
        size[i] = 1 + size[i + 1] + size[right]
    if size[0] != n:
        return 0, BAD_CHILD
    depth = np.zeros(n, np.int64)
    next_leaf = 0
    for i in range(n):
        if depth[i] > max_depth:
            return i, TOO_DEEP
        if nodes.column[i] == -1:
            if nodes.leaf[i] != next_leaf:
                return i, BAD_LEAF
            next_leaf += 1
            continue
        if nodes.leaf[i] != -1:
            return i, BAD_LEAF
        depth[nodes.left[i]] = depth[i] + 1
        depth[nodes.right[i]] = depth[i] + 1
    return 0, 0


@numba.njit(cache=True, nogil=True)
def depths(right: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """How far each node of a checked tree lies from the root."""
    depth = np.zeros(right.size, np.int64)
    for node in range(right.size):
        if right[node] >= 0:
            depth[node + 1] = depth[right[node]] = depth[node] + 1
    return depth


@numba.njit(cache=True, nogil=True)
def route(nodes: Nodes, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """The leaf of every record of a checked tree."""
    n = values.shape[1]
    leaf = np.empty(n, np.int32)
    for row in range(n):
        node = 0
        while nodes.column[node] >= 0:
            if values[nodes.column[node], row] <= nodes.threshold[node]:
                node = nodes.left[node]
            else:
                node = nodes.right[node]
        leaf[row] = nodes.leaf[node]
    return leaf


@numba.njit(cache=True, nogil=True)
def group_rows(
    leaf: npt.NDArray[np.int32], n_leaves: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Positions grouped by leaf, in ascending order within each, and where each leaf starts.

    Leaf numbers must lie in 0 .. n_leaves - 1.
    """
    start = np.zeros(n_leaves + 1, np.int64)
    for number in leaf:
        start[number + 1] += 1
    for number in range(n_leaves):
        start[number + 1] += start[number]
    cursor = start[:-1].copy()
    grouped = np.empty(leaf.size, np.int64)
    for position in range(leaf.size):
        number = leaf[position]
        grouped[cursor[number]] = position
        cursor[number] += 1
    return grouped, start


@numba.njit(cache=True, nogil=True)
def _gather_members(
    positions: npt.NDArray[np.int64],
    row: npt.NDArray[np.int64],
    tracker: npt.NDArray[np.uint64],
) -> npt.NDArray[np.uint64]:
    """Row number and tracker of the records at some positions, as five words each."""
    n = positions.size
    out = np.empty((n, 5), np.uint64)
    for i in range(n):
        ahead = positions[min(i + AHEAD, n - 1)]
        prefetch(row, ahead)
        prefetch(tracker, 4 * ahead)
        at = np.uint64(positions[i])
        out[i, 0] = row[at]
        for word in range(4):
            out[i, 1 + word] = tracker[at, word]
    return out


@numba.njit(cache=True, nogil=True)
def fill_members(
    positions: npt.NDArray[np.int64],
    start: npt.NDArray[np.int64],
    row: npt.NDArray[np.int64],
    tracker: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """What is hashed of the members of some leaves (spec §6), padded as SHA-256 wants it.

    Leaf i holds the records at positions[start[i]:start[i+1]]; a tracker is four words.
    Returns where each leaf's blocks start, and the blocks, (n, 64).
    """
    n_leaves = start.size - 1
    first = np.zeros(n_leaves + 1, np.int64)
    for leaf in range(n_leaves):
        first[leaf + 1] = first[leaf] + (1 + 40 * (start[leaf + 1] - start[leaf]) + 72) // 64
    # In a loop of its own: the shorter it is, the more records are fetched at the same time.
    members = _gather_members(positions[start[0] : start[n_leaves]], row, tracker).reshape(-1)
    words = np.empty(8 * first[n_leaves], np.uint64)
    eight, last = np.uint64(8), np.uint64(56)
    at, member = 0, 0
    for leaf in range(n_leaves):
        # The tag shifts everything by a byte: the last byte of a word goes into the next.
        carried = np.uint64(2)
        n_words = 5 * (start[leaf + 1] - start[leaf])
        for i in range(n_words):
            word = members[member + i]
            words[at + i] = (word << eight) | carried
            carried = word >> last
        words[at + n_words] = carried | np.uint64(0x8000)
        for i in range(at + n_words + 1, 8 * first[leaf + 1]):
            words[i] = 0
        at, member = 8 * first[leaf + 1], member + n_words
        n_bits = np.uint64(8 + 64 * n_words)
        for byte in range(8):
            single = (n_bits >> np.uint64(8 * byte)) & np.uint64(255)
            words[at - 1] |= single << np.uint64(56 - 8 * byte)
    return first, words.view(np.uint8).reshape(-1, 64)
