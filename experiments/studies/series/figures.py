"""What each remedy for a growing table publishes, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import bars
from experiments.studies.series.render import NAMES

__all__ = ["FIGURES", "draw"]

FIGURES = {"series": "Rows of people who return that are published, and people below l, by remedy"}


def draw(found: Result, out: Path) -> None:
    """Draw the means over all settings; of the people below l the greatest share."""
    remedies = list(dict.fromkeys(r["remedy"] for r in found["rows"]))
    of = {name: [r for r in found["rows"] if r["remedy"] == name] for name in remedies}
    series = {
        "rows published again, mean": [
            sum(r["again"] for r in rows) / len(rows) for rows in of.values()
        ],
        "people below l, greatest": [max(r["below"] for r in rows) for rows in of.values()],
    }
    bars(out, "series", [NAMES[name] for name in remedies], series, says="share")
