"""Long work beside the pages: a task is a command in a process of its own.

The command is the one the page shows. What it makes lies in the job's folder; of the task itself
only how far it is, and what it said, is known, and that ends with the desk. See `parent_process`
for how the two talk.
"""

import os
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread, Timer

from verix_anon.errors import TableError
from verix_anon.parent_process import ATTENDED, reported
from verix_anon.platform import IS_POSIX, end_group

# -P: files in the folder are data, and must never be imported as modules.
PROGRAM = (sys.executable, "-P", "-m", "verix_anon")
GRACE_SECONDS = 10.0
"""How long a command has to remove its unfinished files."""
MOST_LINES = 200
LONGEST_LINE = 1 << 14
TOUCHING = frozenset({"init", "prepare"})
BUSY = "a command runs for this job; wait for it, or cancel it"


@dataclass(slots=True, eq=False)
class DeskTask:
    """A command that runs for a job, or the last one that did."""

    job: str
    words: tuple[str, ...]
    """The command without its own name."""
    then: str
    """The path of the page to show when the command ended well."""
    process: subprocess.Popen[bytes] = field(repr=False)
    good: frozenset[int] = frozenset({0})
    """The exit codes that are results: a command may work well and find something bad."""
    stages: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each stage, in order: how much is done, and how much there is to do."""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    """The last lines of its stderr."""
    code: int | None = None
    """The exit code; None while the command runs."""
    is_cancelled: bool = False

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.code is None

    @property
    def is_well(self) -> bool:
        """Whether it ended, with a result."""
        return self.code in self.good

    @property
    def shown(self) -> str:
        """The command as people type it into a shell."""
        return shlex.join(["verix-anon", *self.words])

    @property
    def stage(self) -> tuple[str, int, int]:
        """The last stage that began, and how far it is; empty and zero before the first."""
        for name, (done, total) in reversed(self.stages.items()):
            return name, done, total
        return "", 0, 0

    def cancel(self) -> None:
        """End the command and its child processes; give it time to clean up first."""
        if not self.is_running:
            return
        self.is_cancelled = True
        self._end(at_once=False)
        timer = Timer(GRACE_SECONDS, self._end, kwargs={"at_once": True})
        timer.daemon = True
        timer.start()

    def end(self, until: float) -> None:
        """Wait for the end until this time, then kill the command."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, until - time.monotonic()))
        self._end(at_once=True)
        self.process.wait()

    def _end(self, *, at_once: bool) -> None:
        # Its process id is not given to another process before it was waited for.
        if self.process.returncode is not None:
            return
        if at_once or IS_POSIX:
            end_group(self.process.pid, at_once=at_once)
        elif self.process.stdin is not None:
            # The command ends by itself when its stdin is closed.
            self.process.stdin.close()

    def attend(self) -> None:
        """Collect the command's output until it ends."""
        assert self.process.stderr is not None
        while line := self.process.stderr.readline(LONGEST_LINE):
            text = line.decode("utf-8", "replace").rstrip()
            if (progress := reported(text)) is None:
                self.lines.append(text)
            else:
                stage, done, total = progress
                self.stages[stage] = (done, total)
        code = self.process.wait()
        for stream in (self.process.stdin, self.process.stderr):
            assert stream is not None
            stream.close()
        self.code = code


class Tasks:
    """The tasks of a desk: one at a time for each job."""

    def __init__(self, folder: Path, program: Sequence[str] = PROGRAM) -> None:
        self.folder, self.program = folder, program
        self._tasks: dict[str, DeskTask] = {}
        self._lock = Lock()

    def of(self, job: str) -> DeskTask | None:
        """Return the task that runs for a job, or the last one that ran."""
        return self._tasks.get(job)

    def check_still(self, job: str) -> None:
        """Raise TableError while a command runs that reads or writes the job's roles file."""
        task = self.of(job)
        if task is not None and task.is_running and task.words[0] in TOUCHING:
            raise TableError(BUSY)

    def start(
        self,
        job: str,
        words: Sequence[str],
        *,
        then: str,
        good: frozenset[int] = frozenset({0}),
        environment: Mapping[str, str] | None = None,
    ) -> DeskTask:
        """Start a command in the desk's folder.

        What must not be seen in a list of processes, or says nothing to people, goes by its
        `environment`.

        Raises:
            TableError: Another one runs for this job, or it cannot be told so.
        """
        with self._lock:
            before = self._tasks.get(job)
            if before is not None and before.is_running:
                raise TableError(BUSY)
            try:
                own = {**_search_path(), **(environment or {}), ATTENDED: "1", "NO_COLOR": "1"}
                process = subprocess.Popen(  # noqa: S603, because the command is our own
                    [*self.program, *words],
                    cwd=self.folder,
                    env={**os.environ, **own},
                    # The command ends when the other end of this is closed, however this process
                    # ended.
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except (OSError, ValueError):
                # The system's message may repeat a secret.
                raise TableError(
                    "the command cannot be started: something in the form is too long, or holds a"
                    " character that no command can be given"
                ) from None
            task = DeskTask(job, tuple(words), then, process, good)
            self._tasks[job] = task
        Thread(target=task.attend, daemon=True).start()
        return task

    def close(self) -> None:
        """End all running tasks."""
        running = [task for task in self._tasks.values() if task.is_running]
        for task in running:
            task.cancel()
        until = time.monotonic() + GRACE_SECONDS
        for task in running:
            task.end(until)


def _search_path() -> dict[str, str]:
    """Return PYTHONPATH with absolute paths: the command runs in another folder than the desk."""
    given = os.environ.get("PYTHONPATH")
    places = [str(Path(place).absolute()) for place in (given or "").split(os.pathsep)]
    return {"PYTHONPATH": os.pathsep.join(places)} if given else {}
