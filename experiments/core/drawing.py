"""Figures as SVG and PNG, readable in print and by the colour-blind."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "bars", "saved"]

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


def bars(
    out: Path,
    name: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    says: str,
    errors: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Draw bars side by side, a group for each thing and a colour for each series."""
    looks = ((BLUE, ""), (ORANGE, "//"), (GREEN, ".."), (GREY, "xx"))
    width, at = 0.8 / len(series), np.arange(len(groups))
    with saved(out, name, (7.5, 3.4)) as figure:
        axes = figure.subplots()
        for i, ((label, values), (colour, hatch)) in enumerate(
            zip(series.items(), looks, strict=False)
        ):
            x = at + width * (i - (len(series) - 1) / 2)
            axes.bar(x, values, 0.9 * width, color=colour, hatch=hatch, label=label)
            if errors is not None:
                axes.errorbar(x, values, errors[label], fmt="none", ecolor="black", elinewidth=0.8)
        axes.set_xticks(at, groups, rotation=20, ha="right")
        axes.set_ylabel(says)
        if len(series) > 1:
            figure.legend(frameon=False, fontsize=7, ncols=4, loc="outside upper center")
