"""What joining tells, before and now, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import bars
from experiments.data import TITLES

__all__ = ["FIGURES", "draw"]

FIGURES = {"minimality": "Labels that joining tells, before and now, with standard errors"}


def draw(found: Result, out: Path) -> None:
    """Draw the tables without traps: certain labels before and now, and those undecided now."""
    rows = [r for r in found["rows"] if r["traps"] == "none"]
    before = {r["data"]: r for r in rows if not r["small"]}
    setting = (found["small"], found["chance"])
    now = {r["data"]: r for r in rows if (r["small"], r["chance"]) == setting}
    names = [name for name in before if name in now]
    certain = {"certain, before": before, "certain, now": now}
    series, errors = (
        {label: [of[name][field] or 0.0 for name in names] for label, of in certain.items()}
        for field in ("certain_0.95", "certain_error")
    )
    series["undecided, now"] = [now[name]["undecided"] for name in names]
    errors["undecided, now"] = [0.0] * len(names)
    titles = [TITLES[name] for name in names]
    bars(out, "minimality", titles, series, says="share of the records", errors=errors)
