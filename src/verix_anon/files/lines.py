"""Files of JSON lines that are only ever appended to, for their owner's eyes alone."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from verix_anon.errors import TableError
from verix_anon.fields import Fields

__all__ = ["append", "read"]


def append(path: str | os.PathLike[str], fields: Mapping[str, object]) -> None:
    """Add a line, and see it on the disk; raises OSError."""
    line = json.dumps(fields).encode() + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        # A line that was cut short must not take the next one with it.
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)
        os.fsync(descriptor)


def read(path: str | os.PathLike[str]) -> list[Fields | None]:
    """Every line that is not empty, None for one that is damaged; raises OSError."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    return [_parse(line) for line in data.split(b"\n") if line.strip()]


def _parse(line: bytes) -> Fields | None:
    try:
        return Fields.parse(line, "a line", TableError)
    except TableError:
        return None
