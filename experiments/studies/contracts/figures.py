"""What is caught under each contract, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import bars

__all__ = ["FIGURES", "draw"]

FIGURES = {"contracts": "Deliveries that deviate and are caught, by rule, weighting and target"}


def draw(found: Result, out: Path) -> None:
    """Draw the share that `full` and `thin` catch, all adversaries together."""
    groups: dict[str, list[Result]] = {}
    for r in found["rows"]:
        if r["target"] != "all" and r["provider"] != "honest":
            name = r["rule"].replace(", ", ",\n")
            groups.setdefault(f"{name}:\n{r['target']}", []).append(r)
    n_deviated = [max(1, sum(r["deviated"] for r in of)) for of in groups.values()]
    series = {
        profile: [
            sum(r[profile] for r in of) / n
            for of, n in zip(groups.values(), n_deviated, strict=True)
        ]
        for profile in ("full", "thin")
    }
    bars(out, "contracts", list(groups), series, says="share of the deliveries")
