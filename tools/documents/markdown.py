"""The pages of the documentation: their blocks, their commands, their links.

Conventions, which CONTRIBUTING.md tells authors:

- `console` blocks hold commands after `$ `, a backslash continues one, and what stands between
  commands is their output. `# exits with N` ends a command that does not exit with 0.
  `# by hand: REASON` ends one that the tests do not run.
- `sh` blocks are scripts, `python` blocks run in one namespace per page.
- `text` blocks entitled "output" are what the block before printed, numbers aside; those entitled
  "output of one run" share its lines' first words. "warnings of one run" are those on stderr.
- `<!-- given: people.csv job -->` names what is in the folder before the page begins.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
RUN = ("console", "sh", "python")

_FENCE = re.compile(r"^( *)```(\w*)([^\n`]*)\n(.*?)^\1``` *$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    language: str
    title: str
    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a console block, and the output shown below it."""

    text: str
    exit_code: int
    by_hand: str | None
    shown: str


def pages() -> list[Path]:
    """Every page: of the repository's root and of docs/."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    for match in _FENCE.finditer(text):
        indent, language, info, body = match.groups()
        title = re.search(r'title="([^"]*)"', info)
        found.append(
            Block(
                language=language,
                title=title.group(1) if title else "",
                text="".join(line.removeprefix(indent) for line in body.splitlines(keepends=True)),
                line=text.count("\n", 0, match.start()) + 1,
            )
        )
    return found


def commands(block: Block) -> list[Command]:
    """The commands of a console block."""
    found = []
    # A command begins after `$ ` and goes on while its lines end in a backslash.
    for match in re.finditer(
        r"^\$ ((?:.*\\\n)*.*)\n?((?:(?!\$ ).*\n?)*)", block.text, re.MULTILINE
    ):
        text, shown = match.groups()
        code = re.search(r"# exits with (\d+)", text)
        hand = re.search(r"# by hand: (.+)$", text)
        found.append(
            Command(
                text=re.sub(r"\s+# .*$", "", text),
                exit_code=int(code.group(1)) if code else 0,
                by_hand=hand.group(1) if hand else None,
                shown=shown.strip("\n"),
            )
        )
    return found


def given(text: str) -> list[str]:
    """What is in the folder before the page begins."""
    return [name for found in re.findall(r"<!-- given: (.*?) -->", text) for name in found.split()]


def prose(text: str) -> str:
    """A page without its code: neither blocks nor words set as code."""
    return re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))


def links(text: str) -> Iterator[str]:
    """Where the links and images of a page lead, those in code left out."""
    yield from _LINK.findall(prose(text))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE):
        kept = re.sub(r"[^\w\s-]", "", heading.lower(), flags=re.ASCII)
        found.add(re.sub(r"\s", "-", kept.strip()))
    return found


def agrees(shown: str, printed: str, *, loosely: bool) -> bool:
    """Whether output shown in a page is what was printed; `...` stands for anything.

    Numbers, digests and times differ from run to run and are not compared. Loosely, each line
    shown must begin with the same three words as some line printed, in the same order.
    """
    if loosely:
        lines = iter(printed.splitlines())
        wanted = [line for line in shown.splitlines() if line.strip() not in ("", "...")]
        return all(any(_begins(line, other) for other in lines) for line in wanted)
    pattern = "\n".join(
        r"(?:.*\n)*.*" if line.strip() == "..." else _pattern(line)
        for line in shown.rstrip("\n").splitlines()
    )
    return re.fullmatch(pattern, _masked(printed).rstrip("\n")) is not None


def _begins(line: str, other: str) -> bool:
    return _masked(line).split()[:3] == _masked(other).split()[:3]


def _pattern(line: str) -> str:
    return re.escape(_masked(line.rstrip())).replace(re.escape("..."), ".*") + " *"


def _masked(text: str) -> str:
    """The text with every number and digest made the same, and the hour of a time."""
    return re.sub(r"(?:\b|(?<=\dT))(?:[0-9a-f]{32,64}|\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?)", "0", text)
