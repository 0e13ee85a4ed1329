"""Starts the workers, replaces the dead, sweeps, and ends the workers with the server.

To sweep is to delete expired jobs and files that belong to none. A row is there before its job's
files and gone before them. So the files are listed first and the rows are read after: files that
have no row then are nobody's.
"""

import os
import secrets
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from threading import Event, Thread

from sqlalchemy import delete, select
from sqlalchemy.exc import DBAPIError

from verix_anon.protocol.providers import JobState
from verix_anon.service import blobs, engines, leases
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database, JobRow, now
from verix_anon.service.logs import log
from verix_anon.service.settings import ServiceSettings

MODULE = "verix_anon.service.worker"
WATCH_SECONDS = 0.2
RESTART_SECONDS = 1.0
"""Between two starts of a worker that dies at once"""
STOP_SECONDS = 10.0
"""How long workers have to put their jobs back"""
ENVIRONMENT = {
    # What an idle worker has set aside counts as taken: these set aside a gigabyte less.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class _Started:
    process: subprocess.Popen[bytes]
    name: str
    at: float = field(default_factory=time.monotonic)


class Supervisor:
    """The workers of this server, from `start` to `stop`; a context manager too."""

    def __init__(self, settings: ServiceSettings) -> None:
        engines.check(settings)
        self.settings = settings
        self.database = Database(settings.database_url)
        self.blobs = Blobs(settings.blobs_url)
        self._workers: list[_Started] = []
        self._is_over = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Supervisor":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the workers that run."""
        return tuple(w.process.pid for w in self._workers if w.process.poll() is None)

    def start(self) -> None:
        """Start the workers, and watch them from a thread."""
        self._workers = [self._started() for _ in range(self.settings.workers)]
        self._thread.start()

    def stop(self) -> None:
        """End the workers: each puts its job back for others first."""
        self._is_over.set()
        self._thread.join()
        for worker in self._workers:
            worker.process.terminate()
        until = time.monotonic() + STOP_SECONDS
        for worker in self._workers:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))
            if worker.process.poll() is None:
                worker.process.kill()
            self._bury(worker)
        self.database.close()

    def _started(self) -> _Started:
        name = f"{os.uname().nodename}-{secrets.token_hex(4)}"
        process = subprocess.Popen(  # noqa: S603, because the command is our own
            [sys.executable, "-m", MODULE, name],
            stdin=subprocess.PIPE,
            env=ENVIRONMENT | os.environ,
        )
        assert process.stdin is not None
        # A worker that is dead already is seen below.
        with suppress(BrokenPipeError):
            process.stdin.write(self.settings.to_json().encode() + b"\n")
            process.stdin.flush()
        return _Started(process, name)

    def _bury(self, worker: _Started) -> None:
        """What it held is free at once, and not only when its lease ends."""
        worker.process.wait()
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        with suppress(DBAPIError):
            leases.lose(self.database, worker.name)

    def _watch(self) -> None:
        swept = time.monotonic()
        while not self._is_over.wait(WATCH_SECONDS):
            for i, worker in enumerate(self._workers):
                is_dead = worker.process.poll() is not None
                if is_dead and time.monotonic() > worker.at + RESTART_SECONDS:
                    log.warning("a worker died", worker=worker.name, code=worker.process.returncode)
                    self._bury(worker)
                    try:
                        self._workers[i] = self._started()
                    except OSError as error:
                        # It is tried again at the next look.
                        log.error("no worker can be started", error=type(error).__name__)
            if time.monotonic() > swept + self.settings.sweep_seconds:
                swept = time.monotonic()
                try:
                    sweep(self.settings, self.database, self.blobs)
                except (DBAPIError, OSError) as error:
                    # The next one finds what this one left.
                    log.warning("not swept", error=type(error).__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """How much there was to delete."""

    jobs: int
    """That had expired"""
    leftovers: int
    """Folders of lost attempts and of jobs that are gone"""


def sweep(settings: ServiceSettings, database: Database, store: Blobs) -> Swept:
    """Delete expired jobs, and all files that belong to none or to an attempt that was lost."""
    leases.expire(database)
    with database.write() as session:
        old = delete(JobRow).where(JobRow.expires < now()).returning(JobRow.id)
        n_expired = len(session.scalars(old).all())
    stored = store.attempts()
    staged, worked = _names(settings.staging), _names(settings.work)
    with database.read() as session:
        found = session.execute(select(JobRow.id, JobRow.state, JobRow.fence)).all()
    rows = {row.id: (row.state, row.fence) for row in found}
    uploading = {row.id for row in found if row.state == JobState.UPLOADING}
    gone = [blobs.job(job) for job in stored if job not in rows]
    lost = [
        blobs.attempt(job, fence)
        for job, fences in stored.items()
        for fence in fences
        if job in rows and _is_over(rows[job], fence, JobState.RUNNING, JobState.DONE)
    ]
    for prefix in gone + lost:
        store.delete(prefix)
    idle = [settings.staging / job for job in staged if job not in uploading]
    idle += [settings.work / claim for claim in worked if not _is_worked_on(rows, claim)]
    for folder in idle:
        rmtree(folder, ignore_errors=True)
    return Swept(jobs=n_expired, leftovers=len(gone) + len(lost) + len(idle))


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def _is_over(row: tuple[str, int], fence: int, *going: JobState) -> bool:
    """Whether an attempt came to nothing; a newer one than the row knows of has just begun."""
    state, last = row
    return fence < last or (fence == last and state not in going)


def _is_worked_on(rows: dict[str, tuple[str, int]], claim: str) -> bool:
    job, _, fence = claim.rpartition("-")
    known = job in rows and fence.isdecimal()
    return known and not _is_over(rows[job], int(fence), JobState.RUNNING)
