"""Read and write text files that several people edit, so that no one overwrites unseen changes.

A version is known by its digest. A writer says which version was read, and is told if the file has
changed since.
"""

from collections.abc import Iterator
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from verix_anon.errors import TableError
from verix_anon.files.atomic_write import begun, write_bytes

MOST_SEEN = 64
_WRITING = Lock()
_seen: dict[str, str] = {}
"""The texts that were read last, by digest, to say what changed since."""


class Version(NamedTuple):
    """The text of a file, and its digest."""

    text: str
    digest: str


def read_version(path: Path) -> Version:
    """Return the file as it is now; both fields are empty if there is no file."""
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
    """Return the text of a version that was read not long ago."""
    return _seen.get(digest)


def replace_version(path: Path, text: str, was: str) -> Version | None:
    """Write the file, readable only for its owner; if it changed, return its version instead."""
    with _WRITING, begun(path, overwrite=True, folder=False, private=True) as aside:
        write_bytes(aside.path, text.encode())
        aside.settle()
        # Check as late as possible, because other processes do not wait for this one.
        now = read_version(path)
        if now.digest != was:
            return now
        aside.take_name()
    return None


def check_version(path: Path, was: str) -> None:
    """Raise TableError unless the file is the version with this digest."""
    if read_version(path).digest != was:
        raise other_version(path)


def other_version(path: Path) -> TableError:
    """Return the error for a file that has changed by now."""
    return TableError(
        f"{path} was changed since it was read, by somebody else; nothing was written: look at it"
        " again"
    )


def differences(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that differ with `-` or `+`, and a few lines around them with a blank."""
    lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    for line in list(lines)[2:]:
        if not line.startswith("@"):
            yield line[:1], line[1:]
