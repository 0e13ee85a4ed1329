"""What a release leaks although every class holds k people (spec §12).

A class where all share the target gives it away for all of them, and the target-driven rule makes
such classes by design; `importance-spread` does not look at the target, but the weights of a model
do. Two releases of one table cut the people in two ways: a person who is alone in the meeting of
two classes is singled out.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.core.cells import Params, Result
from experiments.core.owner import CODED, ROWS, K, coded, prepared, sample
from experiments.data import NAMES
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.client.verify import verify
from verix_anon.provider.local import LocalProvider

__all__ = ["cells", "run", "summarize"]

PLACE = 7
SEEDS = (1, 2, 3)
ALL = 10**9
LARGE = 10 * K
RULES = tuple(CODED)
"""The paper's rule, the default, and the default's rule weighed by a model"""
SHARES = ("homogeneous", "singled_out_by_two")
"""What has a standard error over the samples"""


def cells(*, quick: bool) -> list[Params]:
    """Samples under some seeds, and every table as a whole."""
    if quick:
        return [{"data": "magic", "seed": 1, "rows": 2_000, "rule": rule} for rule in RULES]
    wanted = [(seed, ROWS) for seed in SEEDS] + [(1, ALL)]
    return [
        {"data": name, "seed": seed, "rows": rows, "rule": rule}
        for name in NAMES
        for seed, rows in wanted
        for rule in RULES
    ]


def run(params: Params) -> Result:
    """Release one table twice under two salts, and measure each and both together."""
    name, seed = str(params["data"]), int(params["seed"])
    table = sample(name, seed=seed, rows=int(params["rows"]))
    target = table["target"].to_numpy()
    first, second = (
        _classes(name, table, salt, str(params["rule"])) for salt in (seed, seed + 1_000)
    )
    n_classes = int(first.max()) + 1
    size = np.bincount(first, minlength=n_classes)
    positive = np.bincount(first, weights=target, minlength=n_classes)
    is_pure = (positive == 0) | (positive == size)
    meeting = np.unique(np.column_stack([first, second]), axis=0, return_inverse=True)[1]
    together = np.bincount(meeting.reshape(-1))
    return {
        "records": int(target.size),
        "classes": n_classes,
        "homogeneous": float(size[is_pure].sum() / target.size),
        "homogeneous_positive": float(size[is_pure & (positive > 0)].sum() / target.sum()),
        "large_homogeneous": float(size[is_pure & (size >= LARGE)].sum() / target.size),
        "largest_homogeneous": int(size[is_pure].max(initial=0)),
        "singled_out_by_two": float((together == 1).sum() / target.size),
        "below_k_by_two": float(together[together < K].sum() / target.size),
    }


def _classes(name: str, table: pa.Table, seed: int, rule: str) -> npt.NDArray[np.int64]:
    """The class of every record of a release, as the public sees classes: by their values."""
    if rule == RULES[0]:
        made = prepared(name, table, seed=seed, paper=False)
    else:
        made = coded(name, table, seed=seed, under=rule)
    delivery = LocalProvider(threads=1).anonymize(made.submission)
    verdict = verify(delivery, made.manifest, submission=made.submission)
    options = ReleaseOptions(keep_order=True)
    released = release(delivery, made.manifest, verdict, table=table, options=options).table
    columns = [c for c in released.column_names if c != "target"]
    codes = np.zeros(table.num_rows, np.int64)
    for column in columns:
        number = released[column].combine_chunks().dictionary_encode().indices.to_numpy()
        codes = np.unique(codes * (int(number.max()) + 1) + number, return_inverse=True)[1]
    return codes


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """Per rule and data set: the mean over the samples with its error, and the whole table."""
    groups: dict[tuple[str, str, bool], list[Result]] = {}
    for p, r in found:
        groups.setdefault((str(p["rule"]), str(p["data"]), p["rows"] == ALL), []).append(r)
    rows = []
    for (rule, data, whole), group in sorted(groups.items(), key=lambda g: RULES.index(g[0][0])):
        means = {name: float(np.mean([float(r[name]) for r in group])) for name in group[0]}
        errors = {f"{name}_error": _error([r[name] for r in group]) for name in SHARES}
        rows.append(
            {"rule": rule, "data": data, "whole": whole, "runs": len(group), **means, **errors}
        )
    return {"rows": rows}


def _error(values: Sequence[float]) -> float | None:
    """The standard error of the mean, or None for a single value."""
    n = len(values)
    return float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
