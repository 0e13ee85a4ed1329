"""What a page says about where code is: the file is there, and so is the name in it."""

import re
from pathlib import Path

from tools.documents.markdown import ROOT, pages

FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.py|[\w-]+(?:/[\w-]+)*/)`")
NAME_IN_FILE = re.compile(r"`(?:\w+\.)*(\w+)` in `([\w/-]+\.py)`")
# Folders of a job, what a release makes, and a label are no places in the repository.
OTHERS = {"submission/", "delivery/", "DIR/submission/", "verix/2/", "dist/"}
# Folders of a kit, and files of others' repositories.
OTHERS |= {f"{name}/ID/" for name in ("submissions", "deliveries", "refused")}
OTHERS |= {f"{name}/ID/" for name in ("accepted", "cheats", "malformed", "checks")} | {
    "owners/NAME/"
}
OTHERS |= {"distributed/anonymize.py", "distributed/mondrian/fragmentation.py"}


def found(place: str) -> Path | None:
    """A place as pages name it: from the root of the repository or of the package."""
    tried = (ROOT / place, ROOT / "src" / "verix_anon" / place)
    return next((path for path in tried if path.exists()), None)


def is_current(path: Path) -> bool:
    """A decision that was replaced speaks of what there was."""
    return "Status: replaced" not in path.read_text(encoding="utf-8")


def gone(text: str) -> list[str]:
    """List the places that a text names and that are not there, and the names not in their file."""
    places = {place for place in FILE.findall(text) if found(place) is None} - OTHERS
    lacking = [
        f"{name} in {place}"
        for name, place in NAME_IN_FILE.findall(text)
        if (source := found(place)) is None
        or not re.search(rf"\b{name}\b", source.read_text(encoding="utf-8"))
    ]
    return [*sorted(places), *lacking]


def test_named_places_exist() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in pages() if is_current(path)}
    named = {path.name: absent for path, text in texts.items() if (absent := gone(text))}
    assert not named


def test_it_reads_places() -> None:
    text = "`a/b.py`, `x.py`, `client/verify/`, `Reader.check` in `files/reader.py`; not `a/b`, `/`"
    assert FILE.findall(text) == ["a/b.py", "x.py", "client/verify/", "files/reader.py"]
    assert NAME_IN_FILE.findall(text) == [("check", "files/reader.py")]
