"""Experiment 1: who is caught by which layer, over data sets, adversaries and seeds.

A cell is one sample of one data set under one seed: prepared as in the paper and as today, given
to every provider, and judged by every layer. The verdicts of the profiles, of single layers and of
the alternatives follow from what the layers said. Seed 42 stands for the paper's single run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.core.cells import Params, Result
from experiments.core.owner import (
    ROWS,
    case_of,
    judge,
    measure,
    prepared,
    sample,
    top_features,
    touched,
)
from experiments.core.stats import wilson
from experiments.data import NAMES
from verix_anon.adversaries import under
from verix_anon.client.prepare import Prepared
from verix_anon.errors import MalformedDeliveryError
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Delivery
from verix_anon.protocol.providers import Provider
from verix_anon.provider.local import LocalProvider

__all__ = ["APPROACHES", "PAPER_SEED", "cells", "epsilons", "outcome", "run", "summarize"]

PLACE = 1
PAPER_SEED = 42
SEEDS = (PAPER_SEED, *range(1, 11))
BLIND_SEED = 99
"""The paper's seed for its blind trees."""
GLOBAL_EPSILON = 0.45
MARGIN = 1.1
AUDITED = 0.1

Said = Mapping[str, Any]


def cells(*, quick: bool) -> list[Params]:
    """Every data set under every seed."""
    names = ("adult", "magic") if quick else NAMES
    seeds, rows = ((PAPER_SEED, 1), 2_000) if quick else (SEEDS, ROWS)
    return [{"data": name, "seed": seed, "rows": rows} for seed in seeds for name in names]


def run(params: Params) -> Result:
    """Prepare one sample twice, as in the paper and as today, and judge every provider."""
    name, seed = str(params["data"]), int(params["seed"])
    table = sample(name, seed=seed, rows=int(params["rows"]))
    paper = prepared(name, table, seed=seed, paper=True, calibrate=1)
    today = prepared(name, table, seed=seed, paper=False)
    said = {}
    for called, provider in _providers(seed).items():
        said[called] = {
            **_judged_today(provider.anonymize(today.submission), today),
            **_judged_paper(provider.anonymize(paper.submission), paper, seed),
        }
    return {
        "planted": dict(paper.manifest.planted),
        "planted_today": dict(today.manifest.planted),
        "outsourced": paper.manifest.n_rows,
        "features": top_features(paper),
        "calibrated": MARGIN * float(paper.manifest.paper_calibration.max()),
        "providers": said,
    }


def _providers(seed: int) -> dict[str, Provider]:
    """The honest one and every adversary."""
    blind = BLIND_SEED if seed == PAPER_SEED else seed
    adversaries = {name: make(blind) for name, make in under(Rule.VARIANCE_REDUCTION).items()}
    return {"honest": LocalProvider(threads=1), **adversaries}


def _judged_today(delivery: Delivery, made: Prepared) -> Result:
    layers = judge(delivery, made)
    said: Result = {"full": dict(layers.full), "thin": dict(layers.thin)}
    if layers.full["replay"] == "pass":
        said["touched"] = touched(case_of(delivery, made, thin=False))
    return said


def _judged_paper(delivery: Delivery, made: Prepared, seed: int) -> Result:
    status = judge(delivery, made).thin
    return {
        "paper": {layer: status[layer] for layer in ("commitment", "sentinels", "twins")},
        "distance": measure(delivery, made, seed=seed),
        "re_execution": _re_executed(delivery, made),
        "sampled_records": _sampled_records(delivery, made, np.random.default_rng(seed)),
        "root": delivery.header.root.hex()[:8],
    }


def _re_executed(delivery: Delivery, made: Prepared) -> str:
    """Do it all again, and compare everything."""
    own = LocalProvider(threads=1).anonymize(made.submission)
    order = np.argsort(delivery.records.row, kind="stable")
    pairs: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = [
        (delivery.tree.column, own.tree.column),
        (delivery.tree.threshold, own.tree.threshold),
        (delivery.leaves.count, own.leaves.count),
        (delivery.leaves.minimum, own.leaves.minimum),
        (delivery.leaves.maximum, own.leaves.maximum),
        (delivery.records.row[order], own.records.row),
        (delivery.records.leaf[order], own.records.leaf),
        (delivery.records.tracker[order], own.records.tracker),
        (delivery.records.target[order], own.records.target),
    ]
    same = delivery.header.root == own.header.root
    return "pass" if same and all(np.array_equal(a, b) for a, b in pairs) else "fail"


def _sampled_records(delivery: Delivery, made: Prepared, rng: np.random.Generator) -> str:
    """Look up a tenth of the records: each back, unaltered, in its leaf and within its bounds."""
    sent, records = made.submission.records, delivery.records
    try:
        delivery.check(made.manifest.contract, n_rows=sent.n_rows)
    except MalformedDeliveryError:
        return "fail"
    some = rng.choice(sent.n_rows, round(AUDITED * sent.n_rows), replace=False)
    at = np.full(sent.n_rows, -1)
    at[records.row] = np.arange(records.row.size)
    if (at[some] < 0).any():
        return "fail"
    values, leaf = sent.values[:, some], records.leaf[at[some]]
    low, high = delivery.leaves.minimum[leaf].T, delivery.leaves.maximum[leaf].T
    good = (
        np.array_equal(records.tracker[at[some]], sent.tracker[some])
        and np.array_equal(records.target[at[some]], sent.target[some])
        and np.array_equal(delivery.tree.route(np.ascontiguousarray(values)), leaf)
        and bool(((low <= values) & (values <= high)).all())
    )
    return "pass" if good else "fail"


