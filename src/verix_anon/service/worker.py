"""A worker: a process with a memory limit that takes up jobs, one after the other.

    python -m verix_anon.service.worker NAME < SETTINGS

For each job it fetches the submission, runs the engine and stores the delivery. A job that does not
succeed ends in one of three ways. It has failed for good, and its owner is told why in a sentence
that repeats nothing of what was sent. There is no room for it now, and it is done later. Or another
worker has taken it over.

The supervisor holds the other end of the worker's stdin. When that closes, or at SIGTERM, the
worker puts its job back and ends at once. Files that it made so far lie under the number of its
claim, which is never read, until the sweep deletes them.
"""

import errno
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from threading import Event, Lock, Thread
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from verix_anon.errors import ContractError, MemoryShortError, ProviderError, TableError
from verix_anon.files.folder_writer import digest_of_file, write_receipt
from verix_anon.files.submissions import open_submission
from verix_anon.machine import available_memory
from verix_anon.progress import Progress
from verix_anon.protocol.providers import File
from verix_anon.provider import local
from verix_anon.service import blobs, engines, jobs, leases
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database, JobProgress, JobRow, Reason
from verix_anon.service.jobs import RequestRefusedError
from verix_anon.service.leases import LeasedJob, LostError
from verix_anon.service.logs import configure, log
from verix_anon.service.settings import ServiceSettings

POLL_SECONDS = 0.25
BEAT_SECONDS = 1.0
"""How often a worker says how far it is, unless its lease is shorter than three times that"""
DATABASE_SECONDS = 1.0
"""How long a worker waits before it asks a database again that did not answer"""
CLAIM_SECONDS = 5.0
"""How long a worker that is stopped waits for a claim that is being made"""
MAX_REFUSALS = 10
OF_THE_MACHINE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)
"""Errors that say nothing about the files: there is no room, or a disk is faulty"""
DAMAGED = Reason(
    code="damaged-submission",
    detail="the files are not a submission, or not the one that was announced; prepare it again",
)
NEVER = "there was no room for the job on this machine for as long as jobs are kept"
INTERNAL = Reason(
    code="internal",
    detail="the provider made a mistake, which its log names; nothing is wrong with the submission",
)
Answer = TypeVar("Answer")


