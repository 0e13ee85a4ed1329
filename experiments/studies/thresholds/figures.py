"""Honest against blind deliveries, drawn."""

from pathlib import Path

import numpy as np

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREEN, GREY, ORANGE, saved
from experiments.data import TITLES

__all__ = ["FIGURES", "draw"]

FIGURES = {
    "roc": "Honest against blind: SHAP distance, F1 gap and regret",
    "distances": "SHAP distances of honest and blind deliveries over seeds",
}


def draw(found: Result, out: Path) -> None:
    """Draw what the study found."""
    _roc(found, out)
    _distributions(found, out)


def _roc(found: Result, out: Path) -> None:
    names = list(found["curves"])
    look = {"distance": (ORANGE, "-"), "f1_gap": (GREEN, ":"), "regret": (BLUE, "--")}
    label = {"distance": "SHAP distance", "f1_gap": "F1 gap", "regret": "regret of splits"}
    n_columns = min(4, len(names))
    n_lines = -(-len(names) // n_columns)
    with saved(out, "roc", (7.5, 2.1 * n_lines + 0.4)) as figure:
        grid = figure.subplots(n_lines, n_columns, squeeze=False, sharex=True, sharey=True).ravel()
        for axes, data in zip(grid, names, strict=False):
            for name, (colour, line) in look.items():
                points = np.array(found["curves"][data][name])
                axes.plot(points[:, 0], points[:, 1], line, color=colour, label=label[name])
            axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.5)
            axes.set_title(TITLES[data], size=8)
            axes.set_aspect("equal")
        for axes in grid[len(names) :]:
            axes.set_visible(False)
        figure.supxlabel("false alarms on honest deliveries")
        figure.supylabel("blind deliveries caught")
        figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)


def _distributions(found: Result, out: Path) -> None:
    """Honest and blind distances over the seeds."""
    names = list(found["distances"])
    with saved(out, "distances", (7.5, 3.2)) as figure:
        axes = figure.subplots()
        for offset, who, colour, marker in (
            (-0.15, "honest", BLUE, "o"),
            (0.15, "blind", ORANGE, "x"),
        ):
            for i, data in enumerate(names):
                values = found["distances"][data][who]
                spread = np.linspace(-0.1, 0.1, len(values))
                label = who if i == 0 else None
                axes.plot(i + offset + spread, values, marker, color=colour, ms=3, label=label)
        axes.axhline(0.45, color=GREY, linestyle="--", label="fixed epsilon 0.45")
        axes.set_xticks(range(len(names)), [TITLES[n] for n in names], rotation=20)
        axes.set_ylabel("greatest SHAP distance")
        axes.legend(frameon=False, fontsize=7)
