"""Gaps between two arms, from runs made up by hand."""

import pytest

from experiments.core.cells import Params, Result
from experiments.core.inference import wilcoxon
from experiments.studies.utility import gaps


def made_up(gap: float, seeds: int) -> list[tuple[Params, Result]]:
    """Runs of two data sets where target-driven is better by `gap`, and more so at a later seed."""
    arms = sorted({arm for pair in gaps.CONTRASTS.values() for arm in pair})
    results: list[tuple[Params, Result]] = []
    for data in ("adult", "magic"):
        for seed in range(seeds):
            runs = []
            for k in (2, 5, 10):
                for method, traps, view in arms:
                    better = gap * (1 + seed + k / 100) * (method == "target-driven")
                    loss = 0.5 - better
                    runs.append(
                        {"k": k, "method": method, "traps": traps, "view": view, "ncp": 0.1,
                         "f1": 0.5 + better, "auc": 0.7 + better, "logloss": loss}
                    )  # fmt: skip
            raw = {"f1": 0.9, "auc": 0.9, "logloss": 0.1}
            results.append(({}, {"dataset": data, "seed": seed, "raw": raw, "runs": runs}))
    return results


def test_gaps_are_positive_where_the_first_is_better() -> None:
    found = gaps.summarize(made_up(0.01, seeds=3))
    for measure in ("f1", "auc", "logloss"):
        single = found["single"]["blind"][measure]["adult"]
        assert single["gap"] == pytest.approx(0.01 * (1 + (0.02 + 0.05 + 0.1) / 3))
        assert (single["positive"], single["n"]) == (3, 3)
        over_seeds = found["clustered"]["blind"][measure]["adult"]
        assert over_seeds["mean"] == pytest.approx(0.01 * (2 + (0.02 + 0.05 + 0.1) / 3))
        assert over_seeds["positive"] == over_seeds["seeds"] == 3
    assert found["clustered"]["means"]["f1"]["adult"]["mean"] == 0
    pooled = found["pooled"]["blind"]["f1"]
    differences = [0.01 * (1 + k / 100) for k in (2, 5, 10)] * 2
    assert (pooled["n"], pooled["positive"]) == (6, 6)
    assert pooled["p"] == pytest.approx(wilcoxon(differences)[1])
    assert found["across"]["blind"]["f1"]["positive"] == 2
