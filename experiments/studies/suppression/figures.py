"""What leaving records out changes, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREY, ORANGE, saved

__all__ = ["FIGURES", "draw"]

FIGURES = {"suppression": "Change of NCP and AUC by the share of the people left out"}


def draw(found: Result, out: Path) -> None:
    """Draw the means over all tables, with their standard errors."""
    with saved(out, "suppression", (7.5, 3.2)) as figure:
        for axes, (measure, title) in zip(
            figure.subplots(1, 2), (("ncp", "NCP"), ("auc", "AUC")), strict=True
        ):
            for least, label, colour, marker in (
                (1, "k alone", BLUE, "o"),
                (2, "with l = 2", ORANGE, "s"),
            ):
                gains = [g for g in found["gains"] if (g["l"], g["measure"]) == (least, measure)]
                axes.errorbar(
                    [100 * g["share"] for g in gains],
                    [g["mean"] for g in gains],
                    [g["error"] for g in gains],
                    color=colour,
                    marker=marker,
                    ms=4,
                    elinewidth=0.8,
                    label=label,
                )
            axes.axhline(0, color=GREY, linewidth=0.8)
            axes.set_xlabel("at most so many people left out, %")
            axes.set_ylabel(f"change of {title}")
        axes.legend(frameon=False, fontsize=7)
