"""Layer `utility`: what a model trained on the delivery is worth.

Proves: nothing; it is a measure. It trains on the delivered midpoints of three quarters of the
watch records, and on the same records raw, and tests both on the rest, raw.
Can err: as every estimate from a few hundred records does.
"""

import numpy as np

from verix_anon.arrays import Bytes, Floats
from verix_anon.client import models
from verix_anon.client.verdict import Finding, Status
from verix_anon.client.verify.case import Case
from verix_anon.protocol.generalize import midpoints

__all__ = ["auc", "check", "f1"]

LAYER = "utility"


def check(case: Case) -> Finding:
    """F1 and AUC of a model trained on the delivery, beside one trained on the raw records."""
    manifest = case.manifest
    position = case.position_of_row[manifest.watch_row]
    is_back = position >= 0
    raw, target = manifest.watch_values.T[is_back], manifest.watch_target[is_back]
    middle = midpoints(case.delivery.leaves)[case.records.leaf[position[is_back]]]
    is_test = np.arange(target.size) % 4 == 3
    parts = (target[is_test], target[~is_test])
    if any(np.unique(part).size < 2 for part in parts):
        return Finding(
            layer=LAYER,
            status=Status.INCONCLUSIVE,
            summary="Too few watch records of both classes for a model.",
        )
    measured = {}
    for name, rows in (("raw", raw), ("delivery", middle)):
        probability = models.predict(rows[~is_test], target[~is_test], raw[is_test])
        measured[name] = {
            "f1": f1(target[is_test], probability),
            "auc": auc(target[is_test], probability),
        }
    before, after = measured["raw"], measured["delivery"]
    return Finding(
        layer=LAYER,
        status=Status.PASS,
        summary=(
            f"A model trained on the delivery reaches F1 {after['f1']:.3f} and AUC"
            f" {after['auc']:.3f}; trained on raw records F1 {before['f1']:.3f} and AUC"
            f" {before['auc']:.3f}."
        ),
        guarantee="A measure, not a test.",
        evidence={**measured, "tested_on": int(is_test.sum())},
    )


def f1(target: Bytes, probability: Floats) -> float:
    """The F1 score at a threshold of 0.5; 0 if nothing is predicted positive."""
    predicted = probability >= 0.5
    hits = int((predicted & (target == 1)).sum())
    total = int(predicted.sum()) + int((target == 1).sum())
    return 2 * hits / total if total else 0.0


def auc(target: Bytes, probability: Floats) -> float:
    """The chance that a positive record ranks above a negative one, ties counting half."""
    values, rank = np.unique(probability, return_inverse=True)
    counts = np.bincount(rank, minlength=values.size)
    middle = np.cumsum(counts) - (counts - 1) / 2
    positive = target == 1
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    return float((middle[rank[positive]].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))
