"""What a model still learns against the information lost, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREEN, ORANGE, saved

__all__ = ["FIGURES", "draw"]

FIGURES = {"rules": "AUC against NCP on Adult, by rule, least leaf and l"}
LOOK = {
    ("variance-reduction", ""): ("the paper's rule", ORANGE),
    ("importance-spread", "uniform"): ("importance-spread", BLUE),
    ("importance-spread", "auto"): ("the same, auto", GREEN),
}
MARKERS = {"k": "o", "2k": "s"}


def draw(found: Result, out: Path) -> None:
    """A panel for each number of quasi-identifiers; hollow with two labels in every class."""
    columns = sorted({r["quasi"] for r in found["rows"] if r["quasi"]})
    with saved(out, "rules", (3.4 * len(columns) + 0.6, 3.4)) as figure:
        panels = figure.subplots(1, len(columns), squeeze=False)[0]
        for axes, quasi in zip(panels, columns, strict=True):
            raw = next(r for r in found["raw"] if r["quasi"] == quasi)
            axes.axhline(raw["auc"], color="black", linewidth=0.8, linestyle=":", label="raw")
            for r in found["rows"]:
                if r["quasi"] != quasi or r["view"] != "interval":
                    continue
                name, colour = LOOK[r["rule"], r["importance"]]
                axes.plot(
                    r["ncp"],
                    r["auc"],
                    MARKERS[r["min_leaf"]],
                    color=colour,
                    fillstyle="full" if r["l"] == 1 else "none",
                    label=f"{name}, {r['min_leaf']}" if r["l"] == 1 else None,
                )
            axes.set_title(f"{quasi} quasi-identifiers", fontsize=9)
            axes.set_xlabel("NCP")
        panels[0].set_ylabel("AUC of a model on intervals")
        panels[0].legend(frameon=False, fontsize=6, title="hollow: l = 2", title_fontsize=6)