def _shap(said: Said, epsilon: float) -> bool:
    return any(distance > epsilon for distance in said.get("distance", []))


def _fails(said: Said, profile: str, *layers: str) -> bool:
    status = said[profile]
    return any(status[layer] == "fail" for layer in layers or status)


def outcome(said: Result, rule: str, epsilon: Result) -> bool:
    """Whether the paper's profile flags a delivery under one threshold."""
    layers = "fail" in said["paper"].values()
    return layers or any(d > epsilon[rule] for d in said["distance"])


def epsilons(run: Result) -> Result:
    """The three thresholds of one run."""
    return {
        "fixed": run["epsilon"],
        "calibrated": run["calibrated"],
        "circular": MARGIN * max(run["providers"]["honest"]["distance"]),
    }


TRAPS = ("sentinels", "twins")
APPROACHES: dict[str, Callable[[Said, float], bool]] = {
    "hash only (paper's layer 1)": lambda s, _: _fails(s, "paper", "commitment"),
    "traps only (2a + 2b)": lambda s, _: _fails(s, "paper", *TRAPS),
    "SHAP only, epsilon 0.45": lambda s, _: _shap(s, GLOBAL_EPSILON),
    "SHAP only, calibrated": lambda s, e: _shap(s, e),
    "layers 1 + 2": lambda s, _: _fails(s, "paper"),
    "10 % of the records looked up": lambda s, _: s["sampled_records"] == "fail",
    "full re-execution": lambda s, _: s["re_execution"] == "fail",
    "paper, epsilon 0.45": lambda s, _: _fails(s, "paper") or _shap(s, GLOBAL_EPSILON),
    "paper, calibrated": lambda s, e: _fails(s, "paper") or _shap(s, e),
    "thin": lambda s, _: _fails(s, "thin"),
    "full": lambda s, _: _fails(s, "full"),
}
"""Whether each approach flags a delivery, from what the layers said and the calibrated epsilon."""
LAYERS = ("commitment", "sentinels", "twins", "replay", "splits")


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """Rates with Wilson intervals, and the single run that stands beside the paper's."""
    providers = list(found[0][1]["providers"])
    rows = [
        _row(provider, approach, data, found)
        for provider in providers
        for approach in APPROACHES
        for data in ("all", *dict.fromkeys(str(p["data"]) for p, _ in found))
    ]
    return {
        "rows": rows,
        "layers": _layer_rates(providers, found),
        "sole": _sole_detectors(providers, found),
        "single_run": {
            str(p["data"]): {**r, "epsilon": GLOBAL_EPSILON} for p, r in found if _is_paper(p)
        },
        "trap_counts": _trap_counts(found),
        "seeds": len({str(p["seed"]) for p, _ in found}),
    }


def _is_paper(params: Params) -> bool:
    return params["seed"] == PAPER_SEED


def _row(provider: str, approach: str, data: str, found: Sequence[tuple[Params, Result]]) -> Result:
    """How often one approach flags one provider."""
    flagged = [
        APPROACHES[approach](r["providers"][provider], float(r["calibrated"]))
        for p, r in found
        if data in ("all", p["data"])
    ]
    low, high = wilson(sum(flagged), len(flagged))
    return {
        "provider": provider,
        "approach": approach,
        "data": data,
        "flagged": sum(flagged),
        "runs": len(flagged),
        "rate": sum(flagged) / len(flagged),
        "low": low,
        "high": high,
    }


def _layer_rates(providers: Sequence[str], found: Sequence[tuple[Params, Result]]) -> list[Result]:
    """How often each layer of `full` and `thin` fails, provider by provider."""
    rates = []
    for provider in providers:
        for profile in ("full", "thin"):
            said = [r["providers"][provider] for _, r in found]
            for layer in LAYERS:
                failed = sum(_fails(s, profile, layer) for s in said)
                low, high = wilson(failed, len(said))
                rates.append(
                    {
                        "provider": provider,
                        "profile": profile,
                        "layer": layer,
                        "failed": failed,
                        "runs": len(said),
                        "low": low,
                        "high": high,
                    }
                )
    return rates


def _sole_detectors(
    providers: Sequence[str], found: Sequence[tuple[Params, Result]]
) -> list[Result]:
    """How often one layer alone caught a provider."""
    sole = []
    for provider in providers:
        for profile in ("full", "thin"):
            said = [r["providers"][provider][profile] for _, r in found]
            alone = [
                next(layer for layer, status in s.items() if status == "fail")
                for s in said
                if list(s.values()).count("fail") == 1
            ]
            sole += [
                {
                    "provider": provider,
                    "profile": profile,
                    "layer": layer,
                    "runs": alone.count(layer),
                }
                for layer in LAYERS
                if layer in alone
            ]
    return sole


def _trap_counts(found: Sequence[tuple[Params, Result]]) -> list[Result]:
    """What was planted, in the run beside the paper's and over all seeds."""
    counts = []
    for data in dict.fromkeys(str(p["data"]) for p, _ in found):
        all_runs = [r for p, r in found if p["data"] == data]
        single = next((r for p, r in found if p["data"] == data and _is_paper(p)), all_runs[0])
        boundary = [int(r["planted"]["boundary"]) for r in all_runs]
        counts.append(
            {
                "data": data,
                "boundary": single["planted"]["boundary"],
                "sentinels": single["planted"]["sentinels"],
                "twins": single["planted"]["twins"],
                "outsourced": single["outsourced"],
                "boundary_least": min(boundary),
                "boundary_most": max(boundary),
                "sentinels_today": single["planted_today"]["sentinels"],
                "evasion": single["planted"]["evasion_after"],
                "evasion_today": single["planted_today"]["evasion_after"],
            }
        )
    return counts
