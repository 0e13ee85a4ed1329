"""Who is caught by which layer, drawn."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREY, ORANGE, saved
from experiments.data import TITLES
from experiments.studies.detection import published
from experiments.studies.detection.study import epsilons

__all__ = ["FIGURES", "draw"]

FIGURES = {
    "coverage": "Which layer sees which provider, with the submission and without",
    "heatmap-fixed": "The paper's profile with the fixed threshold, single run",
    "heatmap-calibrated": "The paper's profile with the calibrated threshold, single run",
    "heatmap-full": "The full profile, every adversary, all seeds",
    "calibration": "Distances against both thresholds, the paper's and ours",
}


def draw(found: Result, out: Path) -> None:
    """Draw what the study found."""
    _coverage(found, out)
    for rule in ("fixed", "calibrated"):
        _paper_map(found["single_run"], rule, out)
    _full_map(found, out)
    _calibration(found["single_run"], out)


def _map(
    axes: Axes, values: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str]
) -> None:
    """A table of shares: dark blue is all, white is none, the figure stands in the cell."""
    axes.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right")
    axes.set_yticks(range(len(rows)), rows)
    for i, line in enumerate(values):
        for j, value in enumerate(line):
            shade = "white" if value > 0.55 else "black"
            axes.text(j, i, f"{100 * value:.0f}", ha="center", va="center", color=shade, size=7)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def _coverage(found: Result, out: Path) -> None:
    """The threat coverage matrix: adversary by layer, share of the runs in which it fails."""
    layers = list(dict.fromkeys(r["layer"] for r in found["layers"]))
    providers = list(dict.fromkeys(r["provider"] for r in found["layers"]))
    with saved(out, "coverage", (7.5, 6.5)) as figure:
        for axes, profile in zip(figure.subplots(1, 2, sharey=True), ("full", "thin"), strict=True):
            share = {
                (r["provider"], r["layer"]): r["failed"] / r["runs"]
                for r in found["layers"]
                if r["profile"] == profile
            }
            values = [[share[p, n] for n in layers] for p in providers]
            values = [
                [*line, _flagged(found, p, profile)]
                for p, line in zip(providers, values, strict=True)
            ]
            _map(axes, values, providers, [*layers, "verdict"])
            axes.set_title(f"{profile}: % of runs in which the layer fails")


def _flagged(found: Result, provider: str, approach: str) -> float:
    return next(
        float(r["rate"])
        for r in found["rows"]
        if (r["provider"], r["approach"], r["data"]) == (provider, approach, "all")
    )


def _paper_map(single: Result, rule: str, out: Path) -> None:
    """The paper's heat map: whether each layer is right in each scenario of the single run."""
    layers = {"L1": "commitment", "L2a": "sentinels", "L2b": "twins"}
    profiles = published.PROFILES
    with saved(out, f"heatmap-{rule}", (7.5, 0.5 * 4 * len(single) / 2 + 1.2)) as figure:
        axes = figure.subplots()
        rows, values = [], []
        for data, run in single.items():
            for profile in profiles:
                said = run["providers"][profile]
                flags = [said["paper"][layer] == "fail" for layer in layers.values()]
                flags.append(any(d > epsilons(run)[rule] for d in said["distance"]))
                flags.append(any(flags))
                rows.append(f"{TITLES[data]}, {profile}")
                values.append([flag is (profile != "honest") for flag in flags])
        _marks(axes, values, rows, [*layers, "L3", "overall"])
        right = sum(line[-1] for line in values)
        axes.set_title(f"Paper's profile, {rule} threshold: {right} of {len(values)} correct")


def _marks(
    axes: Axes, values: Sequence[Sequence[bool]], rows: Sequence[str], columns: Sequence[str]
) -> None:
    """A table of right and wrong: blue with a check, orange with a cross."""
    colours = mpl.colors.ListedColormap([ORANGE, BLUE])
    axes.imshow(np.array(values, float), cmap=colours, vmin=0, vmax=1, aspect="auto", alpha=0.75)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    for i, line in enumerate(values):
        for j, is_right in enumerate(line):
            axes.plot(j, i, marker="o" if is_right else "x", color="black", ms=4, mfc="none")
    axes.set_xticks(np.arange(-0.5, len(columns)), minor=True)
    axes.set_yticks(np.arange(-0.5, len(rows)), minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)


def _full_map(found: Result, out: Path) -> None:
    """Detection of every adversary by data set, with the submission at hand."""
    providers = list(dict.fromkeys(r["provider"] for r in found["rows"]))
    names = [d for d in dict.fromkeys(r["data"] for r in found["rows"]) if d != "all"]
    rate = {(r["provider"], r["data"]): r["rate"] for r in found["rows"] if r["approach"] == "full"}
    with saved(out, "heatmap-full", (7.5, 6)) as figure:
        axes = figure.subplots()
        values = [[rate[p, n] for n in names] for p in providers]
        _map(axes, values, providers, [TITLES[n] for n in names])
        axes.set_title(f"full: % of {found['seeds']} runs flagged (honest: false alarms)")


def _calibration(single: Result, out: Path) -> None:
    """Honest and approximate distances against the thresholds, ours beside the paper's."""
    names = list(single)
    at = np.arange(len(names))
    with saved(out, "calibration", (7.5, 4.5)) as figure:
        upper, lower = figure.subplots(2, 1, sharex=True)
        paper = {
            who: [max(d[i] for d in published.DISTANCES[n].values()) for n in names]
            for who, i in (("honest", 0), ("approximate", 2))
        }
        ours = {
            who: [max(single[n]["providers"][who]["distance"]) for n in names]
            for who in ("honest", "approximate")
        }
        cuts = [1.1 * d for d in paper["honest"]]
        _bars(upper, paper, cuts, "paper")
        _bars(lower, ours, [single[n]["calibrated"] for n in names], "ours")
        lower.set_xticks(at, [TITLES[n] for n in names], rotation=20, ha="right")
        upper.legend(ncols=4, fontsize=7, frameon=False, loc="upper left")


def _bars(axes: Axes, values: dict[str, list[float]], cuts: Sequence[float], title: str) -> None:
    at = np.arange(len(cuts))
    axes.bar(at - 0.2, values["honest"], 0.38, color=BLUE, label="honest")
    axes.bar(at + 0.2, values["approximate"], 0.38, color=ORANGE, hatch="//", label="approximate")
    axes.hlines(cuts, at - 0.45, at + 0.45, color="black", label="calibrated epsilon")
    axes.axhline(0.45, color=GREY, linestyle="--", label="fixed epsilon 0.45")
    axes.set_ylabel(f"{title}:\nSHAP distance")
    axes.set_ylim(0, 1.25 * max([*values["honest"], *values["approximate"], *cuts]))
