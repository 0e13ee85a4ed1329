"""Figures as SVG and PNG, readable in print and by the colour-blind."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "saved"]

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
