"""results/RESULTS.md and the figures, from what the studies wrote; computes nothing itself."""

from pathlib import Path

from experiments.core import render_studies, summary
from experiments.studies.detection import figures
from experiments.studies.detection import render as render_detection
from experiments.studies.peers import render as render_peers
from experiments.studies.scale import render as render_scale
from experiments.studies.utility import render as render_utility

__all__ = ["render"]

HEAD = """# Results

Written by `make paper` from the JSON files in this folder; nothing here is typed by hand. Each
section names the commit, the versions and the machine of its study.
"""
FIGURES = {
    "coverage": "Which layer sees which provider, with the submission and without",
    "heatmap-fixed": "The paper's profile with the fixed threshold, single run",
    "heatmap-calibrated": "The paper's profile with the calibrated threshold, single run",
    "heatmap-full": "The full profile, every adversary, all seeds",
    "calibration": "Distances against both thresholds, the paper's and ours",
    "roc": "Honest against blind: SHAP distance, F1 gap and regret",
    "distances": "SHAP distances of honest and blind deliveries over seeds",
    "power": "Power of the split audit, measured and stated",
    **render_scale.FIGURES,
    **render_utility.FIGURES,
    **render_peers.FIGURES,
}


def render(results: Path) -> None:
    """Write the report, and draw the figures beside it."""
    drawn = results / "figures"
    for drawing in (figures, render_scale, render_utility, render_peers):
        drawing.figures(results, drawn)
    lines = [
        HEAD,
        *summary.lines(results),
        *render_detection.sections(results),
        *render_studies.sections(results),
        *render_scale.sections(results),
        *render_utility.sections(results),
        *render_peers.sections(results),
        "## Figures",
        "",
    ]
    for name, caption in FIGURES.items():
        if (drawn / f"{name}.svg").is_file():
            lines += [f"![{caption}](figures/{name}.svg)", "", f"{caption}.", ""]
    text = "\n".join(lines).rstrip() + "\n"
    (results / "RESULTS.md").write_text(text, encoding="utf-8")
