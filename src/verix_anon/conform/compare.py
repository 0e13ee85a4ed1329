"""A delivery against the one that the specification demands, question by question.

What is read is hostile (spec §11), and read as such. A difference is told with where it first is.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np

from verix_anon.arrays import Floats, Ids
from verix_anon.conform.results import Check
from verix_anon.errors import Error
from verix_anon.files.deliveries import (
    LEAVES,
    NAMED,
    NODES,
    Snapshot,
    damage,
    header_to_bytes,
    read_delivery,
)
from verix_anon.files.submissions import open_submission
from verix_anon.protocol.messages import Delivered, Delivery, Header
from verix_anon.protocol.tree import Leaves, Tree

__all__ = ["compared"]


def compared(submission: Path, expected: Path, found: Path) -> list[Check]:
    """What is as it must be in a delivery, and what is not."""
    stated = open_submission(submission)
    wanted = read_delivery(expected, stated.contract, n_rows=stated.n_rows).delivery
    try:
        snapshot = read_delivery(found, stated.contract, n_rows=stated.n_rows, signed_zeros=True)
    except Error as error:
        return [Check("files", False, str(error))]
    return list(_checks(wanted, snapshot.delivery, _files(snapshot)))


def _checks(wanted: Delivery, found: Delivery, files: str) -> Iterator[Check]:
    for name, difference in (
        ("files", files),
        ("header", _header(wanted.header, found.header)),
        ("tree", _tree(wanted.tree, found.tree)),
        ("bounds", _bounds(wanted.leaves, found.leaves)),
        ("records", _records(wanted.records, found.records)),
        ("root", _digest(wanted.header.root, found.header.root)),
    ):
        yield Check(name, not difference, difference or "as it must be")


def _files(snapshot: Snapshot) -> str:
    """What was damaged, or else what readers forgive and writers must not do (spec §2.1, §8.2)."""
    if snapshot.damaged:
        return damage(snapshot.damaged)
    found = snapshot.delivery
    header = header_to_bytes(found.header, {name: snapshot.files[name] for name in NAMED})
    if sha256(header).hexdigest() != snapshot.files["delivery.json"]:
        return "delivery.json is not in the form of RFC 8785"
    for name, arrays in (
        (NODES, [found.tree.threshold]),
        (LEAVES, [found.leaves.minimum, found.leaves.maximum]),
    ):
        if any(_has_minus_zero(values) for values in arrays):
            return f"{name} holds -0.0"
    return ""


def _has_minus_zero(values: Floats | Ids) -> bool:
    return bool((np.signbit(values) & (values == 0)).any())


def _digest(wanted: bytes, found: bytes) -> str:
    return "" if wanted == found else f"{found.hex()}, and not {wanted.hex()}"


def _header(wanted: Header, found: Header) -> str:
    for name in ("contract", "submission"):
        if different := _digest(getattr(wanted, name), getattr(found, name)):
            return f"{name} {different}"
    for name in ("rows", "leaves", "nodes"):
        if getattr(wanted, name) != getattr(found, name):
            return f"{getattr(found, name):,} {name}, and not {getattr(wanted, name):,}"
    return ""


def _tree(wanted: Tree, found: Tree) -> str:
    both = min(wanted.n_nodes, found.n_nodes)
    # In preorder the first node of another split, or none, is where the trees part. Numbers of
    # sides differ above it already.
    for names in (("column", "threshold"), ("left", "right", "leaf")):
        pairs = [(getattr(wanted, name)[:both], getattr(found, name)[:both]) for name in names]
        differs = np.any([a != b for a, b in pairs], axis=0)
        if differs.any():
            i = int(np.argmax(differs))
            return f"node {i} is {_node(found, i)}, and not {_node(wanted, i)}"
    return ""


def _node(tree: Tree, i: int) -> str:
    if tree.column[i] < 0:
        return f"leaf {tree.leaf[i]}"
    split = f"a split of column {tree.column[i]} at {float(tree.threshold[i])!r}"
    return f"{split} with the sides {tree.left[i]} and {tree.right[i]}"


def _bounds(wanted: Leaves, found: Leaves) -> str:
    both = min(wanted.n_leaves, found.n_leaves)
    low = wanted.minimum[:both] != found.minimum[:both]
    cells = low | (wanted.maximum[:both] != found.maximum[:both])
    differs = cells.any(axis=1) | (wanted.count[:both] != found.count[:both])
    if not differs.any():
        return ""
    i = int(np.argmax(differs))
    if wanted.count[i] != found.count[i]:
        return f"leaf {i} has {found.count[i]:,} records, and not {wanted.count[i]:,}"
    j = int(np.argmax(cells[i]))
    return f"leaf {i}, column {j}: {_ends(found, i, j)}, and not {_ends(wanted, i, j)}"


def _ends(leaves: Leaves, i: int, j: int) -> str:
    return f"{float(leaves.minimum[i, j])!r} to {float(leaves.maximum[i, j])!r}"


def _records(wanted: Delivered, found: Delivered) -> str:
    """Records are compared by row, in whatever order they stand."""
    n = wanted.row.size
    times = np.bincount(found.row, minlength=n)
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        return f"row {row} is there {times[row]} times, and not once"
    here, there = np.argsort(wanted.row), np.argsort(found.row)
    for name in ("tracker", "leaf", "target"):
        a, b = getattr(wanted, name)[here], getattr(found, name)[there]
        differs = (a != b).any(axis=1) if a.ndim == 2 else a != b
        if differs.any():
            row = int(np.argmax(differs))
            return f"row {row} has the {name} {_value(b[row])}, and not {_value(a[row])}"
    return ""


def _value(value: "np.generic | np.ndarray[tuple[int, ...], np.dtype[np.uint8]]") -> str:
    return bytes(value).hex() if isinstance(value, np.ndarray) else str(value)
