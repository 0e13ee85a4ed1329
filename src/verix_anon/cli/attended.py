"""A command that another program attends: progress in lines of JSON, and an end when that one ends.

The desk starts its commands so, and holds the other end of their stdin.
"""

import json
import os
import signal
import sys
import time
from threading import Thread

from verix_anon.progress import ATTENDED

__all__ = ["attend", "is_attended", "report"]

GRACE_SECONDS = 10.0
"""To put away what is half-written."""
BETWEEN_SECONDS = 0.1
_last: dict[str, float] = {}


def is_attended() -> bool:
    """Whether a program reads what people would."""
    return bool(os.environ.get(ATTENDED))


def report(stage: str, done: int, total: int) -> None:
    """A line on stderr, a few times a second at most, and always for the first and the last."""
    now = time.monotonic()
    if 0 < done < total and now - _last.get(stage, -1.0) < BETWEEN_SECONDS:
        return
    _last[stage] = now
    line = json.dumps({"stage": stage, "done": done, "total": total})
    print(line, file=sys.stderr, flush=True)


def attend() -> None:
    """From here on, SIGTERM and the end of stdin are interruptions, as Ctrl-C is."""
    for number in (signal.SIGTERM, signal.SIGINT):
        # A program that was started in the background hands down a SIGINT that is ignored.
        signal.signal(number, signal.default_int_handler)
    Thread(target=_watch, args=(sys.stdin.fileno(),), daemon=True).start()


def _watch(descriptor: int) -> None:
    while os.read(descriptor, 1 << 12):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    # Compiled code hears no signal before it returns.
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
