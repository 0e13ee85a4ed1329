"""Layer `utility`: what a model trained on the delivery is worth.

Proves: nothing; it is a measure. It trains on the delivered midpoints of three quarters of the
watch records, and on the same records raw, and tests both on the rest, raw. The labels are the
owner's own.
Can err: as every estimate from a few hundred records does.
"""

import numpy as np

from verix_anon.arrays import Bytes, Flags, Floats
from verix_anon.client import models
from verix_anon.client.table.task import Labels, Task
from verix_anon.client.verdict import MEASURES, Finding, Status
from verix_anon.client.verify.case import Case
from verix_anon.protocol.tree import midpoints

LAYER = "utility"


def check(case: Case) -> Finding:
    """What a model trained on the delivery reaches, beside one trained on the raw records."""
    manifest = case.manifest
    if manifest.task is Task.NONE:
        return Finding(layer=LAYER, status=Status.SKIPPED, summary="Not run: there is no target.")
    position = case.positions_of(manifest.watch_row)
    is_back = np.flatnonzero(position >= 0)
    raw, labels = manifest.watch_values.T[is_back], manifest.watch_labels.of(is_back)
    middle = midpoints(case.delivery.leaves.of(case.records.leaf[position[is_back]]))
    is_test = np.arange(is_back.size) % 4 == 3
    trained, tested = labels.of(np.flatnonzero(~is_test)), labels.of(np.flatnonzero(is_test))
    if any(np.unique(part.values).size < 2 for part in (trained, tested)):
        return Finding(
            layer=LAYER,
            status=Status.INCONCLUSIVE,
            summary="Too few watch records have different labels to train a model.",
        )
    before, after = (
        measure(tested, models.predict(rows[~is_test], trained, raw[is_test]))
        for rows in (raw, middle)
    )
    words, raw_words = (
        " and ".join(MEASURES[name].format(value) for name, value in measured.items())
        for measured in (after, before)
    )
    return Finding(
        layer=LAYER,
        status=Status.PASS,
        summary=f"A model trained on the delivery reaches {words}. One trained on raw records"
        f" reaches {raw_words}.",
        guarantee="This is a measure, not a test.",
        evidence={"raw": before, "delivery": after, "tested_on": int(is_test.sum())},
    )


def measure(labels: Labels, predicted: Floats) -> dict[str, float]:
    """How good predictions are, by the task's two measures."""
    if labels.task is Task.QUANTITY:
        # Values that are not all the same, in parts of the greatest: squares cannot overflow.
        greatest = float(np.abs(labels.values).max())
        own, error = labels.values / greatest, labels.values / greatest - predicted / greatest
        absolute = float(np.abs(error).mean())
        return {
            "r2": 1 - float((error**2).sum() / ((own - own.mean()) ** 2).sum()),
            "mean_absolute_error": min(absolute * greatest, float(np.finfo(np.float64).max)),
        }
    if labels.is_binary:
        target = labels.values.astype(np.uint8)
        return {"f1": f1(target, predicted), "auc": auc(target, predicted)}
    answer = predicted.argmax(axis=1)
    occur = np.unique(labels.values).astype(np.int64)
    scores = [_f1(labels.values == label, answer == label) for label in np.union1d(occur, answer)]
    ranks = [auc((labels.values == label).astype(np.uint8), predicted[:, label]) for label in occur]
    return {"macro_f1": float(np.mean(scores)), "auc": float(np.mean(ranks))}


def f1(target: Bytes, probability: Floats) -> float:
    """The F1 score at a threshold of 0.5; 0 if nothing is predicted positive."""
    return _f1(target == 1, probability >= 0.5)


def _f1(is_positive: Flags, is_predicted: Flags) -> float:
    hits = int((is_predicted & is_positive).sum())
    total = int(is_predicted.sum()) + int(is_positive.sum())
    return 2 * hits / total if total else 0.0


def auc(target: Bytes, probability: Floats) -> float:
    """The chance that a positive record ranks above a negative one, ties counting half."""
    values, rank = np.unique(probability, return_inverse=True)
    counts = np.bincount(rank, minlength=values.size)
    middle = np.cumsum(counts) - (counts - 1) / 2
    positive = target == 1
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    return float((middle[rank[positive]].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))
