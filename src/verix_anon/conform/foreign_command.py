"""Run a foreign command in a process group of its own, which ends with it or at a time limit."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from verix_anon.errors import TableError
from verix_anon.fields import printable
from verix_anon.files.store import reason
from verix_anon.platform import end_group

MOST_HEARD = 4096
"""How many bytes of a command's output are kept; a few lines of them are shown."""
MOST_SHOWN = 300
LINGERS = 1.0
"""How long to wait for the end of the output: a child of the command may hold it open."""

CRASHES = (
    b"Traceback (most recent call last)",
    b"panicked at",
    b"goroutine 1 [running]",
    b'Exception in thread "',
)
"""What crashing programs in Python, Rust, Go and Java print; their exit codes may mean refusal."""

_groups: set[int] = set()
"""Process groups that run now"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int | None
    """Its exit code, below 0 for a signal, or None if it was ended at the time limit"""
    seconds: float
    said: str
    """The last line that it printed, cut and without anything that a terminal would obey"""
    crashed: bool = False
    """Whether it printed what a crashing program prints"""


def filled(
    command: Sequence[str], places: Mapping[str, object], appended: Sequence[str]
) -> list[str]:
    """Return the command with paths in place of `{NAME}`; without any, append these words."""
    if not any(f"{{{name}}}" in word for word in command for name in places):
        command = [*command, *appended]
    words = []
    for word in command:
        for name, path in places.items():
            word = word.replace(f"{{{name}}}", str(path))
        words.append(word)
    return words


def run(words: Sequence[str], *, limit: float) -> Ended:
    """Run a command for at most so many seconds.

    Raises:
        TableError: It cannot be started.
    """
    began = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603, because to run the caller's command is the point
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise TableError(f"the command {words[0]!r} cannot be started ({why})") from None
    assert process.stdout is not None
    heard = _Heard()
    listening = threading.Thread(target=heard.listen, args=(process.stdout,), daemon=True)
    listening.start()
    code = None
    _groups.add(process.pid)
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # The whole group, because processes that it started would go on.
        end_group(process.pid, at_once=True)
        _groups.remove(process.pid)
        process.wait()
    listening.join(LINGERS)
    seconds = time.monotonic() - began
    lines = [line.strip() for line in heard.end.decode(errors="replace").splitlines()]
    said = next((line for line in reversed(lines) if line), "")
    return Ended(
        code=code, seconds=seconds, said=printable(said, MOST_SHOWN), crashed=heard.crashed
    )


def end_all() -> None:
    """End the commands that run now, whose callers wait for them."""
    for group in tuple(_groups):
        end_group(group, at_once=True)


@dataclass(slots=True)
class _Heard:
    """The kept part of a command's output, so that endless output does not fill the disk."""

    end: bytes = b""
    crashed: bool = False

    def listen(self, source: IO[bytes]) -> None:
        with source:
            while piece := os.read(source.fileno(), MOST_HEARD):
                # With the end of the piece before, because a word may be cut in two.
                known = self.end + piece
                self.crashed |= any(mark in known for mark in CRASHES)
                self.end = known[-MOST_HEARD:]
