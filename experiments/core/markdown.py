"""Tables and figures of a result as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.core.cells import Result

__all__ = [
    "HOLDS",
    "HOLDS_CHANGED",
    "NOT",
    "OPEN",
    "Claim",
    "mark",
    "n_seeds",
    "percent",
    "prose",
    "rate",
    "section",
    "seeds",
    "table",
    "verdict",
]

HOLDS, HOLDS_CHANGED, NOT = "holds", "holds with this change", "does not hold"
OPEN = "depends on what the paper leaves open"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper's, and what became of it here."""

    claim: str
    verdict: str
    """HOLDS, HOLDS_CHANGED, NOT or OPEN"""
    found: str
    """What was measured here, with a number or two"""


def verdict(readings: Sequence[bool]) -> str:
    """HOLDS, OPEN or NOT, by whether a claim holds under each reading of its experiment."""
    if all(readings):
        return HOLDS
    return OPEN if any(readings) else NOT


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


def seeds(found: Result) -> str:
    """How many seeds a study ran."""
    return n_seeds(len(found["seed_values"]))


def n_seeds(n: int) -> str:
    """A number of seeds, in words that fit it."""
    return "1 seed" if n == 1 else f"{n} seeds"


def prose(text: str) -> str:
    """A paragraph, however it was broken in the source."""
    return " ".join(text.split())


def section(title: str, found: Result, text: str, body: Sequence[str]) -> list[str]:
    """The page of a study: what it was measured on, what was asked, what came out."""
    return [f"# {title}", "", _measured_on(found), "", prose(text), "", *body]


def _measured_on(found: Result) -> str:
    return (
        f"`python -m experiments {found['study']}` at {found['commit']} on {found['date']}:"
        f" {found['n_cells']:,} cells; {found['machine']}, Python {found['python']},"
        f" XGBoost {found['packages']['xgboost-cpu']}."
    )
