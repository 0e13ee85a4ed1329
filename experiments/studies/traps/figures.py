"""How far an informed provider gets before the first trap, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import bars
from experiments.data import TITLES

__all__ = ["FIGURES", "draw"]

FIGURES = {"traps": "Share of the records that an informed provider puts before the first trap"}


def draw(found: Result, out: Path) -> None:
    """Draw the mean share by data set, for the paper's traps and for adaptive ones."""
    names = list(dict.fromkeys(r["data"] for r in found["rows"]))
    share = {(r["data"], r["traps"]): r["free_of_traps"] for r in found["rows"]}
    kinds = list(dict.fromkeys(r["traps"] for r in found["rows"]))
    series = {f"traps: {kind}": [share[name, kind] for name in names] for kind in kinds}
    bars(out, "traps", [TITLES[name] for name in names], series, says="share of the records")
