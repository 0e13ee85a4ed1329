"""The site: pages gathered as they stand in the repository, then built without a network."""

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

from tools.documents.markdown import ROOT
from tools.documents.notebooks import as_page, notebooks

CONFIG = "zensical.toml"
PAGES, SITE = Path("pages"), Path("site")
HERE = ROOT / "build" / "docs"
"""Where `make docs` builds; the builder keeps its cache beside the pages."""
REMOTE = '<script src="https://unpkg.com/iframe-worker/shim" type="text/javascript"></script>'
"""What the builder would load from elsewhere; docs/assets/worker.js does the same."""
LINE = re.compile(r'<a id="__codelineno[^>]*></a>')
"""A link to a line of code, which has no text and would take the focus"""
KEEPING = re.compile(r"<!-- (?:given: .*?|figure: .*?|/figure) -->|[ \t]+# by hand: [^\n]*")
"""What the tests of the pages read, and no reader needs."""
MEMBER = re.compile(r"/api\.html#verix_anon\.\w+\.")
DESIGN = ROOT / "src" / "verix_anon" / "design" / "design.css"
SHOWN = (".md", ".svg", ".png", ".ipynb", ".html", ".css", ".js")


def gather(folder: Path) -> None:
    """Copy all pages to a folder, under the paths they have here, so that links stay true."""
    pages = folder / PAGES
    shutil.rmtree(pages, ignore_errors=True)
    found = [*ROOT.glob("*.md")]
    found += [path for name in ("docs", "results") for path in (ROOT / name).rglob("*")]
    for source in found:
        if source.suffix in SHOWN:
            target = pages / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
            if source.suffix == ".md" and source.name != "CONTRIBUTING.md":
                target.write_text(KEEPING.sub("", source.read_text("utf-8")), "utf-8")
    # The theme has base rules of its own, so the site takes the first rule: colours and sizes.
    tokens, _, _ = DESIGN.read_text("utf-8").partition("/* Base rules */")
    (pages / "docs" / "assets" / "design.css").write_text(tokens, encoding="utf-8")
    for notebook in notebooks():
        target = pages / notebook.relative_to(ROOT).with_suffix(".md")
        target.write_text(as_page(notebook), encoding="utf-8")


def build(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Build the site in a folder; a warning is an error."""
    gather(folder)
    shutil.rmtree(folder / SITE, ignore_errors=True)
    shutil.copy(ROOT / CONFIG, folder / CONFIG)
    source = folder / "src"
    source.unlink(missing_ok=True)
    source.symlink_to(ROOT / "src")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        # A link that stays would be followed by whoever builds the wheel, which then is empty.
        source.unlink()
    for page in (folder / SITE).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(LINE.sub("", text.replace(REMOTE, "")), encoding="utf-8")
    for index in (folder / SITE).glob("search.js*"):
        index.write_text(_searched(index.read_text(encoding="utf-8")), encoding="utf-8")
    return done


def _searched(index: str) -> str:
    """The search's index without the members of classes, which would crowd out the pages."""
    start, end = index.index("{"), index.rindex("}") + 1
    found = json.loads(index[start:end])
    found["items"] = [item for item in found["items"] if not MEMBER.search(item["location"])]
    return index[:start] + json.dumps(found, ensure_ascii=False) + index[end:]


class Html(HTMLParser):
    """What one built page links to, loads, and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the attributes that name something."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif tag == "link" and found.get("rel") != "canonical":
            self.loads.add(found.get("href", ""))
        elif tag in ("script", "img", "iframe", "source") and "src" in found:
            self.loads.add(found["src"])
