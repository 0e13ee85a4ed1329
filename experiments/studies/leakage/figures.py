"""What a release leaks under each rule, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import bars
from experiments.data import TITLES

__all__ = ["FIGURES", "draw"]

FIGURES = {"leakage": "Records in classes where all share the target, by rule, samples"}


def draw(found: Result, out: Path) -> None:
    """Draw the share of the records by data set."""
    rows = [r for r in found["rows"] if not r["whole"]]
    names = list(dict.fromkeys(r["data"] for r in rows))
    share = {(r["data"], r["rule"]): r["homogeneous"] for r in rows}
    rules = list(dict.fromkeys(r["rule"] for r in rows))
    series = {rule: [share[name, rule] for name in names] for rule in rules}
    bars(out, "leakage", [TITLES[name] for name in names], series, says="share of the records")
