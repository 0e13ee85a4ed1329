"""The audit report: a verdict, and the privacy sheet of its release, as one HTML file.

What explore() found is another such page, and what came of a conformance kit.

It computes nothing: what is not in the verdict is not in the report. It shows no threshold, no
category and no place of a watch record (decision 0012), loads nothing and runs no script.
The packages it needs are an extra, so its modules are loaded when a report is asked for.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from verix_anon.client.verdict import Verdict
from verix_anon.errors import TableError
from verix_anon.files.optional_packages import need
from verix_anon.translation import RECORD, PageTexts, known

if TYPE_CHECKING:
    from verix_anon.client.explore import Exploration
    from verix_anon.client.privacy_sheet import Sheet

__all__ = [
    "MOST_BYTES",
    "check_installed",
    "is_report_of",
    "mark_of",
    "render",
    "render_conformance",
    "render_exploration",
]

MOST_BYTES = 2_000_000
MARK = re.compile(r'<meta name="verix-verdict" content="([0-9a-f]{64})">')
BEGINNING = 4096
"""Characters of a report within which its mark stands."""


def check_installed(language: str = RECORD) -> None:
    """Raise unless the packages of the extra `report` are there, and texts in the language."""
    for package in ("jinja2", "matplotlib"):
        need(package, "report", "a report")
    known(language)


def render(verdict: Verdict, sheet: "Sheet | None" = None, language: str = RECORD) -> str:
    """The report as HTML.

    Args:
        verdict: What verify() found; its evidence is all that is drawn from.
        sheet: The privacy sheet of the release, such as `Sheet.read` reads it.
        language: The reader's language, one of `LANGUAGES`. What the files say is translated.

    Raises:
        TableError: The extra is not installed, the language is not known, the sheet is that of
            another delivery, or the evidence is not what verix-anon writes.
    """
    check_installed(language)
    from verix_anon.client.report.page import page

    if sheet is not None and sheet.root != verdict.root:
        raise TableError("the privacy sheet is that of another delivery than the verdict's")
    text = page(verdict, sheet, language)
    if len(text.encode()) > MOST_BYTES:
        raise TableError("the verdict holds too much to be one that verix-anon wrote")
    return text


def mark_of(verdict: Verdict) -> str:
    """What a report carries to say which verdict it is of: the SHA-256 of the verdict's file."""
    return sha256(verdict.to_json().encode() + b"\n").hexdigest()


def is_report_of(path: Path, verdict: Verdict) -> bool:
    """Whether a file is the report of this very verdict; any other file is not."""
    try:
        with path.open(encoding="utf-8") as file:
            found = MARK.search(file.read(BEGINNING))
    except (OSError, UnicodeDecodeError):
        return False
    return found is not None and found[1] == mark_of(verdict)


def render_exploration(found: "Exploration", language: str = RECORD) -> str:
    """What explore() found as HTML: a table and a plot of each measure over k.

    Raises:
        TableError: The extra is not installed.
    """
    check_installed(language)
    from verix_anon.client.report.page import exploration_page

    return exploration_page(found, language)


def render_conformance(found: Mapping[str, object]) -> str:
    """What came of a conformance kit as HTML; `found` is what its JSON holds.

    Raises:
        TableError: The extra is not installed.
    """
    check_installed()
    from verix_anon.client.report.page import rendered

    cases = found["cases"]
    assert isinstance(cases, list)
    failed = [case for case in cases if not case["passed"]]
    return rendered("conform.html", {**found, "failed": failed}, PageTexts(RECORD))