class JobFailedError(ProviderError):
    """The job has failed for good."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.detail)
        self.reason = reason


class LaterError(ProviderError):
    """There is no room for the job at this moment; the message says what is lacking."""


class Worker:
    """Takes up jobs until it is stopped."""

    def __init__(self, settings: ServiceSettings, name: str) -> None:
        self.settings, self.name = settings, name
        self.database = Database(settings.database_url)
        self.blobs = Blobs(settings.blobs_url, seconds=settings.store_seconds)
        self.claim: LeasedJob | None = None
        self._claiming = Lock()

    def run(self) -> None:
        """Do jobs, one after the other, without end."""
        lease = self.settings.lease_seconds
        while True:
            with self._claiming:
                self.claim = self._insist(
                    lambda: leases.claim(self.database, self.name, lease_seconds=lease)
                )
            if self.claim is None:
                time.sleep(POLL_SECONDS)
            else:
                self.work(self.claim)
                self.claim = None

    def work(self, claim: LeasedJob) -> None:
        """Do a job, and note how it ended."""
        log_of = log.bind(job=claim.job_id, fence=claim.fence, worker=self.name)
        log_of.info("taken")
        try:
            with Heartbeat(self, claim) as heart:
                job = self._insist(lambda: jobs.find(self.database, None, claim.job_id))
                if job is None:
                    raise LostError("the job was deleted")
                root, files = self._deliver(claim, job, heart.progress)
                self._insist(lambda: leases.finish(self.database, claim, root=root, delivery=files))
            self._forget(claim)
            log_of.info("done")
        except LostError:
            log_of.warning("lost")
        except JobFailedError as failed:
            self._fail(claim, failed.reason)
        except LaterError as later:
            if self._insist(lambda: leases.is_overdue(self.database, claim, self.settings)):
                self._fail(claim, Reason(code="no-room", detail=f"{NEVER} ({later})"))
                return
            log_of.warning("put back", why=str(later))
            delay = self.settings.retry_seconds
            with suppress(LostError):
                self._insist(lambda: leases.release(self.database, claim, delay_seconds=delay))

    def stop(self) -> None:
        """Put the job back and end this process."""
        # The lock is kept, so that no further job is claimed.
        self._claiming.acquire(timeout=CLAIM_SECONDS)
        if (claim := self.claim) is not None:
            with suppress(LostError, DBAPIError):
                leases.release(self.database, claim)
            rmtree(self._folder(claim), ignore_errors=True)
        # Not sys.exit, which would wait for the engine's threads.
        os._exit(0)

    def _folder(self, claim: LeasedJob) -> Path:
        """Return the claim's own folder; its name tells the sweep which claim it belongs to."""
        return self.settings.work / f"{claim.job_id}-{claim.fence}"

    def _deliver(
        self, claim: LeasedJob, job: JobRow, progress: Progress
    ) -> tuple[str, tuple[File, ...]]:
        """Return the root of the job's delivery and its files, which are then in the blobs."""
        began, settings, folder = datetime.now(UTC), self.settings, self._folder(claim)
        submission, delivery = folder / "submission", folder / "delivery"
        key = settings.signer

        def sign(made: Path) -> None:
            if key is not None:
                write_receipt(made, key, began, datetime.now(UTC))

        with _judged(job, settings):
            # Only this user may read it.
            folder.mkdir(mode=0o700, parents=True)
            try:
                engine = _chosen(job, settings)
                # Submission and delivery lie in this folder before the delivery is stored.
                settings.check_room(2 * job.bytes)
                progress("fetch", 0, 1)
                self._fetch(job, submission)
                progress("read", 0, 1)
                stated = open_submission(submission)
                found = (stated.n_rows, len(stated.contract.quasi), stated.contract.min_leaf)
                if found != (job.rows, job.columns, job.min_leaf):
                    # It does not have the announced size, for which there is room.
                    raise JobFailedError(DAMAGED)
                header = engines.run(
                    engine, settings, submission, delivery, progress=progress, finish=sign
                )
                progress("store", 0, 1)
                return header.root.hex(), self._store(claim, delivery)
            finally:
                rmtree(folder, ignore_errors=True)

    def _fetch(self, job: JobRow, folder: Path) -> None:
        for file in job.files:
            target = folder / file.name
            try:
                self.blobs.get(blobs.upload(job.id, file.name), target, file.size)
            except FileNotFoundError:
                # This happens when a database was restored without the blobs: the file is lost.
                log.error("missing in the blobs", job=job.id)
                raise JobFailedError(INTERNAL) from None
            if digest_of_file(target) != file.sha256:
                # The digest was right when the file was uploaded.
                log.error("damaged in the blobs", job=job.id)
                raise JobFailedError(INTERNAL)

    def _store(self, claim: LeasedJob, folder: Path) -> tuple[File, ...]:
        files = []
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            name = path.relative_to(folder).as_posix()
            self.blobs.put(blobs.attempt(claim.job_id, claim.fence, name), path)
            files.append(File(name=name, size=path.stat().st_size, sha256=digest_of_file(path)))
        return tuple(files)

    def _forget(self, claim: LeasedJob) -> None:
        """Delete the uploaded files of a job that has ended: they are not needed any more."""
        with suppress(OSError):
            self.blobs.delete(blobs.uploads(claim.job_id))

    def _fail(self, claim: LeasedJob, reason: Reason) -> None:
        log_of = log.bind(job=claim.job_id, fence=claim.fence, worker=self.name)
        log_of.warning("failed", code=reason.code)
        with suppress(LostError):
            self._insist(lambda: leases.fail(self.database, claim, reason))
            # Not of a job that was lost: who has it now reads the files.
            self._forget(claim)

    def _insist(self, say: Callable[[], Answer]) -> Answer:
        """Repeat a request until the database answers, as it may be restarted at any time."""
        while True:
            try:
                return say()
            except (InterfaceError, OperationalError) as error:
                log.warning("the database does not answer", error=type(error).__name__)
                time.sleep(DATABASE_SECONDS)


