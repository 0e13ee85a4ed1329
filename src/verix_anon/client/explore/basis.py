"""What settings were tried on: other columns or another table make other curves."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from verix_anon.client.given import FilePath
from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.table.draft import read_reading, read_roles

__all__ = ["basis_of"]

DECIDING = ("importance", "min_leaf", "places", "max_depth")
"""The options of prepare() that a tree or its classes depend on, but the rule, which is tried."""


def basis_of(roles: FilePath, table: FilePath | None) -> Mapping[str, str]:
    """Names for what a roles file and a table's file are now, without what is tried of them.

    They are equal if the curves would be; a table that is no file has none.
    """
    found = {"columns": _columns(roles)}
    if table is not None:
        with suppress(OSError, ValueError):
            about = Path(table).stat()
            found["table"] = f"{about.st_size} {about.st_mtime_ns}"
    return found


def _columns(roles: FilePath) -> str:
    declared = asdict(read_roles(roles)[1])
    hidden = declared.pop("diversity")
    hidden.get(declared["target"], {}).pop("l", None)
    options = PrepareOptions.of_roles(roles)
    said = {
        "declared": declared,
        "hidden": {name: asked for name, asked in hidden.items() if asked},
        "options": {name: getattr(options, name) for name in DECIDING},
        "reading": read_reading(roles).to_json(),
    }
    return sha256(json.dumps(said, default=str).encode()).hexdigest()
