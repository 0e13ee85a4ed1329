"""Tables and figures of a result as Markdown."""

import json
from collections.abc import Sequence
from pathlib import Path

from experiments.core.cells import Result

__all__ = ["load", "mark", "percent", "prose", "provenance_line", "rate", "table"]


def load(results: Path, study: str) -> Result | None:
    """What a study found, or None if it was not run."""
    path = results / f"{study}.json"
    if not path.is_file():
        return None
    found: Result = json.loads(path.read_text(encoding="utf-8"))
    return found


def table(head: Sequence[str], rows: Sequence[Sequence[object]], *, left: int = 1) -> list[str]:
    """A table whose first columns are left-aligned and the others right-aligned."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    lines = [head, rule, *rows]
    return [f"| {' | '.join(str(cell) for cell in line)} |" for line in lines] + [""]


def mark(is_right: bool) -> str:
    """A check mark or a cross."""
    return "✓" if is_right else "✗"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent."""
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def rate(row: Result, hits: str = "flagged", runs: str = "runs") -> str:
    """Hits of runs, with the Wilson interval in percent."""
    if not row[runs]:
        return "-"
    return f"{row[hits]}/{row[runs]} ({100 * row['low']:.0f} to {100 * row['high']:.0f} %)"


def prose(text: str) -> str:
    """A paragraph, however it was broken in the source."""
    return " ".join(text.split())


def provenance_line(found: Result) -> str:
    """What a result was measured on, in one line."""
    return (
        f"`python -m experiments {found['study']}` at {found['commit']} on {found['date']}:"
        f" {found['n_cells']:,} cells; {found['machine']}, Python {found['python']},"
        f" XGBoost {found['packages']['xgboost-cpu']}."
    )