class Heartbeat:
    """Renews a claim while the work goes on, and stops the work if the claim was lost."""

    def __init__(self, worker: Worker, claim: LeasedJob) -> None:
        self._worker, self._claim = worker, claim
        self._seconds = min(BEAT_SECONDS, worker.settings.lease_seconds / 3)
        self._progress: JobProgress | None = None
        self._is_over, self._is_lost = Event(), Event()
        self._thread = Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def progress(self, stage: str, done: int, total: int) -> None:
        """Note the engine's progress; LostError ends the work if the claim was lost."""
        self._progress = JobProgress(stage, done, total)
        if self._is_lost.is_set():
            raise LostError("another worker has the job now, or it was deleted")

    def _beat(self) -> None:
        of, claim, settings = self._worker, self._claim, self._worker.settings
        until = time.monotonic() + settings.job_seconds
        most = f"the job took longer than the {settings.job_seconds:,.0f} s that it may take"
        while not self._is_over.wait(self._seconds):
            is_late = time.monotonic() > until
            try:
                if is_late:
                    leases.fail(of.database, claim, Reason(code="too-long", detail=most))
                    of._forget(claim)
                else:
                    lease, progress = settings.lease_seconds, self._progress
                    leases.renew(of.database, claim, lease_seconds=lease, progress=progress)
            except LostError:
                self._is_lost.set()
            except Exception:  # noqa: S112
                # The database does not answer, or the engine has taken all memory. The next beat
                # tries again, and a lease lasts for several beats.
                continue
            if is_late and not self._is_over.is_set():
                # Nothing else would end the engine, even if the job was lost.
                log.warning("failed", code="too-long", job=claim.job_id, worker=of.name)
                rmtree(of._folder(claim), ignore_errors=True)
                os._exit(1)


@contextmanager
def _judged(job: JobRow, settings: ServiceSettings) -> Iterator[None]:
    """Turn every error into what it means for the job: failed, or later."""
    try:
        yield
    except (LostError, JobFailedError, LaterError):
        raise
    except MemoryError:
        raise JobFailedError(_too_large(job, settings)) from None
    except OSError as error:
        raise LaterError(_why(error)) from None
    except (ContractError, TableError) as error:
        # The error that caused this one says whether the files or the machine are at fault.
        cause = error.__context__
        if isinstance(cause, MemoryError):
            raise JobFailedError(_too_large(job, settings)) from None
        if isinstance(error, MemoryShortError):
            raise LaterError("memory") from None
        if isinstance(cause, OSError) and cause.errno in OF_THE_MACHINE:
            raise LaterError(_why(cause)) from None
        raise JobFailedError(DAMAGED) from None
    except ProviderError:
        # Others may hold the memory now, or the cluster may be away. Try again, but not forever.
        if job.fence < MAX_REFUSALS:
            raise LaterError("the engine refused") from None
        raise JobFailedError(INTERNAL) from None
    except Exception as error:
        # Without the message and any value, which may hold data that was sent.
        places = [f"{at.filename}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)]
        log.error("failed by our mistake", job=job.id, error=type(error).__name__, at=places)
        raise JobFailedError(INTERNAL) from None


def _why(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def _too_large(job: JobRow, settings: ServiceSettings) -> Reason:
    needed = engines.needed_bytes(settings, job)
    return Reason(
        code="job-too-large",
        detail=f"the job took more than the {settings.worker_bytes / 1e9:,.2f} GB of memory that a"
        f" worker has here, although {needed / 1e9:,.2f} GB were expected for its announced size",
    )


def _chosen(job: JobRow, settings: ServiceSettings) -> str:
    """Choose the engine again, because settings may have changed since the job was announced."""
    try:
        engine = engines.choose(settings, job)
    except RequestRefusedError as error:
        raise JobFailedError(Reason(code=error.code, detail=str(error))) from None
    available = available_memory()
    needed = engines.needed_bytes(settings, job)
    if engine == engines.LOCAL and available is not None and needed > available:
        raise LaterError("memory")
    return engine


def limit_memory(beyond: int) -> None:
    """Let this process raise MemoryError when it takes this many bytes more than it does now."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        taken = int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = taken + beyond if most == resource.RLIM_INFINITY else min(most, taken + beyond)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def main() -> None:
    """Read the settings, and work until the supervisor ends or says so."""
    configure()
    # A separate thread waits for the signal, so that a long computation does not delay it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Worker(ServiceSettings.from_json(sys.stdin.readline()), sys.argv[1])

    def stop_after(wait: Callable[[], object]) -> None:
        wait()
        worker.stop()

    for wait in (lambda: signal.sigwait({signal.SIGTERM}), sys.stdin.read):
        Thread(target=stop_after, args=(wait,), daemon=True).start()
    local.warm_up()
    limit_memory(worker.settings.worker_bytes)
    worker.run()


if __name__ == "__main__":
    main()
