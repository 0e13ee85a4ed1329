"""The figures of the detection studies: SVG and PNG, readable in print and by the colour-blind."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.core.cells import Result
from experiments.core.markdown import load
from experiments.studies.detection import published
from experiments.studies.detection.render import epsilons

__all__ = ["BLUE", "GREY", "ORANGE", "figures", "saved"]

# Okabe and Ito's blue and orange: they differ in lightness too, so also in grey print.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#999999"
# matplotlib's stubs want the names of all settings.
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "verix",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.dpi": 150,
}


@contextmanager
def saved(out: Path, name: str, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure that is written as SVG and PNG when it is done."""
    mpl.use("agg")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        out.mkdir(parents=True, exist_ok=True)
        # Without its date the file changes only with what it shows.
        figure.savefig(out / f"{name}.svg", metadata={"Date": None})
        figure.savefig(out / f"{name}.png", metadata={"Software": None})


def figures(results: Path, out: Path) -> None:
    """Draw every figure whose study was run."""
    if (found := load(results, "detection")) is not None:
        _coverage(found, out)
        for rule in ("fixed", "calibrated"):
            _paper_map(found["single_run"], rule, out)
        _full_map(found, out)
        _calibration(found["single_run"], out)
    if (found := load(results, "thresholds")) is not None:
        _roc(found, out)
        _distributions(found, out)
    if (found := load(results, "power")) is not None:
        _power(found, out)


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
                rows.append(f"{published.TITLES[data]}, {profile}")
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
        _map(axes, values, providers, [published.TITLES[n] for n in names])
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
        lower.set_xticks(at, [published.TITLES[n] for n in names], rotation=20, ha="right")
        upper.legend(ncols=4, fontsize=7, frameon=False, loc="upper left")


def _bars(axes: Axes, values: dict[str, list[float]], cuts: Sequence[float], title: str) -> None:
    at = np.arange(len(cuts))
    axes.bar(at - 0.2, values["honest"], 0.38, color=BLUE, label="honest")
    axes.bar(at + 0.2, values["approximate"], 0.38, color=ORANGE, hatch="//", label="approximate")
    axes.hlines(cuts, at - 0.45, at + 0.45, color="black", label="calibrated epsilon")
    axes.axhline(0.45, color=GREY, linestyle="--", label="fixed epsilon 0.45")
    axes.set_ylabel(f"{title}:\nSHAP distance")
    axes.set_ylim(0, 1.25 * max([*values["honest"], *values["approximate"], *cuts]))


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
            axes.set_title(published.TITLES[data], size=8)
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
        axes.set_xticks(range(len(names)), [published.TITLES[n] for n in names], rotation=20)
        axes.set_ylabel("greatest SHAP distance")
        axes.legend(frameon=False, fontsize=7)


def _power(found: Result, out: Path) -> None:
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
