"""Sentinel density: how often blind dropping misses every sentinel, against the formula.

The paper's formula draws with replacement; records are dropped without. Both are shown beside
what happened over many drops, with the fixed band and with the adaptive one (paper §7.2).
"""

from collections.abc import Sequence

import numpy as np
import scipy

from experiments.core.cells import Params, Result
from experiments.core.owner import ROWS, prepared, sample
from experiments.core.stats import wilson
from experiments.data import NAMES
from verix_anon.client.evidence import evasion_probability

__all__ = ["cells", "run", "summarize"]

PLACE = 4
SEEDS = range(1, 11)
DROPS = (0.01, 0.05, 0.2)
TRIES = 2_000


def cells(*, quick: bool) -> list[Params]:
    """Every data set under some seeds, with the fixed band and the adaptive one."""
    names, seeds = (("magic",), (1,)) if quick else (NAMES, SEEDS)
    rows, tries = (2_000, 200) if quick else (ROWS, TRIES)
    return [
        {"data": name, "seed": seed, "rows": rows, "band": band, "tries": tries}
        for name in names
        for band in ("fixed", "adaptive")
        for seed in seeds
    ]


def run(params: Params) -> Result:
    """Drop records blindly many times, and see whether a sentinel was among them."""
    name, seed, tries = str(params["data"]), int(params["seed"]), int(params["tries"])
    table = sample(name, seed=seed, rows=int(params["rows"]))
    manifest = prepared(name, table, seed=seed, paper=params["band"] == "fixed").manifest
    n_rows, sentinels = manifest.n_rows, manifest.sentinel_row
    # Tables with as many records and sentinels would share their draws under the seed alone.
    rng = np.random.default_rng([seed, NAMES.index(name), params["band"] == "adaptive"])
    drops = {}
    for share in DROPS:
        n = round(share * n_rows)
        evaded = 0
        for _ in range(tries):
            is_dropped = np.zeros(n_rows, bool)
            is_dropped[rng.choice(n_rows, n, replace=False, shuffle=False)] = True
            evaded += not is_dropped[sentinels].any()
        drops[str(share)] = {
            "evaded": evaded,
            "formula": evasion_probability(sentinels.size, n_rows, share),
            "exact": float(scipy.stats.hypergeom.pmf(0, n_rows, sentinels.size, n)),
        }
    return {"sentinels": int(sentinels.size), "rows": n_rows, "drops": drops}


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """Per data set, band and drop: measured with its interval, formula, exact."""
    rows = []
    groups = dict.fromkeys((str(p["data"]), str(p["band"])) for p, _ in found)
    for data, band in groups:
        group = [(p, r) for p, r in found if (p["data"], p["band"]) == (data, band)]
        for share in map(str, DROPS):
            drops = [r["drops"][share] for _, r in group]
            evaded = sum(int(d["evaded"]) for d in drops)
            tries = sum(int(p["tries"]) for p, _ in group)
            low, high = wilson(evaded, tries)
            rows.append(
                {
                    "data": data,
                    "band": band,
                    "dropped": float(share),
                    "sentinels_least": min(int(r["sentinels"]) for _, r in group),
                    "sentinels_most": max(int(r["sentinels"]) for _, r in group),
                    "tries": tries,
                    "measured": evaded / tries,
                    "low": low,
                    "high": high,
                    "formula": float(np.mean([d["formula"] for d in drops])),
                    "exact": float(np.mean([d["exact"] for d in drops])),
                }
            )
    return {"rows": rows}
