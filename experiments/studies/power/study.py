"""The power of the split audit: how small a deviation it still sees.

A provider takes the second-best split at a share f of the nodes. Seen with certainty by all
nodes; by a sampled audit and by R witnesses with a probability that is stated in advance, which
this study measures. Every draw of the sampled audit is the operating system's own.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from experiments.core.cells import Params, Result
from experiments.core.owner import case_of, prepared, sample, touched
from experiments.core.stats import wilson
from verix_anon.adversaries import Deviates
from verix_anon.client.prepare import Prepared
from verix_anon.client.prepare.expectations import find_witnesses
from verix_anon.client.verdict import Status
from verix_anon.client.verify import splits
from verix_anon.client.verify.case import Audit, Case, VerifyOptions

__all__ = ["FRACTIONS", "WITNESSES", "cells", "run", "summarize"]

PLACE = 6
NAMES = ("adult", "credit", "magic")
FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
WITNESSES = (5, 20, 100)
SEEDS = range(1, 5)
ROWS = 16_000
DRAWS, AUDITS = 400, 50


def cells(*, quick: bool) -> list[Params]:
    """Some data sets, every fraction, some seeds."""
    names, seeds, rows = (("magic",), (1,), 4_000) if quick else (NAMES, SEEDS, ROWS)
    fractions = (0.005, 0.05) if quick else FRACTIONS
    audits = 5 if quick else AUDITS
    return [
        {"data": name, "seed": seed, "rows": rows, "fraction": fraction, "audits": audits}
        for seed in seeds
        for name in names
        for fraction in fractions
    ]


def run(params: Params) -> Result:
    """One deviating delivery, audited in every form, many times where there is chance in it."""
    name, seed = str(params["data"]), int(params["seed"])
    table = sample(name, seed=seed, rows=int(params["rows"]))
    made = prepared(name, table, seed=seed, paper=False)
    delivery = Deviates(float(params["fraction"]), seed=seed).anonymize(made.submission)
    case = case_of(delivery, made, thin=False)
    deviations = splits.examine(case, np.arange(delivery.tree.n_nodes))
    sampled = replace(case, options=VerifyOptions(audit=Audit.SAMPLE, threads=1))
    departs = _departures(case_of(delivery, made, thin=True), made)
    rng = np.random.default_rng(seed)
    audits = int(params["audits"])
    return {
        "nodes": delivery.tree.n_nodes,
        "deviating": len(deviations),
        "touched": touched(case),
        # Witnesses are drawn from the watch records, of which this share convicts.
        "convicting": float(departs.mean()),
        "all": splits.check(case).status is Status.FAIL,
        "audits": audits,
        "sampled": sum(splits.check(sampled).status is Status.FAIL for _ in range(audits)),
        "draws": DRAWS,
        "witnesses": {str(n): _convictions(departs, n, rng) for n in WITNESSES},
    }


def _convictions(departs: npt.NDArray[np.bool_], n: int, rng: np.random.Generator) -> int:
    """How many of many draws of so many witnesses hold one that convicts."""
    drawn = (rng.choice(departs.size, n, replace=False) for _ in range(DRAWS))
    return sum(bool(departs[some].any()) for some in drawn)


def _departures(case: Case, made: Prepared) -> npt.NDArray[np.bool_]:
    """For every watch record: whether it would convict the delivery, as the only witness."""
    witnesses = find_witnesses(made.submission, made.manifest.watch_row, threads=1)
    alone = [replace(case, manifest=replace(made.manifest, witnesses=(w,))) for w in witnesses]
    shared = {
        name: getattr(case, name) for name in ("grouped", "node_spans", "records", "is_complete")
    }
    for one in alone:
        # Worked out once for all: they depend on the delivery alone.
        one.__dict__.update(shared)
    return np.array([splits.check(one).status is Status.FAIL for one in alone])


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """Per fraction: detections measured with their interval, and what was stated."""
    rows = []
    for fraction in dict.fromkeys(float(p["fraction"]) for p, _ in found):
        group = [r for p, r in found if p["fraction"] == fraction]
        deviating = [r for r in group if r["deviating"]]
        whole = [(int(r["all"]), 1, 1.0) for r in deviating]
        rows.append(_row(fraction, "all nodes", deviating, whole))
        audited = [(r["sampled"], r["audits"], _stated_sample(r)) for r in deviating]
        rows.append(_row(fraction, "sampled audit", deviating, audited))
        for n in WITNESSES:
            drawn = [
                (r["witnesses"][str(n)], r["draws"], 1 - (1 - r["convicting"]) ** n)
                for r in deviating
            ]
            rows.append(_row(fraction, f"{n} witnesses", deviating, drawn))
    return {"rows": rows, "without_deviation": sum(not r["deviating"] for _, r in found)}


def _stated_sample(result: Result) -> float:
    """What a sampled audit states of this delivery: both kinds of draws miss independently."""
    n = splits.sample_size(0.01, 0.01)
    share = result["deviating"] / result["nodes"]
    return float(1 - (1 - result["touched"]) ** n * (1 - share) ** n)


def _row(
    fraction: float, audit: str, group: Sequence[Result], said: Sequence[tuple[int, int, float]]
) -> Result:
    hits, tries = sum(s[0] for s in said), sum(s[1] for s in said)
    low, high = wilson(hits, tries)
    return {
        "fraction": fraction,
        "audit": audit,
        "deliveries": len(group),
        "touched": float(np.mean([r["touched"] for r in group])) if group else None,
        "tries": tries,
        "caught": hits,
        "rate": hits / tries if tries else None,
        "low": low,
        "high": high,
        "stated": float(np.mean([s[2] for s in said])) if said else None,
    }
