"""Layer `fingerprint` (paper layer 3): how a model uses the columns did not move too far.

Proves: nothing. It measures how far the SHAP distributions of the three most important columns
moved between the raw records and their midpoints in the delivery.
Does not prove: that the agreed rule ran; an honest run moves them too, by as much as blind
splitting on some tables.
Can err: often. As the paper has it, it accuses honest runs too, on every data set tried
(results/RESULTS.md); the p-value against calibrated honest runs says how unusual this one is.
"""

import secrets
from dataclasses import replace

import numpy as np

from verix_anon.arrays import Floats
from verix_anon.client import models
from verix_anon.client.evidence import ShapShift, quantiles
from verix_anon.client.table.task import Labels, Task
from verix_anon.client.verdict import Finding, Profile, Status
from verix_anon.client.verify.case import Case
from verix_anon.protocol.tree import midpoints

LAYER = "fingerprint"
PAPER_EPSILON = 0.45
CALIBRATION_MARGIN = 1.1
SAMPLE_ROWS = 2_000


def check(case: Case, profile: Profile) -> Finding:
    """Compare the baseline's SHAP distributions with those of the delivered midpoints."""
    manifest = case.manifest
    if manifest.task is Task.NONE:
        return Finding(layer=LAYER, status=Status.SKIPPED, summary="Not run: there is no target.")
    rows, labels = _observed(case, profile)
    if any(np.unique(each).size < 2 for each in (labels.values, manifest.watch_target)):
        return Finding(
            layer=LAYER,
            status=Status.INCONCLUSIVE,
            summary="Too few watch records have different labels to train a model.",
        )
    observed = models.shap_values(rows, labels)
    moved = models.moved(manifest.baseline, observed, manifest.top_features)
    distance = [each for each, _ in moved]
    names = [manifest.quasi[feature].name for feature in manifest.top_features]
    epsilon = [_epsilon(case, profile, name) for name in names]
    pairs = zip(names, distance, epsilon, strict=True)
    over = [repr(name) for name, d, e in pairs if e is not None and d > e]
    most = max(distance, default=0.0)
    if over:
        status, summary = Status.FAIL, f"SHAP values moved too far in {' and '.join(over)}."
    elif any(epsilon):
        status, summary = Status.PASS, "SHAP values moved within the threshold."
    else:
        status = Status.INCONCLUSIVE
        summary = f"For information: SHAP values moved by up to {most:.2f}. No threshold is set."
    # The honest runs compared the same records before and after, which the paper does not.
    honest = manifest.calibration[: None if profile is not Profile.PAPER else 0]
    p = p_value(most, honest)
    if p is not None:
        summary += f" p-value {p:.3g} against honest runs: {len(manifest.calibration)}."
    return Finding(
        layer=LAYER,
        status=status,
        summary=summary,
        guarantee="This is a measure with an error rate. It proves nothing.",
        evidence={
            "features": names,
            "distance": distance,
            "epsilon": epsilon,
            "p_value": p,
            "records": int(labels.values.size),
            # Of more than two classes, in the one where the feature moved farthest.
            "shap": [
                ShapShift.of(
                    names[i],
                    manifest.baseline[:, output, i],
                    observed[:, output, manifest.top_features[i]],
                ).to_json()
                for i, (_, output) in enumerate(moved)
            ],
            "honest": quantiles(honest.max(axis=1, initial=0.0)),
        },
    )


def p_value(distance: float, calibration: Floats) -> float | None:
    """How many honest runs moved as far, of all and this one; None without calibration."""
    if len(calibration) == 0:
        return None
    honest = calibration.max(axis=1)
    return float((1 + (honest >= distance).sum()) / (1 + honest.size))


def _observed(case: Case, profile: Profile) -> tuple[Floats, Labels]:
    """Midpoints and the owner's labels of the watch records; or a fresh sample, as in the paper.

    The paper labels the sample as the provider delivered it.
    """
    records, leaves, manifest = case.records, case.delivery.leaves, case.manifest
    if profile is Profile.PAPER and case.contract.target is not None:
        rng = np.random.default_rng(secrets.randbits(128))
        some = rng.choice(records.row.size, min(SAMPLE_ROWS, records.row.size), replace=False)
        delivered = records.target[some].astype(np.float64)
        middle = midpoints(leaves.of(records.leaf[some]))
        return middle, replace(manifest.watch_labels, values=delivered)
    position = case.positions_of(manifest.watch_row)
    is_back = np.flatnonzero(position >= 0)
    middle = midpoints(leaves.of(records.leaf[position[is_back]]))
    return middle, manifest.watch_labels.of(is_back)


def _epsilon(case: Case, profile: Profile, name: str) -> float | None:
    """The threshold of one feature: as asked for, as calibrated, or the paper's.

    Outside the paper's profile there is none without calibration: the distance of an honest
    run depends on the table, so a number taken from elsewhere would mean nothing.
    """
    options, calibration = case.options, case.manifest.calibration
    if name in options.epsilon_per_feature:
        return options.epsilon_per_feature[name]
    if options.epsilon is not None:
        return options.epsilon
    if profile is Profile.PAPER:
        # The paper's rule (§6.3): 1.1 times the honest maximum of one local run.
        own = case.manifest.paper_calibration
        return CALIBRATION_MARGIN * float(own.max()) if len(own) else PAPER_EPSILON
    return float(calibration.max()) if len(calibration) else None
