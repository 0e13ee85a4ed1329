"""Who is caught by which layer under every contract: rules, weights, and targets of every kind.

A cell is one sample of one data set under one seed, coded, with leaves of k records, given to
every provider that can misbehave under the rule, and judged with the submission and without.
"""

from collections.abc import Sequence

import numpy as np

from experiments.core.cells import Params, Result
from experiments.core.owner import CODED, case_of, coded, judge, sample, touched
from experiments.core.stats import wilson
from experiments.data import NAMES
from verix_anon.adversaries import under
from verix_anon.client.prepare import Prepared
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.providers import Provider
from verix_anon.provider.local import LocalProvider

__all__ = ["KINDS", "LAYERS", "cells", "run", "summarize"]

PLACE = 12
SEEDS = range(301, 306)
ROWS = 4_000
OTHERS = ("education", "hours-per-week", "")
"""Targets of Adult that `variance-reduction` cannot have; the last one is none."""
KINDS = {
    "target": "two classes",
    "education": "several classes",
    "hours-per-week": "a quantity",
    "": "none",
}
# The same as the other column of the pair, as a number.
REDUNDANT = {"education": "education-num"}
LAYERS = ("commitment", "sentinels", "twins", "replay", "splits")


def cells(*, quick: bool) -> list[Params]:
    """Every data set under every rule, and Adult with other targets, under every seed."""
    names, seeds, rows = (("magic",), SEEDS[:2], 1_000) if quick else (NAMES, SEEDS, ROWS)
    wanted = [(name, "target", rule) for rule in CODED for name in names]
    wanted += [("adult", target, "importance-spread") for target in OTHERS]
    return [
        {"data": name, "target": target, "rule": rule, "rows": rows, "seed": seed}
        for seed in seeds
        for name, target, rule in wanted
    ]


def run(params: Params) -> Result:
    """One submission, every provider, in full and thin."""
    seed = int(params["seed"])
    made = _prepared(params)
    honest = LocalProvider(threads=1)
    root = honest.anonymize(made.submission).header.root
    providers = {"honest": honest} | {
        name: make(seed) for name, make in under(made.manifest.contract.rule).items()
    }
    return {name: _judged(provider, made, root) for name, provider in providers.items()}


def _prepared(params: Params) -> Prepared:
    name, target, seed = str(params["data"]), str(params["target"]), int(params["seed"])
    table = sample(name, seed=seed, rows=int(params["rows"]))
    if target in REDUNDANT:
        table = table.drop_columns(REDUNDANT[target])
    return coded(name, table, seed=seed, under=str(params["rule"]), target=target or None)


def _judged(provider: Provider, made: Prepared, honest: Digest) -> Result:
    delivery = provider.anonymize(made.submission)
    layers = judge(delivery, made)
    said: Result = {
        "same": delivery.header.root == honest,
        "full": dict(layers.full),
        "thin": dict(layers.thin),
    }
    if layers.full["replay"] == "pass":
        said["touched"] = touched(case_of(delivery, made, thin=False))
    return said


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """By rule, kind of target and provider: how often it was caught, and by which layers."""
    parts: dict[tuple[str, str, str], list[Result]] = {}
    for params, said in found:
        for provider, judged in said.items():
            for kind in ("all", KINDS[str(params["target"])]):
                parts.setdefault((str(params["rule"]), kind, provider), []).append(judged)
    return {
        "rows": [_row(*key, runs) for key, runs in parts.items()],
        "rows_each": found[0][0]["rows"],
        "seeds": len({p["seed"] for p, _ in found}),
    }


def _row(rule: str, kind: str, provider: str, runs: Sequence[Result]) -> Result:
    # One that happened to deliver the honest tree did nothing to be caught for.
    did = runs if provider == "honest" else [r for r in runs if not r["same"]]
    row: Result = {"rule": rule, "target": kind, "provider": provider}
    row |= {"runs": len(runs), "deviated": sum(not r["same"] for r in runs)}
    for profile in ("full", "thin"):
        caught = sum("fail" in r[profile].values() for r in did)
        low, high = wilson(caught, len(did))
        row |= {profile: caught, f"{profile}_low": low, f"{profile}_high": high}
        for layer in LAYERS:
            row[f"{profile}_{layer}"] = sum(r[profile][layer] == "fail" for r in did)
    paths = [r["touched"] for r in did if "touched" in r]
    row["touched"] = float(np.mean(paths)) if paths else None
    return row
