"""Whether sentinels from XGBoost's random forest are as near to the boundary as scikit-learn's.

    python -m experiments.studies.traps.forests

Both forests see the same sample of the same records. Two judges that neither forest knows say how
near the chosen records lie to the boundary, as |P(class 1) - 1/2|: scikit-learn's forest of 500
trees on all records, and models of `uncertainty` that were fitted to other people. Prints a table
with the mean over the seeds, and with XGBoost's minus scikit-learn's with its 95 % interval.
"""

import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.core.inference import paired
from experiments.core.markdown import table
from experiments.core.owner import prepared, sample, two_classes
from experiments.data import NAMES, TITLES
from experiments.studies.traps.uncertainty import certainty
from verix_anon.client.models import single_precision
from verix_anon.client.prepare import traps
from verix_anon.client.prepare.trackers import Secret

__all__ = ["compare"]

SEEDS = range(1, 6)
FORESTS: dict[str, Callable[..., Callable[..., npt.NDArray[np.float64]]]] = {
    "scikit-learn": traps._papers_forest,
    "xgboost": traps._forest,
}

Floats = npt.NDArray[np.float64]


def compare(name: str, people: pa.Table, seed: int) -> dict[str, tuple[float, float, float]]:
    """By forest: records in the paper's band, and how near the sentinels are to the boundary."""
    made = prepared(name, people, seed=seed, paper=False)
    genuine = np.flatnonzero(made.manifest.owner_row >= 0)
    records = made.submission.records
    values, target = records.values[:, genuine], records.target[genuine]
    by_trees, by_others = _many_trees(values, target), certainty(values.T, target.astype(np.int64))
    found: dict[str, tuple[float, float, float]] = {}
    for forest, grow in FORESTS.items():
        # The plan of today's traps, whichever forest it asks.
        kept, traps._forest = traps._forest, grow
        try:
            secret = Secret(seed.to_bytes(32))
            planted = traps.plant(values, two_classes(target), traps.Plan(), secret)
        finally:
            traps._forest = kept
        of = planted.origin
        found[forest] = (planted.n_boundary, by_trees[of].mean(), by_others[of].mean())
    return found


def _many_trees(values: Floats, target: npt.NDArray[np.uint8]) -> Floats:
    from sklearn.ensemble import RandomForestClassifier

    rows = single_precision(values.T)
    judge = RandomForestClassifier(n_estimators=500, max_depth=5, random_state=0).fit(rows, target)
    certain: Floats = np.abs(judge.predict_proba(rows)[:, 1] - 0.5)
    return certain


def main() -> None:
    """Compare the forests on every public table."""
    lines = []
    for name in NAMES:
        runs = [compare(name, sample(name, seed=seed), seed) for seed in SEEDS]
        line = [TITLES[name]]
        for measure, digits in ((0, 0), (1, 3), (2, 3)):
            of = {forest: [run[forest][measure] for run in runs] for forest in FORESTS}
            line += [f"{np.mean(of[forest]):.{digits}f}" for forest in FORESTS]
            if measure:
                more = [x - s for x, s in zip(of["xgboost"], of["scikit-learn"], strict=True)]
                mean, low, high = paired(more)
                line.append(f"{mean:+.3f} ({low:+.3f} to {high:+.3f})")
        lines.append(line)
        print(*line, sep=" | ", file=sys.stderr, flush=True)
    head = ["data set", "band, scikit-learn", "band, xgboost"]
    for judge in ("500 trees", "others"):
        head += [f"{judge}: scikit-learn", "xgboost", "difference"]
    print("\n".join(table(head, lines)))


if __name__ == "__main__":
    main()
