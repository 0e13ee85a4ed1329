"""results/RESULTS.md, a page for each study and the figures; computes nothing itself."""

import json
from pathlib import Path
from types import ModuleType

from experiments import studies
from experiments.core.cells import Result
from experiments.core.markdown import prose, table

__all__ = ["render"]

HEAD = """# Results

Written by `make paper`: each measured figure is read from the JSON files in this folder. The
paper's own figures are copied from the paper. The page of each study names its commit, its versions
and its machine. `python -m experiments --status` says which results are of the current version.
"""
CLAIMS = """## What the paper claims

The paper is *VeriX-Anon* (Daga and Ramu). Its code is not public, so we rebuilt its experiments
from its text.

- "Holds with this change": the claim is true of our system and not of the paper's.
- "Depends on what the paper leaves open": the text allows several experiments. The claim holds in
  some of them and not in others.
- "Does not hold": the claim does not hold in our reproduction. The paper's code might give another
  result.
"""


def render(results: Path) -> None:
    """Write the first page and the page of every study that was run, and draw their figures."""
    claims, found_out, figures = list[list[str]](), list[str](), list[str]()
    for name in studies.names():
        path = results / f"{name}.json"
        if not path.is_file():
            continue
        found: Result = json.loads(path.read_text(encoding="utf-8"))
        words = studies.part(name, "render")
        link = f"[{name}]({name}.md)"
        if hasattr(words, "claims"):
            claims += [[c.claim, c.verdict, prose(c.found), link] for c in words.claims(found)]
        found_out += [f"- {prose(text)} ({link})" for text in words.summary(found)]
        drawn = _drawn(name, found, results)
        figures += drawn[:FIGURE_LINES]
        beside = _beside(words, results)
        _write(results / f"{name}.md", [*words.page(found), *beside, *drawn])
    head = ["the paper", "here", "measured", "study"]
    lines = [HEAD, CLAIMS, *table(head, claims, left=4)] if claims else [HEAD]
    lines += ["## What we found", "", *found_out, ""]
    lines += ["## A figure of each study", "", *figures] if figures else []
    _write(results / "RESULTS.md", lines)


def _beside(words: ModuleType, results: Path) -> list[str]:
    """What another study found of the same question, if it was run."""
    path = results / f"{getattr(words, 'BESIDE', '')}.json"
    if not path.is_file():
        return []
    lines: list[str] = words.beside(json.loads(path.read_text(encoding="utf-8")))
    return lines


FIGURE_LINES = 4
"""A figure, its caption, and an empty line behind each."""


def _drawn(study: str, found: Result, results: Path) -> list[str]:
    """Draw the figures of a study, and show those that there are."""
    if not (studies.HERE / study / "figures.py").is_file():
        return []
    module, lines = studies.part(study, "figures"), []
    module.draw(found, results / "figures")
    for name, caption in module.FIGURES.items():
        if (results / "figures" / f"{name}.svg").is_file():
            lines += [f"![{caption}](figures/{name}.svg)", "", f"{caption}.", ""]
    return lines


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
