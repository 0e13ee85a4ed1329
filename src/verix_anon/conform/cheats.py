"""Deliveries that one layer alone sees, beside those of the adversaries.

Each is made as consistent as can be: counts, bounds and root fit what is delivered.
"""

from dataclasses import replace
from hashlib import sha256

import numpy as np

from verix_anon.adversaries.forging import restamped
from verix_anon.client.prepare import Prepared
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Delivered, Delivery
from verix_anon.protocol.tree import Leaves

__all__ = [
    "changes_sentinel",
    "changes_twin",
    "forges_root",
    "invents_labels",
    "loses_sentinel",
    "moves_twin",
    "moves_watched",
    "states_contract",
    "states_submission",
]

OTHER = Digest(bytes(32))


def forges_root(made: Prepared, honest: Delivery) -> Delivery:
    """Everything is true but the root."""
    root = Digest(sha256(b"forged" + honest.header.root).digest())
    return replace(honest, header=replace(honest.header, root=root))


def invents_labels(made: Prepared, honest: Delivery) -> Delivery:
    """The labels have nothing to do with the records any more; trackers and leaves are true."""
    target = (honest.records.row % 2).astype(np.uint8)
    return replace(honest, records=replace(honest.records, target=target))


def loses_sentinel(made: Prepared, honest: Delivery) -> Delivery:
    """One sentinel is not returned, from a leaf that stays large enough without it."""
    old = honest.records
    spare = honest.leaves.count[old.leaf] > made.submission.contract.min_leaf
    lost = next(row for row in made.manifest.sentinel_row.tolist() if spare[old.row == row].all())
    kept = old.row != lost
    records = replace(
        old,
        row=old.row[kept],
        tracker=old.tracker[kept],
        leaf=old.leaf[kept],
        target=old.target[kept],
    )
    return _fitting(made, honest, records)


def changes_sentinel(made: Prepared, honest: Delivery) -> Delivery:
    """One sentinel is returned under another tracker, which the paper's root does not bind."""
    return _tracked_otherwise(honest, int(made.manifest.sentinel_row[0]))


def changes_twin(made: Prepared, honest: Delivery) -> Delivery:
    """One of two twins is returned under another tracker, which the paper's root does not bind."""
    return _tracked_otherwise(honest, int(made.manifest.twin_row[0, 1]))


def _tracked_otherwise(honest: Delivery, row: int) -> Delivery:
    tracker = honest.records.tracker.copy()
    tracker[row, 0] ^= 1
    return replace(honest, records=replace(honest.records, tracker=tracker))


def states_contract(made: Prepared, honest: Delivery) -> Delivery:
    """Everything is true but the contract that it says it is for."""
    return replace(honest, header=replace(honest.header, contract=OTHER))


def states_submission(made: Prepared, honest: Delivery) -> Delivery:
    """Everything is true but the submission that it says it is for."""
    return replace(honest, header=replace(honest.header, submission=OTHER))


def moves_twin(made: Prepared, honest: Delivery) -> Delivery:
    """One of two twins lies in the neighbouring leaf, where no witness looks."""
    return _moved(made, honest, made.manifest.twin_row[:, 1].tolist())


def moves_watched(made: Prepared, honest: Delivery) -> Delivery:
    """One watch record that is no twin lies in the neighbouring leaf, where no witness looks."""
    twins = set(made.manifest.twin_row.ravel().tolist())
    return _moved(made, honest, [r for r in made.manifest.watch_row.tolist() if r not in twins])


def _moved(made: Prepared, honest: Delivery, rows: list[int]) -> Delivery:
    """The first of these rows that can be moved lies in the neighbouring leaf."""
    tree, leaf = honest.tree, honest.records.leaf.copy()
    seen = {int(leaf[witness.row]) for witness in made.manifest.witnesses}
    pairs = [
        (int(tree.leaf[left]), int(tree.leaf[right]))
        for left, right in zip(tree.left.tolist(), tree.right.tolist(), strict=True)
        if left >= 0 and tree.leaf[left] >= 0 and tree.leaf[right] >= 0
    ]
    beside = {a: b for pair in pairs if not seen & set(pair) for a, b in (pair, pair[::-1])}
    large = honest.leaves.count > made.submission.contract.min_leaf
    moved = next(row for row in rows if int(leaf[row]) in beside and large[leaf[row]])
    leaf[moved] = beside[int(leaf[moved])]
    return _fitting(made, honest, replace(honest.records, leaf=leaf))


def _fitting(made: Prepared, honest: Delivery, records: Delivered) -> Delivery:
    """These records, with counts, bounds and a root that fit them."""
    values = made.submission.records.values[:, records.row].T
    shape = honest.leaves.minimum.shape
    minimum, maximum = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(minimum, records.leaf, values)
    np.maximum.at(maximum, records.leaf, values)
    count = np.bincount(records.leaf, minlength=shape[0]).astype(np.int64)
    leaves = Leaves(count=count, minimum=minimum, maximum=maximum)
    header = replace(honest.header, rows=records.row.size)
    altered = replace(honest, records=records, leaves=leaves, header=header)
    return restamped(made.submission, altered)
