"""What a thin verification catches of each cheater, beside what it states, drawn."""

from pathlib import Path

import numpy as np

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREEN, GREY, ORANGE, saved

__all__ = ["FIGURES", "draw"]

FIGURES = {"cheaters": "Cheaters caught by a thin verification, measured and stated, by rule"}


def draw(found: Result, out: Path) -> None:
    """Draw a point for each cheater and rule, with its interval."""
    with saved(out, "cheaters", (6, 3.8)) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, label="as stated")
        rules = list(dict.fromkeys(r["rule"] for r in found["rows"]))
        for rule, colour, marker in zip(rules, (BLUE, ORANGE, GREEN), "os^", strict=False):
            rows = [r for r in found["rows"] if r["rule"] == rule and r["deviated"]]
            measured = np.array([r["thin"] / r["deviated"] for r in rows])
            ends = np.array([[r["low"], r["high"]] for r in rows]).reshape(-1, 2).T
            axes.errorbar(
                [r["stated"] for r in rows],
                measured,
                np.abs(ends - measured),
                fmt=marker,
                color=colour,
                ms=4,
                elinewidth=0.8,
                label=rule,
            )
        axes.set_xlabel("stated in advance: caught with at least this probability")
        axes.set_ylabel("deliveries caught")
        axes.set_ylim(0, 1.03)
        axes.legend(frameon=False, fontsize=7)
