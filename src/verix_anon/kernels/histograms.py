"""Compiled loops over the whole-number keys of records: they route and count records.

Keys have the same order as the values. A cell is one column of one node. Its window is a range of
keys, divided into buckets of 2^shift keys each.
"""

from typing import NamedTuple

import numba
import numpy as np

from verix_anon.arrays import Bytes, Ids, Ints

# The fields of a bucket.
COUNT, POSITIVE, LEAST, GREATEST = range(4)
FIELDS = 4


class Windows(NamedTuple):
    """The window of every cell, (n_nodes, n_columns) each. It is empty where low > high."""

    low: Ints
    high: Ints
    shift: Ints


@numba.njit(cache=True, nogil=True)
def route(keys: Ints, column: Ids, threshold: Ints, right: Ids, node: Ids) -> None:
    """Move each record, (n_records, n_columns), down a tree to the node that does not split it.

    A node's left child comes just before its right child. Fills `node`.
    """
    for i in range(len(keys)):
        at = 0
        while column[at] >= 0:
            goes_left = keys[i, column[at]] <= threshold[at]
            at = right[at] - np.int32(goes_left)
        node[i] = at


@numba.njit(cache=True, nogil=True)
def count(keys: Ints, number: Ids, positive: Bytes, windows: Windows, buckets: Ints) -> None:
    """Add records to the buckets, (n_nodes, n_columns, n_buckets, FIELDS), of their node.

    A record with a negative node is skipped. In an empty bucket only the count has a meaning.
    """
    n_columns = keys.shape[1]
    for i in range(len(keys)):
        node = number[i]
        if node < 0:
            continue
        for j in range(n_columns):
            key, low = keys[i, j], windows.low[node, j]
            if key < low or key > windows.high[node, j]:
                continue
            # The distance of two keys cannot overflow as an unsigned number.
            distance = np.uint64(key) - np.uint64(low)
            at = np.int64(distance >> np.uint64(windows.shift[node, j]))
            bucket = buckets[node, j, at]
            if bucket[COUNT] == 0:
                bucket[LEAST] = bucket[GREATEST] = key
            bucket[COUNT] += 1
            bucket[POSITIVE] += positive[i]
            bucket[LEAST] = min(bucket[LEAST], key)
            bucket[GREATEST] = max(bucket[GREATEST], key)
