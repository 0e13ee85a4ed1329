"""A worker: a process with a memory limit that takes up jobs, one after the other.

    python -m verix_anon.service.worker NAME < SETTINGS

Its supervisor holds the other end of its stdin: when that closes, or at SIGTERM, the worker puts
its job back and ends at once, whatever it is doing. What it had made lies under the number of its
claim, where nobody looks, until it is swept.
"""

import contextlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from verix_anon.provider import local
from verix_anon.service import blobs, jobs, leases
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database
from verix_anon.service.leases import Claim, LostError
from verix_anon.service.logs import configure, log
from verix_anon.service.settings import Settings
from verix_anon.service.work import FailedError, LaterError, Workplace, deliver

__all__ = ["Worker", "main"]

POLL_SECONDS = 0.25
BEAT_SECONDS = 1.0
"""How often a worker says how far it is, unless its lease is shorter than three times that"""
DATABASE_SECONDS = 1.0
"""After what something is said again to a database that did not listen"""
CLAIM_SECONDS = 5.0
"""How long a worker that is stopped waits for a claim that is being made"""

Answer = TypeVar("Answer")


class Worker:
    """Takes up jobs until it is stopped."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings, self.name = settings, name
        self.database = Database(settings.database_url)
        self.blobs = Blobs(settings.blobs_url)
        self.claim: Claim | None = None
        self._claiming = Lock()

    def run(self) -> None:
        """Work without end."""
        while True:
            with self._claiming:
                self.claim = self._insist(self._take)
            if self.claim is None:
                time.sleep(POLL_SECONDS)
            else:
                self.work(self.claim)
                self.claim = None

    def work(self, claim: Claim) -> None:
        """Do a job, and say what became of it."""
        log_of = log.bind(job=claim.job_id, fence=claim.fence, worker=self.name)
        log_of.info("taken")
        place = Workplace(settings=self.settings, store=self.blobs, claim=claim)
        try:
            with Heartbeat(self, claim) as heart:
                job = self._insist(lambda: jobs.find(self.database, None, claim.job_id))
                if job is None:
                    raise LostError("the job was deleted")
                root, files = deliver(place, job, heart.progress)
                self._insist(lambda: leases.finish(self.database, claim, root=root, delivery=files))
            self._forget(claim)
            log_of.info("done")
        except LostError:
            log_of.warning("lost")
        except FailedError as failed:
            reason = failed.reason
            log_of.warning("failed", code=reason.code)
            self._end(lambda: leases.fail(self.database, claim, reason))
            self._forget(claim)
        except LaterError as later:
            log_of.warning("put back", why=later.why)
            delay = self.settings.retry_seconds
            self._end(lambda: leases.release(self.database, claim, delay_seconds=delay))

    def stop(self) -> None:
        """Put the job back and end this process."""
        # Held to the end: nothing is taken up after it.
        self._claiming.acquire(timeout=CLAIM_SECONDS)
        if (claim := self.claim) is not None:
            with contextlib.suppress(LostError, DBAPIError):
                leases.release(self.database, claim)
            Workplace(settings=self.settings, store=self.blobs, claim=claim).clear()
        # Not sys.exit, which would wait for the engine's threads.
        os._exit(0)

    def _take(self) -> Claim | None:
        return leases.claim(self.database, self.name, lease_seconds=self.settings.lease_seconds)

    def _forget(self, claim: Claim) -> None:
        """Delete what was uploaded for a job that has ended: nobody reads it again."""
        with contextlib.suppress(OSError):
            self.blobs.delete(blobs.uploads(claim.job_id))

    def _end(self, say: Callable[[], None]) -> None:
        with contextlib.suppress(LostError):
            self._insist(say)

    def _insist(self, say: Callable[[], Answer]) -> Answer:
        """Say something to the database until it listens: it may be restarted at any time."""
        while True:
            try:
                return say()
            except (InterfaceError, OperationalError) as error:
                log.warning("the database does not answer", error=type(error).__name__)
                time.sleep(DATABASE_SECONDS)


class Heartbeat:
    """Renews a claim beside the work, and tells the work when it was lost."""

    def __init__(self, worker: Worker, claim: Claim) -> None:
        self._worker, self._claim = worker, claim
        self._seconds = min(BEAT_SECONDS, worker.settings.lease_seconds / 3)
        self._progress: tuple[str, int, int] | None = None
        self._is_over, self._is_lost = Event(), Event()
        self._thread = Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def progress(self, stage: str, done: int, total: int) -> None:
        """What the engine calls; it ends work that is somebody else's by now."""
        self._progress = (stage, done, total)
        if self._is_lost.is_set():
            raise LostError("the job is another worker's by now, or was deleted")

    def _beat(self) -> None:
        of, seconds = self._worker, self._worker.settings.lease_seconds
        while not self._is_over.wait(self._seconds):
            try:
                leases.renew(
                    of.database, self._claim, lease_seconds=seconds, progress=self._progress
                )
            except LostError:
                self._is_lost.set()
                return
            except DBAPIError:
                # Said again at the next beat; the lease lasts for several.
                continue


def limit_memory(beyond: int) -> None:
    """Have this process raise MemoryError when it takes so many bytes more than it does now."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        taken = int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = taken + beyond if most == resource.RLIM_INFINITY else min(most, taken + beyond)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def main() -> None:
    """Read the settings, be ready, and work until the supervisor is gone or says so."""
    configure()
    # A thread of its own waits for it, so that a long computation does not hold it up.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure()
    worker = Worker(Settings.from_json(sys.stdin.readline()), sys.argv[1])

    def await_signal() -> None:
        signal.sigwait({signal.SIGTERM})
        worker.stop()

    def await_end() -> None:
        sys.stdin.read()
        worker.stop()

    for waiting in (await_signal, await_end):
        Thread(target=waiting, daemon=True).start()
    local.warm_up()
    limit_memory(worker.settings.worker_bytes)
    worker.run()


if __name__ == "__main__":
    main()
