"""How large a release is by how its cells are written, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import bars

__all__ = ["FIGURES", "draw"]

FIGURES = {"representations": "Size of a released file by representation, with the AUC of a model"}


def draw(found: Result, out: Path) -> None:
    """Draw a bar for each representation, and one for the raw table."""
    sizes = {"raw": 1.0, **{r["form"]: r["size"] for r in found["rows"]}}
    areas = {"raw": found["raw"]["auc"], **{r["form"]: r["auc"] for r in found["rows"]}}
    groups = [f"{form}\n(AUC {areas[form]:.3f})" for form in sizes]
    says = "size, as a multiple of the raw file"
    bars(out, "representations", groups, {"size": list(sizes.values())}, says=says)
