"""How a program that starts our commands, as the desk does, talks with them.

The program starts `verix-anon COMMAND ...` with pipes for stdin, stdout and stderr, and says the
rest by the environment, which is not seen in a list of processes:

- VERIX_ATTENDED=1: progress goes to stderr as lines of JSON, `{"stage", "done", "total"}`, between
  the lines for people. The command ends when its stdin is closed, as it does by SIGTERM and Ctrl-C:
  so no command outlives the program, however that ended.
- VERIX_SEEN=DIGEST: the roles file that was shown has this SHA-256. `prepare` and `init
  --overwrite` refuse to go on if the file is another one by now.
- VERIX_PASSPHRASE and VERIX_TOKEN hold secrets, as they do for everybody (docs/reference/cli.md).
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
"""To put away what is half-written."""
BETWEEN_SECONDS = 0.1
KILLED = 137
"""The exit code of a process that was killed."""
_last: dict[str, float] = {}


def is_attended() -> bool:
    """Whether a program reads what people would."""
    return bool(os.environ.get(ATTENDED))


def seen_roles() -> str:
    """Return the digest of the roles file that was shown; empty if nobody says so."""
    return os.environ.get(SEEN, "")


def report(stage: str, done: int, total: int) -> None:
    """A line on stderr, a few times a second at most, and always for the first and the last."""
    now = time.monotonic()
    if 0 < done < total and now - _last.get(stage, -1.0) < BETWEEN_SECONDS:
        return
    _last[stage] = now
    line = json.dumps({"stage": stage, "done": done, "total": total})
    print(line, file=sys.stderr, flush=True)


def reported(line: str) -> tuple[str, int, int] | None:
    """Return the stage that a line of `report` is about, and how far it is; else None."""
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
    """From here on, SIGTERM and the end of stdin are interruptions, as Ctrl-C is."""
    for number in (signal.SIGTERM, signal.SIGINT):
        # A program that was started in the background hands down a SIGINT that is ignored.
        signal.signal(number, signal.default_int_handler)
    Thread(target=_watch, args=(sys.stdin.fileno(),), daemon=True).start()


def _watch(descriptor: int) -> None:
    while os.read(descriptor, 1 << 12):
        pass
    interrupt()
    # Compiled code hears no signal before it returns.
    time.sleep(GRACE_SECONDS)
    os._exit(KILLED)
