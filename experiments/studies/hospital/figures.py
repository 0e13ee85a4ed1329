"""What is left of each column of the hospital, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import bars

__all__ = ["FIGURES", "draw"]

FIGURES = {"hospital": "NCP of each column of the hospital, by weights, with its standard error"}


def draw(found: Result, out: Path) -> None:
    """Draw the roles that `init` drafts, without bins."""
    rows = [r for r in found["rows"] if (r["roles"], r["bins"]) == ("draft", "none")]
    columns = list(dict.fromkeys(r["column"] for r in rows))
    of = {(r["weights"], r["column"]): r for r in rows}
    names = {"auto": "weights of a model (auto)", "uniform": "equal weights"}
    series, errors = (
        {label: [of[w, c][field] or 0.0 for c in columns] for w, label in names.items()}
        for field in ("ncp", "ncp_error")
    )
    bars(out, "hospital", columns, series, says="NCP", errors=errors)
