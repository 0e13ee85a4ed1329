"""One design: colours stand in one file with enough contrast, and every page loads that file."""

import re
from itertools import product

import pytest

from tools.documents.markdown import ROOT
from verix_anon import checker
from verix_anon.client.report import pictures
from verix_anon.service import operator

PACKAGE = ROOT / "src" / "verix_anon"
DESIGN = (PACKAGE / "design" / "design.css").read_text("utf-8")
STYLED = {
    path: path.read_text("utf-8")
    for folder in (PACKAGE, ROOT / "docs" / "assets")
    for path in (*folder.rglob("*.css"), *folder.rglob("*.html"))
}
NAMED = "white|black|gr[ae]y|silver|red|green|blue|orange|yellow|purple|navy|teal|maroon"
LITERAL = re.compile(
    rf"#(?:[0-9a-f]{{8}}|[0-9a-f]{{6}}|[0-9a-f]{{3,4}})\b|\b(?:rgb|hsl|hwb|lab|lch|oklab|oklch|color|light-dark)a?\("
    rf"|[:,]\s*(?:{NAMED})\b",
    re.IGNORECASE,
)
PAIRS = dict(re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]+, #[0-9a-f]+)\);", DESIGN))
THEMES = {
    name: {token: pair.split(", ")[i] for token, pair in PAIRS.items()}
    for i, name in enumerate(("light", "dark"))
}
LOADS = {
    "checker/page.html": "<style>{style}</style>",
    "client/report/templates/page.html": '{% include "design.css" %}',
    "desk/templates/layout.html": 'href="/static/design.css"',
    "desk/templates/plain.html": 'href="/static/design.css"',
    "service/templates/operator.html": "<style>{{ style }}</style>",
}
"""How each page takes the design"""
GROUNDS = ("paper", "card", "soft", "chosen", "good-soft", "bad-soft", "mark-soft")


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    bright, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_contrast(theme: str) -> None:
    """WCAG AA: 4.5 for text, 3 for controls and for what a chart tells."""
    colour = THEMES[theme]
    assert len(colour) == DESIGN.count("light-dark(")
    texts = [*product(("ink", "quiet", "link", "good", "bad", "mark"), GROUNDS)]
    marks = [*product(("edge", "before", "after"), ("paper", "card", "soft"))]
    for least, pairs in ((4.5, [*texts, ("on-link", "link")]), (3.0, marks)):
        low = [(a, b) for a, b in pairs if contrast(colour[a], colour[b]) < least]
        assert low == []


def test_colours_stand_in_the_design_alone() -> None:
    assert LITERAL.search(DESIGN)
    found = {str(path): LITERAL.findall(text) for path, text in STYLED.items()}
    del found[str(PACKAGE / "design" / "design.css")]
    assert {path: literals for path, literals in found.items() if literals} == {}


def test_every_colour_and_size_that_is_named_is_there() -> None:
    named = {name for text in STYLED.values() for name in re.findall(r"var\(--([\w-]+)\)", text)}
    defined = re.findall(r"--([\w-]+):", DESIGN)
    assert {*named, *pictures.NAMES} - {*defined} == set()


def test_every_page_loads_the_design() -> None:
    whole = {
        path.relative_to(PACKAGE).as_posix(): text
        for path, text in STYLED.items()
        if text.startswith("<!doctype html>")
    }
    assert whole.keys() == LOADS.keys()
    assert [name for name, text in whole.items() if LOADS[name] not in text] == []
    assert DESIGN.strip() in checker.page()
    assert DESIGN.strip() in operator.STYLE
    assert '"docs/assets/design.css"' in (ROOT / "zensical.toml").read_text("utf-8")
