"""How a program such as the desk talks to the commands that it starts.

The program starts `verix-anon COMMAND ...` with pipes for stdin, stdout and stderr. It passes the
rest in environment variables, because a list of processes does not show them:

- VERIX_ATTENDED=1: progress goes to stderr as lines of JSON, `{"stage", "done", "total"}`, between
  the lines for people. The command ends when its stdin is closed, as it does on SIGTERM and Ctrl-C.
  So no command outlives the program, however the program ended.
- VERIX_SEEN=DIGEST: the SHA-256 of the roles file that the program showed. `prepare` and `init
  --overwrite` stop if the file has changed since then.
- VERIX_PASSPHRASE and VERIX_TOKEN hold secrets, as in a terminal (docs/reference/cli.md).
"""

import json
import os
import signal
import sys
import time
from threading import Thread

from verix_anon.platform import interrupt

ATTENDED = "VERIX_ATTENDED"
SEEN = "VERIX_SEEN"
GRACE_SECONDS = 10.0
"""Time to clean up files that are half-written."""
BETWEEN_SECONDS = 0.1
KILLED = 137
"""The exit code of a process that was killed."""
_last: dict[str, float] = {}


def is_attended() -> bool:
    """Whether a program, not a person, reads the output."""
    return bool(os.environ.get(ATTENDED))


def seen_roles() -> str:
    """Return the digest of the roles file that was shown, or "" if none is given."""
    return os.environ.get(SEEN, "")


def report(stage: str, done: int, total: int) -> None:
    """Write a line to stderr: always the first and the last, else a few per second at most."""
    now = time.monotonic()
    if 0 < done < total and now - _last.get(stage, -1.0) < BETWEEN_SECONDS:
        return
    _last[stage] = now
    line = json.dumps({"stage": stage, "done": done, "total": total})
    print(line, file=sys.stderr, flush=True)


def reported(line: str) -> tuple[str, int, int] | None:
    """Return stage, done and total from a line of `report`, or None for any other line."""
    if not line.startswith("{"):
        return None
    try:
        match json.loads(line):
            case {"stage": str(stage), "done": int(done), "total": int(total)}:
                return stage, done, total
    except ValueError:
        pass
    return None


def attend() -> None:
    """Handle SIGTERM and the end of stdin like Ctrl-C from now on."""
    for number in (signal.SIGTERM, signal.SIGINT):
        # A program that was started in the background passes on a SIGINT that is ignored.
        signal.signal(number, signal.default_int_handler)
    Thread(target=_watch, args=(sys.stdin.fileno(),), daemon=True).start()


def _watch(descriptor: int) -> None:
    while os.read(descriptor, 1 << 12):
        pass
    interrupt()
    # Compiled code does not notice a signal until it returns.
    time.sleep(GRACE_SECONDS)
    os._exit(KILLED)
