"""Deliveries that are well-formed and false: one thing is another, and everything else fits it."""

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tools import cases
from tools.fuzz.jobs import Files, Job, written
from verix_anon.files.folder_writer import write_delivery
from verix_anon.protocol.messages import Delivered, Delivery


def false(rng: random.Random, job: Job) -> Files:
    """The folder of a delivery that says something false, with the root that fits it."""
    delivery = rng.choice(WAYS)(rng, job)
    return written(lambda path: write_delivery(delivery, path))


def _records(delivery: Delivery, **changed: np.ndarray) -> Delivered:
    names = ("row", "tracker", "leaf", "target")
    arrays = {name: getattr(delivery.records, name) for name in names}
    return Delivered(**(arrays | changed), has_target=delivery.records.has_target)


def _nudged(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """With one number a little more, a little less, or that of another place."""
    other = array.copy()
    flat = other.reshape(-1)
    at, from_there = rng.randrange(flat.size), rng.randrange(flat.size)
    if flat.dtype == np.float64:
        near = [np.nextafter(flat[at], np.inf), np.nextafter(flat[at], -np.inf)]
        flat[at] = rng.choice([*near, flat[at] + 1.0, flat[from_there], -flat[at], 0.0])
    else:
        flat[at] = rng.choice([int(flat[at]) ^ 1, flat[from_there], max(0, int(flat[at]) - 1)])
    return other


def other_bounds(rng: random.Random, job: Job) -> Delivery:
    name = rng.choice(["minimum", "maximum", "count"])
    leaves = job.delivery.leaves
    changed = replace(leaves, **{name: _nudged(rng, getattr(leaves, name))})
    return cases.resealed(job.submission, job.delivery, leaves=changed)


def other_thresholds(rng: random.Random, job: Job) -> Delivery:
    tree = job.delivery.tree
    changed = replace(tree, threshold=_nudged(rng, tree.threshold))
    return cases.resealed(job.submission, job.delivery, tree=changed)


def other_records(rng: random.Random, job: Job) -> Delivery:
    """A tracker or a target is another, or records have changed places."""
    records, delivery = job.delivery.records, job.delivery
    name = rng.choice(["tracker", "target", "row", "leaf"])
    if name in ("tracker", "target"):
        changed = _nudged(rng, getattr(records, name))
    else:
        changed = getattr(records, name).copy()
        one, other = rng.randrange(changed.size), rng.randrange(changed.size)
        changed[[one, other]] = changed[[other, one]]
    return cases.resealed(job.submission, delivery, records=_records(delivery, **{name: changed}))


def fewer_records(rng: random.Random, job: Job) -> Delivery:
    """Records are left out, or one is there in the place of another, and the bounds fit."""
    delivery, n = job.delivery, job.delivery.records.row.size
    kept = np.arange(n)
    if rng.random() < 0.5:
        kept = np.delete(kept, rng.sample(range(n), rng.choice([1, 1, 3])))
    else:
        kept[rng.randrange(n)] = rng.randrange(n)
    names = ("row", "tracker", "leaf", "target")
    records = _records(delivery, **{k: getattr(delivery.records, k)[kept] for k in names})
    n_leaves = delivery.leaves.n_leaves
    if np.unique(records.leaf).size < n_leaves:
        return delivery
    leaves = cases.true_leaves(job.submission, records, n_leaves)
    return cases.resealed(job.submission, delivery, records=records, leaves=leaves)


def reordered(rng: random.Random, job: Job) -> Delivery:
    """Nothing false: the rows stand in another order, which they may."""
    records = job.delivery.records
    order = np.array(rng.sample(range(records.row.size), records.row.size))
    names = ("row", "tracker", "leaf", "target")
    changed = {name: getattr(records, name)[order] for name in names}
    return replace(job.delivery, records=_records(job.delivery, **changed))


WAYS: list[Callable[[random.Random, Job], Delivery]] = [
    *(other_bounds, other_thresholds, other_records, other_records, fewer_records, reordered),
]
