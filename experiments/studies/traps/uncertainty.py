"""What sentinels tell about a target that is not sent.

Sentinels are made where the owner's forest is uncertain of the target. A provider that finds them
learns that the people beside them are hard to predict. Close neighbours may be hard or easy to
predict anyway, so each figure stands beside that of ordinary people who are equally close.

A person's certainty is |P(class 1) - 1/2| by a model that was fitted to other people: 0 is a toss
of a coin, 1/2 is certain.
"""

import numpy as np
import numpy.typing as npt
import scipy

from experiments.core.cells import Params, Result
from experiments.core.inference import paired
from experiments.core.owner import coded, sample, two_classes
from verix_anon.client import models

__all__ = ["GROUPS", "certainty", "matched", "measure", "summarize", "suspicious"]

FOLDS = 4
SUSPECTS = 0.02
"""The share of the submission that the provider suspects: as many as may be sentinels."""
GROUPS = ("everybody", "sentinels", "matched", "suspects", "unplanted")

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def measure(params: Params) -> Result:
    """The certainty of the people beside sentinels, of those suspected, and of those like them."""
    name, seed = str(params["data"]), int(params["seed"])
    table = sample(name, seed=seed, rows=int(params["rows"]))
    made = coded(name, table, seed=seed, under="importance-spread")
    manifest, points = made.manifest, _points(made.submission.records.values)
    genuine = np.flatnonzero(manifest.owner_row >= 0)
    certain = certainty(points[genuine], table["target"].to_numpy()[manifest.owner_row[genuine]])
    # Each record by the person that it is, or that lies nearest to it, numbered as in `genuine`.
    person, distance = _nearest_person(points, genuine)
    is_sentinel = np.isin(np.arange(manifest.n_rows), manifest.sentinel_row)
    origins = person[is_sentinel]
    alike = matched(points[genuine], origins, distance[is_sentinel])
    n = round(SUSPECTS * manifest.n_rows)
    suspects = suspicious(points)[:n]
    beside = is_sentinel | np.isin(np.arange(manifest.n_rows), genuine[origins])
    return {
        "sentinels_planted": int(is_sentinel.sum()),
        "found": float(beside[suspects].mean()),
        "everybody": float(certain.mean()),
        "sentinels": float(certain[origins].mean()),
        "matched": float(certain[alike].mean()),
        "suspects": float(certain[person[suspects]].mean()),
        # What the same search gives where nothing was planted: what density alone tells.
        "unplanted": float(certain[suspicious(points[genuine])[:n]].mean()),
    }


def _points(values: Floats) -> Floats:
    """Records as points: positions in standard deviations, which is all that a provider sees."""
    unit = values.std(axis=1)
    return (values / np.where(unit > 0, unit, 1.0)[:, None]).T


def suspicious(points: Floats) -> Ints:
    """The records, from the one that looks most like half of a sentinel's pair.

    It is much closer to its nearest neighbour than to the next one. Exact duplicates are twins,
    and come last.
    """
    unique, inverse, count = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    near = _neighbours(unique, unique, 3)[0]
    ratio = (near[:, 1] / near[:, 2])[inverse.reshape(-1)]
    return np.lexsort((ratio, count[inverse.reshape(-1)] > 1))


def _neighbours(points: Floats, asked: Floats, n: int) -> tuple[Floats, Ints]:
    from sklearn.neighbors import NearestNeighbors

    distance, index = NearestNeighbors(n_neighbors=n).fit(points).kneighbors(asked)
    return distance, index


def _nearest_person(points: Floats, genuine: Ints) -> tuple[Ints, Floats]:
    distance, index = _neighbours(points[genuine], points, 1)
    return index[:, 0], distance[:, 0]


def matched(people: Floats, origins: Ints, distance: Floats) -> Ints:
    """As many people who are no origins, each as close to somebody as a sentinel to its origin."""
    others = np.setdiff1d(np.arange(len(people)), origins)
    own = _neighbours(people, people[others], 2)[0][:, 1]
    cost = np.abs(np.log1p(distance)[:, None] - np.log1p(own)[None, :])
    found: Ints = others[scipy.optimize.linear_sum_assignment(cost)[1]]
    return found


def certainty(people: Floats, target: Ints) -> Floats:
    """|P(class 1) - 1/2| of each person, by a model fitted to the others."""
    fold, found = np.arange(len(people)) % FOLDS, np.empty(len(people))
    for each in range(FOLDS):
        others = fold != each
        labels = two_classes(target[others].astype(np.uint8))
        found[~others] = models.predict(people[others], labels, people[~others])
    return np.abs(found - 0.5)


def summarize(data: str, group: list[Result]) -> Result:
    """The mean over the seeds, and how far suspects and sentinels lie below their controls."""
    names = ("sentinels_planted", "found", *GROUPS)
    row: Result = {"data": data, "runs": len(group)}
    row |= {name: float(np.mean([r[name] for r in group])) for name in names}
    for name, control in (("suspects", "unplanted"), ("sentinels", "matched")):
        less = [r[control] - r[name] for r in group]
        mean, low, high = paired(less) if len(group) > 1 else (less[0], less[0], less[0])
        row |= {f"{name}_less": mean, f"{name}_less_low": low, f"{name}_less_high": high}
    return row
