"""results/RESULTS.md and the figures, from what the studies wrote; computes nothing itself."""

import json
from pathlib import Path

from experiments import studies
from experiments.core.cells import Result
from experiments.core.markdown import prose

__all__ = ["render"]

HEAD = """# Results

Written by `make paper` from the JSON files in this folder; nothing here is typed by hand. Each
section names the commit, the versions and the machine of its study.
"""
BEYOND = """## Beyond the paper

What the paper does not have, with its rule as the baseline.
"""


def render(results: Path) -> None:
    """Write the report on every study that was run, and draw its figures beside it."""
    summary, figures = list[str](), list[str]()
    sections, others = list[str](), list[str]()
    for name in studies.names():
        path = results / f"{name}.json"
        if not path.is_file():
            continue
        found: Result = json.loads(path.read_text(encoding="utf-8"))
        words = studies.part(name, "render")
        summary += [f"- {prose(text)}" for text in words.summary(found)]
        sections += words.sections(found) if hasattr(words, "sections") else []
        others += words.beyond_the_paper(found) if hasattr(words, "beyond_the_paper") else []
        if (studies.HERE / name / "figures.py").is_file():
            figures += _drawn(name, found, results)
    lines = [HEAD, "## Summary", "", *summary, "", *sections]
    lines += [BEYOND, *others] if others else []
    lines += ["## Figures", "", *figures]
    text = "\n".join(lines).rstrip() + "\n"
    (results / "RESULTS.md").write_text(text, encoding="utf-8")


def _drawn(study: str, found: Result, results: Path) -> list[str]:
    """Draw the figures of a study, and show those that there are."""
    module, lines = studies.part(study, "figures"), []
    module.draw(found, results / "figures")
    for name, caption in module.FIGURES.items():
        if (results / "figures" / f"{name}.svg").is_file():
            lines += [f"![{caption}](figures/{name}.svg)", "", f"{caption}.", ""]
    return lines
