"""What a release leaks under each rule, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import bars
from experiments.data import TITLES

__all__ = ["FIGURES", "draw"]

FIGURES = {
    "leakage": "Records in classes where all share the target, by rule, with standard errors"
}


def draw(found: Result, out: Path) -> None:
    """Draw the share of the records by data set."""
    rows = [r for r in found["rows"] if not r["whole"]]
    names = list(dict.fromkeys(r["data"] for r in rows))
    rules = list(dict.fromkeys(r["rule"] for r in rows))
    series, errors = (
        {rule: [r[field] or 0.0 for r in rows if r["rule"] == rule] for rule in rules}
        for field in ("homogeneous", "homogeneous_error")
    )
    titles = [TITLES[name] for name in names]
    bars(out, "leakage", titles, series, says="share of the records", errors=errors)
