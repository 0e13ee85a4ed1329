"""Find phrases that have to be read twice, in pages and in the comments and texts of the code.

    python -m tools.mannerisms          fail at every line that has one, unless ALLOWED names it
    python -m tools.mannerisms --list   show all of them, the allowed ones too

Each has a plain form: "is not a" for "is no", "anyone who" for "whoever", "again" for "anew".
"""

import io
import re
import sys
import tokenize
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
    ("src/verix_anon/texts/en.toml", "nobody"): "a key",
}
"""The places that may stay, at most MOST_ALLOWED: file and phrase, each with its reason."""
MOST_ALLOWED = 10


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


def main() -> None:
    """Show those that are not allowed, and fail if there are any."""
    places = list(found())
    if "--list" in sys.argv:
        print("\n".join(f"{path}:{line}: {phrase}" for path, line, phrase in places))
    if len(ALLOWED) > MOST_ALLOWED:
        sys.exit(f"ALLOWED has {len(ALLOWED)} places, and may have {MOST_ALLOWED}")
    there = {(path, phrase) for path, _, phrase in places}
    if gone := ALLOWED.keys() - there:
        sys.exit(f"ALLOWED names places that are gone: {sorted(gone)}")
    wrong = [each for each in places if (each[0], each[2]) not in ALLOWED]
    if wrong:
        lines = (f"{path}:{line}: {phrase}" for path, line, phrase in wrong)
        sys.exit("Say it plainly:\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
