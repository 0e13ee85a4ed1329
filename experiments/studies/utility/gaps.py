"""What the cells of `utility` add up to: gaps between two arms, and what they are worth.

A gap is positive where the first arm is the better one, whatever the measure.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from experiments.core.cells import Params, Result
from experiments.core.inference import (
    benjamini_hochberg,
    bootstrap_mean,
    clustered,
    cohens_d,
    wilcoxon,
)

__all__ = ["CONTRASTS", "MEASURES", "summarize"]

Arm = tuple[str, str, str]
Floats = npt.NDArray[np.float64]

MEASURES = {
    "f1": 1,
    "auc": 1,
    "logloss": -1,
    "distance": -1,
    "generalized_f1": 1,
    "generalized_auc": 1,
    "ncp": -1,
}
"""1 where more is better, -1 where less is."""

_DRIVEN: Arm = ("target-driven", "paper", "midpoint")
_BARE: Arm = ("target-driven", "none", "midpoint")
CONTRASTS: dict[str, tuple[Arm, Arm]] = {
    "blind": (_DRIVEN, ("blind", "paper", "midpoint")),
    "strict": (_DRIVEN, ("blind, strict", "paper", "midpoint")),
    "blind, no traps": (_BARE, ("blind", "none", "midpoint")),
    "strict, no traps": (_BARE, ("blind, strict", "none", "midpoint")),
    "blind, means": (("target-driven", "none", "mean"), ("blind", "none", "mean")),
    "means": (("target-driven", "none", "mean"), _BARE),
    "means of blind": (("blind", "none", "mean"), ("blind", "none", "midpoint")),
    "without traps": (_BARE, _DRIVEN),
    "ours": (("importance-spread", "adaptive", "midpoint"), _DRIVEN),
    "ours, weighed": (("importance-spread, weighed by a model", "adaptive", "midpoint"), _DRIVEN),
}
"""The first arm against the second: (method, traps, what the model sees)."""


class Runs(NamedTuple):
    """All runs of one data set: seeds by k, for each arm and measure."""

    seeds: list[int]
    ks: list[int]
    values: dict[tuple[Arm, str], Floats]


def summarize(results: Sequence[tuple[Params, Result]]) -> Result:
    """Gaps by data set: on the first split as the paper tests them, and over all seeds."""
    found = [result for _, result in results]
    names = list(dict.fromkeys(str(result["dataset"]) for result in found))
    runs = {name: _collect([r for r in found if r["dataset"] == name]) for name in names}
    return {
        "datasets": names,
        "seeds": runs[names[0]].seeds,
        "ks": runs[names[0]].ks,
        "raw": _raw(found),
        "sweep": {name: _sweep(of) for name, of in runs.items()},
        "single": _each(runs, _single, "p"),
        "pooled": _together(runs, _pooled),
        "clustered": _each(runs, _over_seeds, "p"),
        "across": _together(runs, _across),
        "rows": [_rounded(row) for result in found for row in _rows(result)],
    }


def _rows(result: Result) -> list[Result]:
    of = {"dataset": result["dataset"], "seed": result["seed"]}
    runs, raw = result["runs"], result["raw"]
    return [{**of, "method": "raw", **raw}, *({**of, **run} for run in runs)]


def _rounded(row: Result) -> Result:
    return {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()}


def _collect(results: Sequence[Result]) -> Runs:
    """The runs of one data set as matrices with a row per seed and a column per k."""
    results = sorted(results, key=lambda result: int(result["seed"]))
    first = results[0]["runs"]
    ks = list(dict.fromkeys(int(run["k"]) for run in first))
    found: dict[tuple[Arm, str], list[list[float]]] = {}
    for result in results:
        runs = result["runs"]
        of_seed: dict[tuple[Arm, str], list[float]] = {}
        for run in runs:
            arm = (run["method"], run["traps"], run["view"])
            for measure in MEASURES:
                if measure in run:
                    of_seed.setdefault((arm, measure), []).append(run[measure])
        for key, values in of_seed.items():
            found.setdefault(key, []).append(values)
    seeds = [int(result["seed"]) for result in results]
    return Runs(seeds, ks, {key: np.array(values) for key, values in found.items()})


def _gap(runs: Runs, contrast: str, measure: str) -> Floats | None:
    """How much better the first arm is, seeds by k; None where it was not measured."""
    first, second = CONTRASTS[contrast]
    a, b = runs.values.get((first, measure)), runs.values.get((second, measure))
    return None if a is None or b is None else MEASURES[measure] * (a - b)


def _single(runs: Runs, contrast: str, measure: str) -> Result | None:
    """The first seed alone, its values of k taken for independent, as the paper does."""
    gaps = _gap(runs, contrast, measure)
    if gaps is None:
        return None
    first, second = CONTRASTS[contrast]
    gap = gaps[0].tolist()
    w, p = wilcoxon(gap)
    d, d_low, d_high = cohens_d(gap)
    low, high = bootstrap_mean(gap)
    return {
        "first": float(runs.values[first, measure][0].mean()),
        "second": float(runs.values[second, measure][0].mean()),
        "gap": float(np.mean(gap)),
        "low": low,
        "high": high,
        "w": w,
        "p": p,
        "d": d,
        "d_low": d_low,
        "d_high": d_high,
        "positive": sum(g > 0 for g in gap),
        "ties": sum(g == 0 for g in gap),
        "n": len(gap),
    }


def _over_seeds(runs: Runs, contrast: str, measure: str) -> Result | None:
    """All seeds, each counting once."""
    gaps = _gap(runs, contrast, measure)
    if gaps is None or len(gaps) < 2:
        return None
    first, second = CONTRASTS[contrast]
    return {
        "first": float(runs.values[first, measure].mean()),
        "second": float(runs.values[second, measure].mean()),
        **clustered(gaps).to_dict(),
    }


def _each(
    runs: dict[str, Runs], analyse: Callable[[Runs, str, str], Result | None], p: str
) -> Result:
    """One analysis of every contrast and measure, its p-values adjusted over the data sets."""
    found: Result = {}
    for contrast in CONTRASTS:
        by_measure: Result = {}
        for measure in MEASURES:
            made = {name: analyse(of, contrast, measure) for name, of in runs.items()}
            of_data = {name: one for name, one in made.items() if one is not None}
            if not of_data:
                continue
            adjusted = benjamini_hochberg([float(one[p]) for one in of_data.values()])
            for one, value in zip(of_data.values(), adjusted, strict=True):
                one["p_adjusted"] = value
            by_measure[measure] = of_data
        found[contrast] = by_measure
    return found


def _together(runs: dict[str, Runs], analyse: Callable[[Sequence[Floats]], Result]) -> Result:
    """One analysis of every contrast and measure over the gaps of all data sets."""
    found: Result = {}
    for contrast in CONTRASTS:
        found[contrast] = {}
        for measure in MEASURES:
            gaps = [g for of in runs.values() if (g := _gap(of, contrast, measure)) is not None]
            if gaps:
                found[contrast][measure] = analyse(gaps)
    return found


def _pooled(gaps: Sequence[Floats]) -> Result:
    """The paper's pooled test: the first seed's pairs of all data sets in one."""
    pairs = np.concatenate([gap[0] for gap in gaps])
    w, p = wilcoxon(pairs.tolist())
    positive, ties = int((pairs > 0).sum()), int((pairs == 0).sum())
    return {"n": pairs.size, "positive": positive, "ties": ties, "w": w, "p": p}


def _across(gaps: Sequence[Floats]) -> Result:
    """The data set as the unit: whether the mean gap of a data set tends to be above 0."""
    means = [float(gap.mean()) for gap in gaps]
    return {
        "mean": float(np.mean(means)),
        "positive": sum(mean > 0 for mean in means),
        "n": len(means),
        "p": wilcoxon(means)[1],
    }


def _sweep(runs: Runs) -> Result:
    """By k: the first seed's values and the mean and spread over all, for the figure."""
    found: Result = {}
    for (arm, measure), values in runs.values.items():
        of_arm = found.setdefault(", ".join(arm), {})
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
        of_arm[measure] = {
            "first": values[0].tolist(),
            "mean": values.mean(axis=0).tolist(),
            "sd": spread.tolist(),
        }
    return found


def _raw(results: Sequence[Result]) -> Result:
    """What a model trained on the raw records reaches, by data set, over all seeds."""
    found: Result = {}
    for name in dict.fromkeys(str(result["dataset"]) for result in results):
        of = [result["raw"] for result in results if result["dataset"] == name]
        found[name] = {
            measure: float(np.mean([one[measure] for one in of]))
            for measure in ("f1", "auc", "logloss")
        }
    return found
