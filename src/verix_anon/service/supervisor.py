"""Starts the workers, replaces dead ones, sweeps, and ends the workers with the server.

The sweep deletes expired jobs, and files that belong to no job. A job's row is made before its
files. So the sweep lists the files first and reads the rows then: a file without a row belongs to
no job. Files are deleted before rows are written, because a full disk takes no new rows.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from threading import Event, Thread

from sqlalchemy import delete, select
from sqlalchemy.exc import DBAPIError

from verix_anon.machine import total_memory
from verix_anon.protocol.providers import JobState
from verix_anon.service import blobs, daily_counts, engines, leases
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database, JobRow, ServerRow, database_time, now
from verix_anon.service.logs import log, where
from verix_anon.service.settings import ServiceSettings

MODULE = "verix_anon.service.worker"
HTTP_MODULE = "verix_anon.service.server"
WATCH_SECONDS = 0.2
PROBE_SECONDS = 2.0
FORGOTTEN_SECONDS = 86_400.0
"""How long the row of a server that is gone is kept"""
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
    module: str
    at: float = field(default_factory=time.monotonic)


class Supervisor:
    """The workers of this server, which run while it is entered.

    Beyond the first HTTP process, which is this one, it also runs those that share the listener.
    """

    def __init__(self, settings: ServiceSettings, listener: socket.socket | None = None) -> None:
        engines.check(settings)
        self.settings, self._listener = settings, listener
        self.database = Database(settings.database_url)
        self.blobs = Blobs(settings.blobs_url, seconds=settings.store_seconds)
        self._workers: list[_Started] = []
        self._is_over = Event()
        # Each in a thread of its own: a store that hangs holds up a sweep, and nothing else.
        rounds = (
            (WATCH_SECONDS, self._replace),
            (PROBE_SECONDS, self._probe),
            (settings.sweep_seconds, self._sweep),
        )
        self._threads = [Thread(target=self._repeat, args=each, daemon=True) for each in rounds]

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the workers that run."""
        workers = (each for each in self._workers if each.module != HTTP_MODULE)
        return tuple(each.process.pid for each in workers if each.process.poll() is None)

    def __enter__(self) -> "Supervisor":
        """Start the workers, and watch them from threads."""
        needed, there = self.settings.workers * self.settings.worker_bytes, total_memory()
        if there is not None and needed > there:
            log.warning("workers may take more memory than there is", bytes=needed, there=there)
        more = self.settings.http_processes - 1 if self._listener else 0
        modules = [MODULE] * self.settings.workers + [HTTP_MODULE] * more
        self._workers = [self._started(module) for module in modules]
        self._survive(self._probe)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers: each puts its job back for others first."""
        self._is_over.set()
        # It starts no worker after this. A store that hangs holds up the others, but not the end.
        self._threads[0].join(STOP_SECONDS)
        for worker in self._workers:
            worker.process.terminate()
        until = time.monotonic() + STOP_SECONDS
        for worker in self._workers:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))
            if worker.process.poll() is None:
                worker.process.kill()
            self._bury(worker)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self.database.close()

    def _started(self, module: str) -> _Started:
        name = f"{os.uname().nodename}-{secrets.token_hex(4)}"
        shared = [self._listener.fileno()] if module == HTTP_MODULE and self._listener else []
        process = subprocess.Popen(  # noqa: S603, because the command is our own
            [sys.executable, "-m", module, name, *map(str, shared)],
            stdin=subprocess.PIPE,
            env=ENVIRONMENT | os.environ,
            pass_fds=shared,
        )
        assert process.stdin is not None
        # A worker that is dead already is seen below.
        with suppress(BrokenPipeError):
            process.stdin.write(self.settings.to_json().encode() + b"\n")
            process.stdin.flush()
        return _Started(process, name, module)

    def _bury(self, worker: _Started) -> None:
        """Free the dead worker's job at once; otherwise it would wait until its lease ends."""
        worker.process.wait()
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        with suppress(DBAPIError):
            leases.lose(self.database, worker.name)

    def _repeat(self, seconds: float, act: Callable[[], object]) -> None:
        """Repeat an action until the end, even if it raises errors."""
        while not self._is_over.wait(seconds):
            self._survive(act)

    def _survive(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:
            # The next round finds what this one left. No text: it may name jobs and buckets.
            where_ = where(error.__traceback__)
            log.error("not done", what=act.__name__, error=type(error).__name__, where=where_)

    def _replace(self) -> None:
        """Start a worker for each that is dead."""
        for i, worker in enumerate(self._workers):
            is_dead = worker.process.poll() is not None
            if is_dead and time.monotonic() > worker.at + RESTART_SECONDS:
                log.warning("a worker died", worker=worker.name, code=worker.process.returncode)
                self._bury(worker)
                self._workers[i] = self._started(worker.module)

    def _probe(self) -> None:
        """Write bytes to the folder and the store, and a row that tells what works."""
        try:
            blobs.check_folder(self.settings.folder)
            self.blobs.check()
            is_storing = True
        except OSError as error:
            log.warning("the files cannot be written", error=type(error).__name__)
            is_storing = False
        with self.database.write() as session:
            name, at, alive = self.settings.server, database_time(session), len(self.pids)
            session.merge(ServerRow(name=name, seen=at, workers=alive, is_storing=is_storing))

    def _sweep(self) -> None:
        sweep(self.settings, self.database, self.blobs)


def sweep(settings: ServiceSettings, database: Database, store: Blobs) -> None:
    """Delete expired jobs, and all files that belong to no job or to a lost attempt."""
    stored = store.attempts()
    staged, worked = _names(settings.staging), _names(settings.work)
    with database.read() as session:
        known = session.execute(select(JobRow.id, JobRow.state, JobRow.fence)).all()
        expired = set(session.scalars(select(JobRow.id).where(JobRow.expires < now())))
    found = [row for row in known if row.id not in expired]
    rows = {row.id: (row.state, row.fence) for row in found}
    uploading = {row.id for row in found if row.state == JobState.UPLOADING}
    gone = [blobs.job(job) for job in stored if job not in rows]
    lost = [
        blobs.attempt(job, fence) if fence else blobs.uploads(job)
        for job, fences in stored.items()
        for fence in fences
        if job in rows and _is_over(rows[job], fence, JobState.RUNNING, JobState.DONE)
    ]
    idle = [settings.staging / job for job in staged if job not in uploading]
    idle += [settings.work / claim for claim in worked if not _is_worked_on(rows, claim)]
    for folder in idle:
        rmtree(folder, ignore_errors=True)
    for prefix in gone + lost:
        store.delete(prefix)
    with database.write() as session:
        leases.expire(session)
        session.execute(delete(ServerRow).where(ServerRow.seen < now() - FORGOTTEN_SECONDS))
        over = delete(JobRow).where(JobRow.id.in_(expired), JobRow.expires < now())
        swept = session.scalars(over.returning(JobRow.tenant)).all()
        daily_counts.count(session, swept, daily_counts.EXPIRED)
        daily_counts.forget_old(session)


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def _is_over(row: tuple[str, int], fence: int, *going: JobState) -> bool:
    """Whether an attempt came to nothing; a fence above the row's belongs to one just begun."""
    state, last = row
    if not fence:  # The upload: a worker that was killed has not deleted it.
        return state in (JobState.DONE, JobState.FAILED)
    return fence < last or (fence == last and state not in going)


def _is_worked_on(rows: dict[str, tuple[str, int]], claim: str) -> bool:
    job, _, fence = claim.rpartition("-")
    known = job in rows and fence.isdecimal()
    return known and not _is_over(rows[job], int(fence), JobState.RUNNING)
