"""What a provider recovers of a coded submission, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import bars
from experiments.data import TITLES

__all__ = ["FIGURES", "draw"]

FIGURES = {"coding": "Cells of a coded submission that a provider finds exactly, by what it knows"}


def draw(found: Result, out: Path) -> None:
    """Draw the mean share by data set."""
    rows = [r for r in found["rows"] if r["sent"] == "coded"]
    names = list(dict.fromkeys(r["data"] for r in rows))
    known = list(dict.fromkeys(r["background"] for r in rows))
    share = {(r["data"], r["background"]): r["cells"] for r in rows}
    series = {f"knows {what}": [share[name, what] for name in names] for what in known}
    bars(out, "coding", [TITLES[name] for name in names], series, says="share of the cells")
