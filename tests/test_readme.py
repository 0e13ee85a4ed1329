"""What the README promises beyond its commands and links, which run with the other pages."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "docs").rglob("*.ipynb"),
    *(ROOT / "src").rglob("*.py"),
]
# Nobody holds the name there yet, and whoever takes it may be anybody.
FETCHED = re.compile(
    r"""(pip|pipx|uv|uvx|conda)\b[^\n]*\b(install|add|run)\b[^\n]*[ '"]verix-anon\b"""
)


def test_nobody_is_told_to_fetch_what_is_not_published() -> None:
    telling = [path for path in TEXTS if FETCHED.search(path.read_text(encoding="utf-8"))]
    assert not telling


def test_what_fetching_looks_like() -> None:
    assert FETCHED.search("run pip install 'verix-anon[report]'")
    assert FETCHED.search("$ uv tool install verix-anon")
    assert not FETCHED.search("in your clone of verix-anon: pip install -e '.[report]'")


def test_first_screen() -> None:
    """Where it leads, three lines to try it, and two pictures."""
    lines = README.splitlines()
    assert len(lines) <= 120
    screen = "\n".join(lines[: next(i for i, line in enumerate(lines) if line.startswith("## "))])
    commands = re.findall(r"^\$ (\w+ \w+|verix-anon \w+)", screen, re.MULTILINE)
    assert commands == ["pip install", "make demo", "verix-anon run"]
    pictures = re.findall(r"\(docs/images/([\w-]+)\.(?:png|svg)\)", screen)
    assert pictures == ["journey", "report", "desk-verdict"]
    (python,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(python.splitlines()) <= 10


def test_what_a_reader_needs() -> None:
    headings = re.findall(r"^## (.*)", README, re.MULTILINE)
    wanted = ["For owners", "For providers", "For auditors"]
    assert [h for h in headings if h in wanted] == wanted
    assert "What a pass proves, and what it does not" in headings
    statuses = re.findall(r"^ +\w+ +(pass|fail) +decides", README, re.MULTILINE)
    assert sorted(statuses) == ["fail", "pass"]
