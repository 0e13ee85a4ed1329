"""Calibrate the fingerprint: how far honest local runs move it (spec §9, paper §6.3)."""

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.client import models
from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.table.task import Labels, Task
from verix_anon.protocol import rules
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.table import Records

__all__ = ["SAMPLE_ROWS", "honest_distances", "honest_midpoints"]

SAMPLE_ROWS = 20_000
FINGERPRINT_ROWS = 2_000


def honest_distances(
    records: Records,
    row: Ints,
    labels: Labels,
    contract: Contract,
    *,
    secret: Secret,
    options: PrepareOptions,
) -> tuple[Floats, Floats]:
    """The top features' distances of honest runs on samples, (runs, top features).

    First between the same records before and after, as `full` and `thin` compare; then, of the
    first run alone, between independent samples, as the paper does. None without a target.
    `row` says where each of the owner's records is among those sent.
    """
    rng = secret.generator("calibration")
    found, apart = [], []
    for run in range(options.calibrate if labels.task is not Task.NONE else 0):
        sample = rng.choice(row.size, min(row.size, SAMPLE_ROWS), replace=False)
        some = rng.choice(sample.size, min(sample.size, FINGERPRINT_ROWS), replace=False)
        raw, own = records.values[:, row[sample]], labels.of(sample)
        middle = honest_midpoints(raw, records.target[row[sample]], contract)
        before = models.shap_values(raw[:, some].T, own.of(some))
        after = models.shap_values(middle[:, some].T, own.of(some))
        top = models.top_features(before)
        found.append(models.distances(before[:, :, top], after, top))
        if run == 0:
            others = rng.choice(sample.size, some.size, replace=False)
            after = models.shap_values(middle[:, others].T, own.of(others))
            apart.append(models.distances(before[:, :, top], after, top))
        options.progress("calibrate", run + 1, options.calibrate)
    return _table(found), _table(apart)


def _table(distances: list[list[float]]) -> Floats:
    return np.array(distances, np.float64) if distances else np.empty((0, models.TOP))


def honest_midpoints(values: Floats, target: Bytes, contract: Contract) -> Floats:
    """What an honest provider would publish of these records, as midpoints."""
    columns = values.tolist()
    top = rules.grow(
        columns,
        rules.criterion(contract, target.tolist()),
        min_leaf=contract.min_leaf,
        max_depth=contract.max_depth,
    )
    middle = np.empty_like(values)
    for rows in rules.flatten(top)[1]:
        chosen = np.array(rows)
        part = values[:, chosen]
        middle[:, chosen] = (part.min(axis=1) / 2 + part.max(axis=1) / 2)[:, None]
    return middle
