"""Power of the split audit, measured and stated, drawn."""

from pathlib import Path

import numpy as np

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREEN, GREY, ORANGE, saved

__all__ = ["FIGURES", "draw"]

FIGURES = {"power": "Power of the split audit, measured and stated"}


def draw(found: Result, out: Path) -> None:
    """Measured detection with its interval, and what was stated, by share of deviating nodes."""
    look = {
        "all nodes": ("black", "s"),
        "sampled audit": (GREEN, "D"),
        "100 witnesses": (BLUE, "o"),
        "20 witnesses": (ORANGE, "^"),
        "5 witnesses": (GREY, "v"),
    }
    with saved(out, "power", (6, 3.6)) as figure:
        axes = figure.subplots()
        for audit, (colour, marker) in look.items():
            rows = [r for r in found["rows"] if r["audit"] == audit and r["tries"]]
            if not rows:
                continue
            x = [100 * r["fraction"] for r in rows]
            measured = np.array([r["rate"] for r in rows])
            ends = np.abs(np.array([[r["low"], r["high"]] for r in rows]).T - measured)
            axes.errorbar(
                x, measured, ends, fmt=marker, color=colour, ms=4, elinewidth=0.8, label=audit
            )
            axes.plot(x, [r["stated"] for r in rows], color=colour, linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlabel("nodes with the second-best split, %")
        axes.set_ylabel("deliveries caught")
        axes.set_ylim(0, 1.03)
        axes.legend(title="points: measured\nlines: stated", frameon=False, fontsize=7)
