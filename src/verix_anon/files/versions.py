"""A text that two may edit: who writes says which version was read, and learns of another."""

import os
from collections.abc import Iterator
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from verix_anon.errors import TableError
from verix_anon.files.aside import begun, write_bytes

__all__ = [
    "SEEN",
    "Version",
    "check_seen",
    "differences",
    "read_version",
    "replace_seen",
    "replace_version",
    "seen_version",
]

SEEN = "VERIX_SEEN"
"""The variable by which a page tells a command which version of a file it was started for."""
MOST_SEEN = 64
_WRITING = Lock()
_seen: dict[str, str] = {}
"""What was read last, by digest, to say what changed since."""


class Version(NamedTuple):
    """What a file holds, and a short name for that."""

    text: str
    digest: str


def read_version(path: Path) -> Version:
    """The file as it is; without one, nothing."""
    try:
        data = path.read_bytes()
        found = Version(data.decode("utf-8"), sha256(data).hexdigest())
    except FileNotFoundError:
        return Version("", "")
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"{path} cannot be read ({error})") from None
    _seen[found.digest] = found.text
    for old in list(_seen)[:-MOST_SEEN]:
        _seen.pop(old, None)
    return found


def seen_version(digest: str) -> str | None:
    """The text of a version that was read not long ago."""
    return _seen.get(digest)


def replace_version(path: Path, text: str, was: str) -> Version | None:
    """Write the file for its owner alone if it is as it was; else nothing, and give what it is."""
    with _WRITING, begun(path, overwrite=True, folder=False, private=True) as aside:
        write_bytes(aside.path, text.encode())
        aside.settle()
        # As late as can be, because other processes do not wait for this one.
        now = read_version(path)
        if now.digest != was:
            return now
        aside.take_name()
    return None


def check_seen(path: Path) -> None:
    """Raise if this command was started for another version of the file."""
    was = os.environ.get(SEEN)
    if was and read_version(path).digest != was:
        raise TableError(_changed(path))


def replace_seen(path: Path, text: str) -> bool:
    """Write the file if it is the version that this command was started for; False: for none.

    Raises:
        TableError: It is another one by now.
    """
    was = os.environ.get(SEEN)
    if not was:
        return False
    if replace_version(path, text, was) is not None:
        raise TableError(_changed(path))
    return True


def _changed(path: Path) -> str:
    return f"{path} was changed since, by somebody else; nothing was written: look at it anew"


def differences(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The lines that differ, with `-` or `+`, and a few around them, with a blank."""
    lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    for line in list(lines)[2:]:
        if not line.startswith("@"):
            yield line[:1], line[1:]
