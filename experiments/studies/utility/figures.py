"""The figures on utility: measures against k, and gaps over seeds."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREEN, GREY, ORANGE, saved
from experiments.data import TITLES
from experiments.studies.utility import published

__all__ = ["FIGURES", "draw"]

FIGURES = {
    "utility-f1": "F1 against k, test records raw: mean and standard deviation over seeds",
    "utility-generalized": "F1 against k, test records generalized: mean and standard deviation",
    "utility-auc": "AUC against k, test records raw: mean and standard deviation over seeds",
    "utility-gaps": "How much better target-driven is than blind, 95 % intervals over seeds",
}
ARMS = {
    "target-driven, paper, midpoint": ("target-driven", (BLUE, "-", "o")),
    "blind, paper, midpoint": ("blind", (ORANGE, "--", "s")),
    "blind, strict, paper, midpoint": ("blind, strict", ("#666666", ":", "^")),
    "importance-spread, adaptive, midpoint": ("importance-spread", (GREEN, "-.", "D")),
}
"""The label and the look of each arm that is drawn"""
GAPS = {
    "f1": "F1",
    "generalized_f1": "F1, test generalized",
    "auc": "AUC",
    "logloss": "log-loss",
    "distance": "SHAP distance",
}


def draw(found: Result, out: Path) -> None:
    """Draw what the study found."""
    for name, measure in (
        ("utility-f1", "f1"),
        ("utility-generalized", "generalized_f1"),
        ("utility-auc", "auc"),
    ):
        _panels(found, measure, out, name)
    if len(found["seeds"]) > 1:
        _forest(found, out)


def _panels(found: Result, measure: str, out: Path, file: str) -> None:
    """One panel per data set, the ways to split against k."""
    names, ks = found["datasets"], found["ks"]
    n_columns = min(4, len(names) + 1)
    n_lines = -(-(len(names) + 1) // n_columns)
    with saved(out, file, (7.5, 2.2 * n_lines)) as figure:
        grid = figure.subplots(n_lines, n_columns, squeeze=False, sharex=True).ravel()
        for axes, name in zip(grid, names, strict=False):
            for arm, (label, look) in ARMS.items():
                of = found["sweep"][name][arm].get(measure)
                if of is not None:
                    _band(axes, ks, of, look, label)
            raw = found["raw"][name].get(measure.removeprefix("generalized_"))
            axes.axhline(raw, color=GREY, linewidth=0.8, label="model on raw records")
            if name == "adult" and measure == "generalized_f1":
                paper = published.K_SWEEP
                axes.plot(ks, [paper[k].f1 for k in ks], "x", color="black", ms=3, label="paper")
                blind = [paper[k].blind_f1 for k in ks]
                axes.plot(ks, blind, "+", color="black", ms=4, label="paper, blind")
            axes.set_title(TITLES[name], size=8)
        handles = grid[0].get_legend_handles_labels()
        for axes in grid[len(names) :]:
            axes.set_axis_off()
        grid[len(names)].legend(*handles, loc="center", frameon=False, fontsize=7)
        figure.supxlabel("k")
        figure.supylabel(GAPS.get(measure, measure))


def _band(axes: Axes, ks: list[int], of: Result, look: tuple[str, str, str], label: str) -> None:
    colour, line, marker = look
    mean, spread = np.array(of["mean"]), np.array(of["sd"])
    axes.plot(ks, mean, line, color=colour, marker=marker, ms=3, linewidth=1, label=label)
    axes.fill_between(ks, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)


def _forest(found: Result, out: Path) -> None:
    """Gaps with their intervals over seeds, a panel per measure."""
    names = found["datasets"]
    at = np.arange(len(names))[::-1]
    with saved(out, "utility-gaps", (7.5, 0.35 * len(names) + 1.4)) as figure:
        grid = figure.subplots(1, len(GAPS), sharey=True)
        for axes, (measure, title) in zip(grid, GAPS.items(), strict=True):
            for offset, contrast, colour, marker in (
                (0.12, "blind", ORANGE, "s"),
                (-0.12, "strict", "#666666", "^"),
            ):
                of = found["clustered"][contrast][measure]
                mean = np.array([of[n]["mean"] for n in names])
                half = np.array([of[n]["high"] - of[n]["mean"] for n in names])
                axes.errorbar(mean, at + offset, xerr=half, fmt=marker, color=colour, ms=3,
                              label=f"against {contrast}")  # fmt: skip
            axes.axvline(0, color="black", linewidth=0.6)
            axes.set_title(title, size=8)
            axes.tick_params(axis="x", labelsize=6)
        grid[0].set_yticks(at, [TITLES[n] for n in names])
        figure.supxlabel("gap: to the right target-driven is better", size=8)
        figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper right", ncols=2,
                      fontsize=7, frameon=False)  # fmt: skip
