"""What a checker is shown: proofs, receipts, verdicts and logs, true ones and forgeries, as data.

`python -m tools.checker_cases` makes checker_cases.json by the specification's text. Each row has
the files of one case, and the words that ask about them, such as `prove check {proof} --root …`.
"""

import json
from base64 import b64decode
from functools import partial
from pathlib import Path
from typing import Any

from verix_anon.conform.kit import CaseKind, KitCase, Made

ROWS = Path(__file__).with_suffix(".json")
EXITS = {CaseKind.HOLDS: 0, CaseKind.FORGED: 1, CaseKind.UNUSABLE: 2}
"""The exit code of a checker (spec §10)."""


def for_checkers() -> list[KitCase]:
    """What a checker is shown."""
    return [_case(row) for row in json.loads(ROWS.read_text(encoding="utf-8"))]


def _case(row: dict[str, Any]) -> KitCase:
    kind = CaseKind(row["kind"])
    files = {name: text.encode() for name, text in row["files"].items()}
    files |= {name: b64decode(text) for name, text in row.get("base64", {}).items()}
    make = partial(
        _write, f"checks/{row['id']}", files, {"exit": EXITS[kind], "words": row["words"]}
    )
    title, section = row["title"], row["section"]
    return KitCase(id=row["id"], title=title, section=section, kind=kind, make=make)


def _write(place: str, files: dict[str, bytes], expected: dict[str, object], kit: Path) -> Made:
    (kit / place).mkdir(parents=True)
    for name, data in files.items():
        (kit / place / name).write_bytes(data)
    return {name: f"{place}/{name}" for name in files}, expected
