"""Providers that know what matters but do less than agreed, against a thin verification.

Without the submission only the witnesses' paths are checked, so a provider that deviates on a share
delta of the records' paths is missed with (1 - delta)^R. Many runs of the exact layers say whether
that is so under both rules and both weights, and that an honest provider is never accused.
"""

from collections.abc import Sequence

import numpy as np

from experiments.core.cells import Params, Result
from experiments.core.owner import CODED, case_of, coded, judge, prepared, sample, touched
from experiments.core.stats import wilson
from experiments.data import NAMES
from verix_anon.adversaries import Deviates, SplitsBlindlyBelow, StopsEarly, under
from verix_anon.client.prepare import Prepared
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.providers import Provider
from verix_anon.provider.local import LocalProvider

__all__ = ["cells", "run", "summarize"]

PLACE = 2
SEEDS = range(201, 216)
ROWS = 4_000
WITNESSES = 20
NAMED = (
    "shallow",
    "half-columns",
    "sampled-splits",
    "sampled-scores",
    "blind-below",
    "blind-above",
    "sampled-tree",
    "mean",
    "other-score",
    "cut-node",
    "no-weights",
    "mixed-weights",
    "no-value-below",
)


def cells(*, quick: bool) -> list[Params]:
    """Every data set under many seeds, none of which the detection study used."""
    names, seeds, rows = (("magic",), (201, 202), 2_000) if quick else (NAMES, SEEDS, ROWS)
    return [
        {"data": name, "seed": seed, "rows": rows, "rule": rule}
        for rule in CODED
        for seed in seeds
        for name in names
    ]


def _providers(seed: int, rule: Rule) -> dict[str, Provider]:
    """The cheaters by name, and finer ones that deviate on few paths."""
    known = under(rule)
    return {
        "honest": LocalProvider(threads=1),
        **{name: known[name](seed) for name in NAMED if name in known},
        "shallow, 7 levels": StopsEarly(7),
        "blind below level 6": SplitsBlindlyBelow(6, seed=seed),
        "deviates 0.2 %": Deviates(0.002, seed=seed),
        "deviates 1 %": Deviates(0.01, seed=seed),
        "deviates 5 %": Deviates(0.05, seed=seed),
    }


def run(params: Params) -> Result:
    """One submission, every cheater, in full and thin."""
    made = _prepared(params)
    found: Result = {}
    for called, provider in _providers(int(params["seed"]), made.manifest.contract.rule).items():
        delivery = provider.anonymize(made.submission)
        layers = judge(delivery, made)
        found[called] = {
            "full": "fail" in layers.full.values(),
            "thin": "fail" in layers.thin.values(),
            "touched": touched(case_of(delivery, made, thin=False)),
        }
    return found


def _prepared(params: Params) -> Prepared:
    """As the paper's owner sends it but for the root and the traps, or as today's does."""
    name, seed, rule = str(params["data"]), int(params["seed"]), str(params["rule"])
    table = sample(name, seed=seed, rows=int(params["rows"]))
    if CODED[rule][0] is Rule.VARIANCE_REDUCTION:
        return prepared(name, table, seed=seed, paper=False)
    return coded(name, table, seed=seed, under=rule)


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """Per rule and provider: how often it deviated and was caught, against what was stated."""
    rows = []
    for rule, called in dict.fromkeys((str(p["rule"]), name) for p, r in found for name in r):
        runs = [r[called] for p, r in found if p["rule"] == rule]
        # A cheater that happened to deliver the honest tree did nothing to be caught for.
        did = [r for r in runs if r["touched"] > 0] if called != "honest" else runs
        thin, full = (sum(r[profile] for r in did) for profile in ("thin", "full"))
        low, high = wilson(thin, len(did))
        stated = [1 - (1 - r["touched"]) ** WITNESSES for r in did]
        rows.append(
            {
                "rule": rule,
                "provider": called,
                "runs": len(runs),
                "deviated": sum(r["touched"] > 0 for r in runs),
                "full": full,
                "thin": thin,
                "low": low,
                "high": high,
                "touched": float(np.mean([r["touched"] for r in did])) if did else 0.0,
                "stated": float(np.mean(stated)) if did else 0.0,
            }
        )
    return {"rows": rows, "rows_each": found[0][0]["rows"], "witnesses": WITNESSES}
