"""The page for implementers quotes the example literally, and names cases that there are."""

import re
from fnmatch import fnmatchcase

from tools.documents.markdown import ROOT, blocks
from tools.kit.checker_cases import for_checkers
from tools.kit.provider_cases import LARGE, for_providers
from tools.kit.verifier_cases import for_verifiers

TEXT = (ROOT / "docs" / "implementers.md").read_text(encoding="utf-8")
EXAMPLE = "examples/provider.py"
IDS = [case.id for case in [*for_providers(), *for_verifiers()]]


def test_what_is_quoted_stands_in_the_example() -> None:
    source = (ROOT / EXAMPLE).read_text(encoding="utf-8")
    quoted = [block for block in blocks(TEXT) if block.language == "py"]
    assert quoted
    for block in quoted:
        assert block.title == EXAMPLE
        assert block.text in source, f"line {block.line} quotes what is not there"


def named() -> list[str]:
    """The cases that the steps name, or patterns of them."""
    lines = re.findall(r"^Cases: (.*?)(?:\n\n|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    return [name for line in lines for name in re.findall(r"`([^`]+)`", line)]


def test_the_cases_of_a_step_exist() -> None:
    unknown = [p for p in named() if not any(fnmatchcase(case, p) for case in IDS)]
    assert named()
    assert not unknown


def test_every_case_belongs_to_a_step() -> None:
    assert [c for c in IDS if not any(fnmatchcase(c, pattern) for pattern in named())] == []


def test_cases_are_named_rightly_in_the_tables_too() -> None:
    tables = re.findall(r"^\| step \|.*?\n\n", TEXT, re.MULTILINE | re.DOTALL)
    assert len(tables) == 2
    for table, ids in zip(tables, (IDS, [case.id for case in for_checkers()]), strict=True):
        rows = re.findall(r"\| ([^|]*`[^|]*) \|$", table, re.MULTILINE)
        cases = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
        assert cases
        assert [n for n in cases if not any(fnmatchcase(case, n) for case in ids)] == []
    assert "--size large --out large" in TEXT
    assert LARGE
