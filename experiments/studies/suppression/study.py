"""Suppression: what leaving out the costliest records buys, for k alone and with l = 2.

Samples of seven public tables, k = 5, the journey with traps as a user gets it, equal weights.
Seven tenths of the rows are released as a model reads them; a model fitted to that is tested on the
others, raw. NCP is over the whole of each column, whatever is left out.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from experiments import data
from experiments.core import owner
from experiments.core.cells import Params, Result
from experiments.studies.representations.study import features
from verix_anon.client import models
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.verify.utility import measure
from verix_anon.protocol.contract import Kind
from verix_anon.provider.local import LocalProvider

__all__ = ["cells", "run", "summarize"]

PLACE = 15
TARGET = "target"
TEST_SHARE = 0.3
ROWS, SEEDS = 4_000, 2
SHARES = (0.0, 0.01, 0.02, 0.05)
ASKED = (1, 2)


def cells(*, quick: bool) -> list[Params]:
    """Each table, on some seeds, each with its own sample, split and secrets."""
    names, rows, seeds = (("adult",), 1_000, 1) if quick else (data.NAMES, ROWS, SEEDS)
    return [
        {"dataset": name, "rows": rows, "seed": seed}
        for name in names
        for seed in range(1, seeds + 1)
    ]


def run(params: Params) -> Result:
    """Every share of one delivery, with and without l = 2, and the raw rows beside them."""
    name, seed = str(params["dataset"]), int(params["seed"])
    table = owner.sample(name, seed=seed, rows=int(params["rows"]))
    kinds = dict.fromkeys(data.describe(name).nominal, Kind.CATEGORICAL)
    declared = Declared(target=TARGET, quasi="all", kinds=kinds, missing="impute")
    encoded = read_owner_table(table, declared)
    rng = np.random.default_rng([seed, table.num_rows, 5])
    is_test = np.zeros(table.num_rows, bool)
    is_test[rng.permutation(table.num_rows)[: round(TEST_SHARE * table.num_rows)]] = True
    train, test = table.filter(pa.array(~is_test)), table.filter(pa.array(is_test))
    of_train = encoded.labels.of(np.flatnonzero(~is_test))
    of_test = encoded.labels.of(np.flatnonzero(is_test))
    raw_test = features(test, encoded.quasi)

    def scored(seen: pa.Table, rows: Sequence[int]) -> float:
        labels = of_train.of(np.asarray(rows))
        return measure(of_test, models.predict(features(seen, encoded.quasi), labels, raw_test))[
            "auc"
        ]

    options = PrepareOptions(importance="uniform", witnesses=0, unsafe_seed=seed, threads=1)
    made = prepare(train, roles=declared, k=owner.K, options=options)
    delivery = LocalProvider(threads=1).anonymize(made.submission)
    runs: list[Result] = []
    for least in ASKED:
        for share in SHARES:
            wanted = ReleaseOptions(
                representation="model", suppress=share, l=least, keep_order=True, force=True
            )
            found = release(delivery, made.manifest, None, table=train, options=wanted)
            left_out = found.sheet.suppressed
            runs.append(
                {
                    "l": least,
                    "share": share,
                    "left_out": 0.0 if left_out is None else left_out.records / train.num_rows,
                    "target_moved": 0.0 if left_out is None else left_out.moved[TARGET],
                    "ncp": found.sheet.ncp,
                    "auc": scored(found.table, found.rows.tolist()),
                }
            )
    return {"dataset": name, "raw": scored(train, range(train.num_rows)), "runs": runs}


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """The means over the seeds by table, and how far NCP and AUC move, with its standard error."""
    results = [result for _, result in found]
    names = list(dict.fromkeys(result["dataset"] for result in results))
    rows, gains = [], []
    for i, first in enumerate(results[0]["runs"]):
        setting = {"l": first["l"], "share": first["share"]}
        for name in names:
            group = [r["runs"][i] for r in results if r["dataset"] == name]
            measures = ("left_out", "target_moved", "ncp", "auc")
            means = {m: float(np.mean([run[m] for run in group])) for m in measures}
            rows.append({"dataset": name, **setting, **means})
        # The first run with this l leaves nothing out.
        at = next(j for j, run in enumerate(results[0]["runs"]) if run["l"] == first["l"])
        for m in ("ncp", "auc"):
            moved = [r["runs"][i][m] - r["runs"][at][m] for r in results]
            error = float(np.std(moved, ddof=1) / len(moved) ** 0.5) if len(moved) > 1 else 0.0
            gains.append({**setting, "measure": m, "mean": float(np.mean(moved)), "error": error})
    return {
        "k": owner.K,
        "n_rows": max(int(params["rows"]) for params, _ in found),
        "seeds": len(results) // len(names),
        "raw": {n: float(np.mean([r["raw"] for r in results if r["dataset"] == n])) for n in names},
        "gains": gains,
        "rows": rows,
    }
