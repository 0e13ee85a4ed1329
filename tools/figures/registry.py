"""Figures by name: how one is added, and what a page with all of them says."""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from tools.documents.markdown import ROOT

__all__ = ["FIGURES", "MARKER", "Figure", "Result", "figure", "filled", "load", "percents"]

RESULTS = ROOT / "results"
MARKER = re.compile(r"<!-- figure: (\S+) -->(.*?)<!-- /figure -->")
FIGURES: dict[str, Callable[[], str]] = {}

Figure = Callable[[], str]
Result = dict[str, Any]


def filled(text: str) -> str:
    """A page with every figure as it is today."""

    def write(marker: re.Match[str]) -> str:
        name = marker.group(1)
        if name not in FIGURES:
            raise ValueError(f"there is no figure {name!r}; tools/figures has them all")
        return f"<!-- figure: {name} -->{FIGURES[name]()}<!-- /figure -->"

    return MARKER.sub(write, text)


def figure(name: str) -> Callable[[Figure], Figure]:
    """Give a figure the name by which pages ask for it."""

    def add(function: Figure) -> Figure:
        FIGURES[name] = function
        return function

    return add


@cache
def load(name: str) -> Result:
    """What a study or a benchmark found."""
    found: Result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def percents(shares: Iterable[float]) -> str:
    """The least and the greatest share."""
    known = list(shares)
    return f"{100 * min(known):.0f} % to {100 * max(known):.0f} %"
