"""Measured evasion beside the exact probability, drawn."""

from pathlib import Path

import numpy as np

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREY, ORANGE, saved

__all__ = ["FIGURES", "draw"]

FIGURES = {"density": "How often blind dropping misses every sentinel, measured and exact"}


def draw(found: Result, out: Path) -> None:
    """Draw a point for each data set and share dropped, with its interval."""
    with saved(out, "density", (6, 3.8)) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, label="as stated")
        for band, colour, marker in (("fixed", ORANGE, "s"), ("adaptive", BLUE, "o")):
            rows = [r for r in found["rows"] if r["band"] == band]
            measured = np.array([r["measured"] for r in rows])
            ends = np.array([[r["low"], r["high"]] for r in rows]).reshape(-1, 2).T
            axes.errorbar(
                [r["exact"] for r in rows],
                measured,
                np.abs(ends - measured),
                fmt=marker,
                color=colour,
                ms=4,
                elinewidth=0.8,
                label=f"{band} band",
            )
        axes.set_xlabel("exact probability")
        axes.set_ylabel("measured share")
        axes.legend(frameon=False, fontsize=7)
