"""The fingerprint's threshold: fixed, calibrated, per feature, by ROC (paper §6.3, §7.4).

Honest and blind deliveries of the same submissions, over seeds. No threshold is judged by the
runs it was set on: the calibrated one comes from a local run of the owner's, the others from the
seeds of the other half. Beside the SHAP distance stand the gap in held-out F1 that the paper
proposes as its successor, and the regret of the tree's splits (spec §13.6).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from experiments.core.cells import Params, Result
from experiments.core.owner import ROWS, case_of, measure, prepared, sample, top_features
from experiments.core.stats import auc, roc, wilson, youden
from experiments.data import NAMES
from verix_anon.adversaries import SplitsBlindly
from verix_anon.client.prepare import Prepared
from verix_anon.client.verify import utility
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.providers import Provider
from verix_anon.protocol.records import Records
from verix_anon.protocol.tree import Tree
from verix_anon.provider.local import LocalProvider

__all__ = ["STATISTICS", "cells", "regret", "run", "summarize"]

PLACE = 5
SEEDS = range(101, 121)
FIXED, MARGIN = 0.45, 1.1
LEAST, SIDE = 60, 0.15
STATISTICS = ("distance", "f1_gap", "regret")
RULES = ("fixed", "calibrated", "per feature", "youden")

Floats = npt.NDArray[np.float64]


def cells(*, quick: bool) -> list[Params]:
    """Every data set under every seed; other seeds than those of the detection study."""
    names, seeds, rows = (("magic",), range(101, 105), 2_000) if quick else (NAMES, SEEDS, ROWS)
    return [{"data": name, "seed": seed, "rows": rows} for seed in seeds for name in names]


def run(params: Params) -> Result:
    """One submission, delivered honestly and blindly, and what each statistic says."""
    name, seed = str(params["data"]), int(params["seed"])
    table = sample(name, seed=seed, rows=int(params["rows"]))
    made = prepared(name, table, seed=seed, paper=True)
    providers: dict[str, Provider] = {
        "honest": LocalProvider(threads=1),
        "blind": SplitsBlindly(seed),
    }
    return {
        "features": top_features(made),
        "calibration": _calibration(made, seed),
        **{
            who: _statistics(provider.anonymize(made.submission), made, seed)
            for who, provider in providers.items()
        },
    }


def _calibration(made: Prepared, seed: int) -> list[float]:
    """The distances of one honest local run on the genuine records, of the same top features.

    As the paper's rule has it, but without the traps, which the owner plants later, and on
    another sample than the one that is judged.
    """
    manifest, sent = made.manifest, made.submission.records
    genuine = np.flatnonzero(manifest.owner_row >= 0)
    alone = Submission(
        contract=made.submission.contract,
        records=Records(
            tracker=sent.tracker[genuine],
            values=np.ascontiguousarray(sent.values[:, genuine]),
            target=sent.target[genuine],
        ),
    )
    return measure(LocalProvider(threads=1).anonymize(alone), made, seed=seed + 1_000_000)


def _statistics(delivery: Delivery, made: Prepared, seed: int) -> Result:
    distance = measure(delivery, made, seed=seed)
    worth = utility.check(case_of(delivery, made, thin=True)).evidence
    raw, after = worth["raw"], worth["delivery"]
    assert isinstance(raw, dict)
    assert isinstance(after, dict)
    return {
        "distances": distance,
        "distance": max(distance),
        "f1_gap": raw["f1"] - after["f1"],
        "auc_gap": raw["auc"] - after["auc"],
        "regret": regret(delivery.tree, made.manifest.watch_values, _watched(made)),
    }


def _watched(made: Prepared) -> npt.NDArray[np.uint8]:
    return made.manifest.watch_target.astype(np.uint8)


def regret(tree: Tree, values: Floats, target: npt.NDArray[np.uint8]) -> float:
    """How much better other splits would tell the classes apart, on kept records (spec §13.6)."""
    found = []
    waiting = [(0, np.arange(target.size))]
    while waiting:
        node, rows = waiting.pop()
        labels = target[rows]
        if tree.column[node] < 0 or rows.size < LEAST or labels.min() == labels.max():
            continue
        part = values[:, rows]
        middle = (rows.size + 1) // 2 - 1
        medians = np.partition(part, middle, axis=1)[:, middle]
        best = _chi_squares(part <= medians[:, None], labels, side=SIDE).max(initial=0.0)
        left = part[tree.column[node]] <= tree.threshold[node]
        delivered = _chi_squares(left[None, :], labels, side=0.0)[0]
        found.append(max(0.0, np.sqrt(best) - np.sqrt(delivered)) ** 2)
        waiting += [(node + 1, rows[left]), (int(tree.right[node]), rows[~left])]
    return float(np.mean(found)) if found else 0.0


def _chi_squares(
    left: npt.NDArray[np.bool_], labels: npt.NDArray[np.uint8], *, side: float
) -> Floats:
    """The chi-square of each split with the labels, 0 where a side is too small."""
    n, positive = labels.size, int(labels.sum())
    n_left = left.sum(axis=1)
    hits = left[:, labels == 1].sum(axis=1)
    least = np.minimum(n_left, n - n_left)
    cross = (hits * n - n_left * positive).astype(np.float64)
    below = n_left * (n - n_left) * float(positive) * (n - positive)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = n * cross**2 / below
    return np.where((least > 0) & (least >= side * n), found, 0.0)


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """Per data set: AUC of each statistic, rates of each threshold rule, ROC curves."""
    rows, curves, distances = [], {}, {}
    for data in dict.fromkeys(str(p["data"]) for p, _ in found):
        group = [(int(p["seed"]), r) for p, r in found if p["data"] == data]
        honest, blind = ([r[who] for _, r in group] for who in ("honest", "blind"))
        curves[data] = {
            name: roc([h[name] for h in honest], [b[name] for b in blind]) for name in STATISTICS
        }
        distances[data] = {
            who: [r[who]["distance"] for _, r in group] for who in ("honest", "blind")
        }
        for name in (*STATISTICS, "auc_gap"):
            area = auc([h[name] for h in honest], [b[name] for b in blind])
            rows.append({"data": data, "what": "auc", "of": name, "value": area})
        for rule in RULES:
            named = {"data": data, "what": "rule", "of": rule}
            rows += [{**named, **rates} for rates in _rates(rule, group)]
    return {"rows": rows, "curves": _plain(curves), "distances": distances, "seeds": len(group)}


def _plain(curves: Result) -> Result:
    """Curves without their infinite ends, which JSON does not know."""
    return {
        data: {name: [[far, hits] for _, far, hits in points] for name, points in by_name.items()}
        for data, by_name in curves.items()
    }


def _rates(rule: str, group: Sequence[tuple[int, Result]]) -> list[Result]:
    """False alarms and detections of one rule, never judged by the runs that set it."""
    rates = []
    for who in ("honest", "blind"):
        flagged = [_flags(rule, r[who], r, _others(seed, group)) for seed, r in group]
        low, high = wilson(sum(flagged), len(flagged))
        rates.append(
            {
                "who": who,
                "flagged": sum(flagged),
                "runs": len(flagged),
                "value": sum(flagged) / len(flagged),
                "low": low,
                "high": high,
            }
        )
    return rates


def _others(seed: int, group: Sequence[tuple[int, Result]]) -> list[Result]:
    """The runs of the other half of the seeds."""
    return [r for other, r in group if other % 2 != seed % 2]


def _flags(rule: str, said: Result, run: Result, others: Sequence[Result]) -> bool:
    if rule == "fixed":
        return bool(said["distance"] > FIXED)
    if rule == "calibrated":
        return bool(said["distance"] > MARGIN * max(run["calibration"]))
    if rule == "per feature":
        pairs = zip(said["distances"], run["calibration"], strict=True)
        return any(d > MARGIN * c for d, c in pairs)
    honest, blind = ([o[who]["distance"] for o in others] for who in ("honest", "blind"))
    return bool(said["distance"] > youden(honest, blind))
