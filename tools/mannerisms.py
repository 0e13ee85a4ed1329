"""Count phrases that have to be read twice, in pages and in the comments and texts of the code.

    python -m tools.mannerisms          fail if a part has more of them than ALLOWED says
    python -m tools.mannerisms --list   show every line that has one

Each has a plain form: "is not a" for "is no", "anyone who" for "whoever", "again" for "anew".
"""

import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PHRASES = re.compile(
    r"\b(?:[Ww]hoever|[Nn]obody|anew|(?:is|are) none|[Bb]ut for|of which"
    r"|is no (?!longer|more|less|fewer|later|wider|need|room|way|one)[a-z]+"
    r"|(?:for|to|of|from) who\b(?! ))\b"
)
"""Of "is no X" only those that mean "is not an X"; "there is no X" is plain."""
PLAIN = re.compile(r"\b[Tt]here (?:is|are) (?:no|none)\b|\bnobody else\b|`[^`]*`")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
ALLOWED = {
    "docs/comparison.md": 1,
    "docs/guide.md": 2,
    "docs/how-to": 16,
    "docs/implementers.md": 2,
    "docs/reference": 5,
    "docs/start": 2,
    "src/cli": 4,
    "src/client": 25,
    "src/conform": 13,
    "src/desk": 18,
    "src/fields.py": 1,
    "src/files": 20,
    "src/provider": 7,
    "src/service": 17,
}
"""How many a part still has. A number here may only become smaller."""


def found() -> Iterator[tuple[str, int, str]]:
    """Yield file, line and phrase of each one."""
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), path.read_text("utf-8"))
        yield from _in(path, enumerate(text.splitlines(), 1))
    for path in sorted((ROOT / "src").rglob("*.py")):
        yield from _in(path, _prose(path.read_text("utf-8")))
    for path in sorted((ROOT / "src").rglob("en.toml")):
        yield from _in(path, enumerate(path.read_text("utf-8").splitlines(), 1))


def _prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of comments and texts."""
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            yield from enumerate(token.string.splitlines(), token.start[0])


def _in(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[str, int, str]]:
    for number, line in lines:
        for match in PHRASES.finditer(PLAIN.sub("", line)):
            yield path.relative_to(ROOT).as_posix(), number, match[0]


def part_of(path: str) -> str:
    """The package or folder that a file belongs to."""
    return "/".join(path.replace("src/verix_anon/", "src/").split("/")[:2])


def main() -> None:
    """Count them."""
    places = list(found())
    if "--list" in sys.argv:
        print("\n".join(f"{path}:{line}: {phrase}" for path, line, phrase in places))
    counts = Counter(part_of(path) for path, _, _ in places)
    over = [f"{part}: {n}" for part, n in counts.items() if n > ALLOWED.get(part, 0)]
    if over:
        sys.exit("Say it plainly (python -m tools.mannerisms --list):\n" + "\n".join(over))


if __name__ == "__main__":
    main()
