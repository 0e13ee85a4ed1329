"""Figures in pages: computed from `results/`, never typed. `python -m tools.figures` writes them.

A page holds a figure between two comments, which no reader sees:

    <!-- figure: leakage.same_target -->38 % to 80 %<!-- /figure -->

The text between them is what the function of that name in FIGURES says today.
"""

from tools.figures import beyond, clusters, large, studies
from tools.figures.registry import FIGURES, MARKER, filled

__all__ = ["FIGURES", "MARKER", "beyond", "clusters", "filled", "large", "studies"]
