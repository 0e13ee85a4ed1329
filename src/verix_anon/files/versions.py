"""A text that two may edit: who writes says which version was read, and learns of another."""

from collections.abc import Iterator
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from verix_anon.errors import TableError
from verix_anon.files.aside import write_bytes, written_aside

__all__ = ["Version", "differences", "read_version", "replace_version", "seen_version"]

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
    with _WRITING:
        now = read_version(path)
        if now.digest != was:
            return now
        with written_aside(path, overwrite=True, folder=False, private=True) as aside:
            write_bytes(aside, text.encode())
    return None


def differences(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The lines that differ, with `-` or `+`, and a few around them, with a blank."""
    lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    for line in list(lines)[2:]:
        if not line.startswith("@"):
            yield line[:1], line[1:]
