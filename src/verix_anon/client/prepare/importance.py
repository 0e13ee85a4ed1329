"""Weights of the rule `importance-spread`: how much each column tells about the target (spec §4.2).

They stand in the contract, so nobody has to compute them again.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from verix_anon.arrays import Floats
from verix_anon.client import models
from verix_anon.client.prepare.options import Importance
from verix_anon.client.prepare.parts import Values
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.table.task import Labels, Task
from verix_anon.errors import TableError
from verix_anon.protocol.contract import MAX_SCORE

__all__ = ["weights"]

SAMPLE_ROWS = 20_000
SHAP_ROWS = 2_000
"""Of how many of them SHAP values are taken: enough for a mean, and ten times as fast as all."""
LEAST = 1 / 8


def weights(
    positions: Sequence[Values] | Floats,
    labels: Labels,
    sizes: Sequence[int],
    *,
    importance: Importance | Sequence[float],
    secret: Secret,
) -> tuple[int, ...]:
    """The weight of every column; `positions` are those of the genuine records, by column."""
    if importance is Importance.UNIFORM:
        shares = [1.0] * len(sizes)
    elif importance is Importance.AUTO:
        shares = _by_model(positions, labels, secret)
    else:
        shares = list(importance)
        if not all(0 < share <= 1 for share in shares):
            raise TableError("an importance must be greater than 0 and at most 1")
    # The quotient is exact: a binary64 is a fraction of whole numbers.
    return tuple(
        max(1, MAX_SCORE * Fraction(share) // max(1, size - 1))
        for share, size in zip(shares, sizes, strict=True)
    )


def _by_model(positions: Sequence[Values] | Floats, labels: Labels, secret: Secret) -> list[float]:
    """The root of each column's mean absolute SHAP value, the greatest scaled to 1."""
    if labels.task is Task.NONE:
        raise TableError("without a target the importance is uniform, or given")
    n_rows = labels.values.size
    some = secret.generator("importance").permutation(n_rows)[:SAMPLE_ROWS]
    rows = np.array([column[some] for column in positions], np.float64).T
    mean = models.importance(rows, labels.of(some), rows[:SHAP_ROWS])
    if not mean.any():
        return [1.0] * mean.size
    return [max(LEAST, float(share)) for share in np.sqrt(mean / mean.max())]
