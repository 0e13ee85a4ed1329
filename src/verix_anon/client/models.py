"""Models of records: what they predict, and how they use each column, as SHAP values (paper §5.3).

XGBoost computes exact tree SHAP itself; both sides of a comparison use the same settings.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from verix_anon.arrays import Floats
from verix_anon.client.table.task import Labels, Task

TOP = 3
SETTINGS = {
    "max_depth": 6,
    "eta": 0.1,
    "seed": 0,
    "tree_method": "hist",
    # Two thousand rows are too few to share: on a busy machine threads that wait for each
    # other take ten times as long as one.
    "nthread": 1,
}
ROUNDS = 100
# Binary32 ends at 3.4e38, and forests sum a whole table in it to look for missing values.
LARGEST = 1e30


def single_precision(rows: Floats) -> npt.NDArray[np.float32]:
    """The records as models take them: binary32, with what is too large for it cut off."""
    return np.clip(rows, -LARGEST, LARGEST).astype(np.float32)


class _Scale(NamedTuple):
    """Where the labels lie: a model is told how many deviations they are from their mean.

    Trees of a squared error are the same at every scale, and binary32 holds these numbers
    whatever the quantity; so a SHAP value is in deviations, too.
    """

    greatest: float
    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Floats) -> "_Scale":
        # In parts of the greatest, where squares cannot overflow.
        greatest = float(np.abs(values).max(initial=0.0)) or 1.0
        parts = values / greatest
        return cls(greatest, float(parts.mean()), float(parts.std()) or 1.0)

    def narrowed(self, values: Floats) -> Floats:
        return (values / self.greatest - self.mean) / self.deviation

    def widened(self, values: Floats) -> Floats:
        return np.clip(values * self.deviation + self.mean, -1.0, 1.0) * self.greatest


def fit(rows: Floats, labels: Labels) -> object:
    """A model of 100 trees of depth 6, for each class if more than two; a record per row."""
    import xgboost

    assert labels.task is not Task.NONE
    target, objective = labels.values, dict[str, object](objective="binary:logistic")
    if labels.task is Task.QUANTITY:
        target, objective = _Scale.of(target).narrowed(target), {"objective": "reg:squarederror"}
    elif labels.n_outputs > 1:
        # The number of classes is given, so that one may be missing here.
        objective = {"objective": "multi:softprob", "num_class": labels.n_outputs}
    data = xgboost.DMatrix(single_precision(rows), label=target)
    return xgboost.train(SETTINGS | objective, data, num_boost_round=ROUNDS)


def contributions(model: object, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Exact SHAP values of some records, (n_rows, n_outputs, n_columns)."""
    import xgboost

    assert isinstance(model, xgboost.Booster)
    # Unlike fitting, this is one parallel loop over the rows: every core helps.
    model.set_param({"nthread": 0})
    found = model.predict(xgboost.DMatrix(rows), pred_contribs=True)
    # The last column is the bias.
    return np.asarray(found.reshape(len(rows), -1, rows.shape[1] + 1)[:, :, :-1])


def shap_values(rows: Floats, labels: Labels) -> Floats:
    """SHAP values, (n_rows, n_outputs, n_columns), of a model fitted to these very rows."""
    # Records of one leaf have the same midpoints, and equal records the same SHAP values: on
    # 8,000 records this asks for a third of them.
    distinct, inverse = np.unique(single_precision(rows), axis=0, return_inverse=True)
    found = contributions(fit(rows, labels), distinct)
    return found[inverse.reshape(-1)].astype(np.float64)


def top_features(values: Floats, n: int = TOP) -> list[int]:
    """The columns with the greatest mean absolute SHAP value, the first among equals."""
    order = np.argsort(-np.abs(values).mean(axis=(0, 1)), kind="stable")
    return [int(column) for column in order[:n]]


def wasserstein(a: Floats, b: Floats) -> float:
    """The 1-Wasserstein distance of two samples: the area between their distributions."""
    points = np.sort(np.concatenate([a, b]))
    widths = np.diff(points)
    below_a = np.searchsorted(np.sort(a), points[:-1], side="right") / a.size
    below_b = np.searchsorted(np.sort(b), points[:-1], side="right") / b.size
    return float(np.abs(below_a - below_b) @ widths)


def moved(baseline: Floats, observed: Floats, features: Sequence[int]) -> list[tuple[float, int]]:
    """How far each top feature moved in the output where it moved farthest, and which that is.

    `baseline` holds only the top features.
    """
    found = []
    for i, feature in enumerate(features):
        apart = [
            wasserstein(baseline[:, output, i], observed[:, output, feature])
            for output in range(baseline.shape[1])
        ]
        found.append((max(apart), int(np.argmax(apart))))
    return found


def distances(baseline: Floats, observed: Floats, features: Sequence[int]) -> list[float]:
    """The distance of each top feature, the greatest over the outputs."""
    return [distance for distance, _ in moved(baseline, observed, features)]


def predict(rows: Floats, labels: Labels, unseen: Floats) -> Floats:
    """What a model fitted to others says of unseen records.

    P(class 1) of two classes, the probability of each of more, or the quantity.
    """
    import xgboost

    model = fit(rows, labels)
    assert isinstance(model, xgboost.Booster)
    found = model.predict(xgboost.DMatrix(single_precision(unseen))).astype(np.float64)
    if labels.task is Task.QUANTITY:
        return _Scale.of(labels.values).widened(found)
    return np.asarray(found)
