"""Traps against an informed provider: what it finds, drops at no risk, and learns.

The provider knows the protocol and the code, not the salt. With traps alone it drops what looks
like none; the watch records are ordinary ones, so every record it drops may be one of them. Where
the target is not sent, the traps that it finds tell something about it: see `uncertainty`.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from experiments.core.cells import Params, Result
from experiments.core.owner import ROWS, judge, prepared, sample
from experiments.core.stats import auc
from experiments.data import NAMES
from experiments.studies.traps import uncertainty
from verix_anon.adversaries import DropsUntrapped, trap_hunters

__all__ = ["cells", "run", "summarize"]

PLACE = 3
SEEDS = range(1, 6)
SHARES = (0.05, 0.4)
UNSENT = "unsent"
"""In place of a kind of traps: today's, in a coded submission without the target."""
KINDS = ("paper", "adaptive", UNSENT)


def cells(*, quick: bool) -> list[Params]:
    """Every data set under every seed, with the paper's traps and today's; and without a target."""
    names, seeds, rows = (("magic",), (1,), 2_000) if quick else (NAMES, SEEDS, ROWS)
    return [
        {"data": name, "seed": seed, "rows": rows, "traps": traps}
        for seed in seeds
        for name in names
        for traps in KINDS
    ]


def run(params: Params) -> Result:
    """Suspect every record of one submission, and compare with what the owner knows."""
    if params["traps"] == UNSENT:
        return uncertainty.measure(params)
    name, seed = str(params["data"]), int(params["seed"])
    table = sample(name, seed=seed, rows=int(params["rows"]))
    made = prepared(name, table, seed=seed, paper=params["traps"] == "paper")
    manifest, n_rows = made.manifest, made.manifest.n_rows
    found = trap_hunters.suspect(made.submission, seed=seed)
    is_sentinel = np.isin(np.arange(n_rows), manifest.sentinel_row)
    is_pair = np.isin(np.arange(n_rows), manifest.twin_row.ravel())
    # What is sought among records that are not duplicates: sentinels against all others.
    single = ~found.is_duplicate
    order = found.safest()
    attacks = {}
    for share in SHARES:
        delivery = DropsUntrapped(share, seed=seed).anonymize(made.submission)
        layers = judge(delivery, made)
        attacks[str(share)] = {
            "traps": "fail" in (layers.thin["sentinels"], layers.thin["twins"]),
            "thin": "fail" in layers.thin.values(),
            "full": "fail" in layers.full.values(),
        }
    return {
        "sentinels": int(is_sentinel.sum()),
        "pairs": len(manifest.twin_row),
        "twins_found": float(found.is_duplicate[manifest.twin_row].all(axis=1).mean()),
        "duplicates_that_are_twins": float(is_pair[found.is_duplicate].mean()),
        "sentinel_auc": _auc(-found.distance, is_sentinel, single),
        "free_of_traps": _free(order, is_sentinel | is_pair),
        "free_of_watch": _free(order, np.isin(np.arange(n_rows), manifest.watch_row)),
        "attacks": attacks,
    }


def _auc(
    score: npt.NDArray[np.float64],
    positive: npt.NDArray[np.bool_],
    among: npt.NDArray[np.bool_],
) -> float | None:
    if not (positive & among).any():
        return None
    return auc(score[~positive & among].tolist(), score[positive & among].tolist())


def _free(order: npt.NDArray[np.int64], is_marked: npt.NDArray[np.bool_]) -> float:
    """The share of the records, the least suspicious first, before the first marked one."""
    hits = np.flatnonzero(is_marked[order])
    return float(hits[0] / order.size) if hits.size else 1.0


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """Per data set and kind of traps: the mean over the seeds, and the range of what is free."""
    rows, unsent = [], []
    for data in dict.fromkeys(str(p["data"]) for p, _ in found):
        of = {t: [r for p, r in found if (p["data"], p["traps"]) == (data, t)] for t in KINDS}
        for traps in ("paper", "adaptive"):
            rows.append({"data": data, "traps": traps, "runs": len(of[traps]), **_means(of[traps])})
        unsent.append(uncertainty.summarize(data, of[UNSENT]))
    return {"rows": rows, "unsent": unsent}


def _means(group: Sequence[Result]) -> Result:
    def mean(name: str) -> float | None:
        values = [float(r[name]) for r in group if r[name] is not None]
        return float(np.mean(values)) if values else None

    names = (
        "sentinels",
        "twins_found",
        "duplicates_that_are_twins",
        "sentinel_auc",
        "free_of_traps",
        "free_of_watch",
    )
    means: Result = {name: mean(name) for name in names}
    means["free_of_traps_least"] = min(float(r["free_of_traps"]) for r in group)
    for share in SHARES:
        for seen in ("traps", "thin", "full"):
            hits = [r["attacks"][str(share)][seen] for r in group]
            means[f"caught_by_{seen}_at_{share}"] = sum(hits) / len(hits)
    return means
