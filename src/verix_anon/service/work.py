"""What is done for one job: fetch the submission, run the engine, store the delivery.

Whatever goes wrong is one of three things: the job has failed for good, and its owner is told why
in a sentence that repeats nothing of what was sent; there is no room for it now, and it is done
later; or it was lost to another worker.
"""

import errno
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

from verix_anon.errors import ContractError, MemoryShortError, ProviderError, TableError
from verix_anon.files.hashed import digest_of_file
from verix_anon.files.keys import read_signing_key
from verix_anon.files.submissions import open_submission
from verix_anon.machine import available_memory
from verix_anon.progress import Progress
from verix_anon.provider.receipts import write_receipt
from verix_anon.service import blobs, engines
from verix_anon.service.blobs import Blobs
from verix_anon.service.engines import Shape, Task, TooLargeError
from verix_anon.service.jobs import File, Job, Reason
from verix_anon.service.leases import Claim, LostError
from verix_anon.service.logs import log
from verix_anon.service.settings import Settings

__all__ = ["FailedError", "LaterError", "Workplace", "deliver"]

DAMAGED = Reason(
    code="damaged-submission",
    detail="the files are not a submission, or not the one that was announced; prepare it again",
)
INTERNAL = Reason(
    code="internal",
    detail="the provider made a mistake, which its log names; nothing is wrong with the submission",
)
OF_THE_MACHINE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)
"""Errors that say nothing of the files: there is no room, or a disk is ill"""
MAX_REFUSALS = 10


class FailedError(ProviderError):
    """The job has failed for good."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.detail)
        self.reason = reason


class LaterError(ProviderError):
    """There is no room for the job at this moment."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """A claim's own folder, for this user's eyes alone, and what it works with."""

    settings: Settings
    store: Blobs
    claim: Claim

    @property
    def folder(self) -> Path:
        """Of this claim and no other; who looks for leftovers knows by its name whose it is."""
        return self.settings.work / f"{self.claim.job_id}-{self.claim.fence}"

    @property
    def submission(self) -> Path:
        """What is worked on."""
        return self.folder / "submission"

    @property
    def delivery(self) -> Path:
        """What is made."""
        return self.folder / "delivery"

    def __enter__(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True)

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the folder."""
        rmtree(self.folder, ignore_errors=True)


def deliver(place: Workplace, job: Job, progress: Progress) -> tuple[str, tuple[File, ...]]:
    """Do a job; the root and the files of its delivery, which lie in the blobs."""
    began = datetime.now(UTC)
    with _judged(job, place.settings), place:
        engine = _chosen(job, place.settings)
        progress("fetch", 0, 1)
        _fetch(place, job)
        progress("read", 0, 1)
        _check_announced(place.submission, job)
        task = Task(
            submission=place.submission,
            delivery=place.delivery,
            progress=progress,
            finish=_signing(place.settings, began),
        )
        header = engines.run(engine, place.settings, task)
        progress("store", 0, 1)
        return header.root.hex(), _store(place)


def shape(job: Job) -> Shape:
    """What the memory that a job takes depends on."""
    return Shape(
        rows=job.rows,
        columns=job.columns,
        min_leaf=job.min_leaf,
        file_bytes=sum(file.size for file in job.files),
    )


@contextmanager
def _judged(job: Job, settings: Settings) -> Iterator[None]:
    """Say of every error what it means for the job."""
    try:
        yield
    except (LostError, FailedError, LaterError):
        raise
    except MemoryError:
        raise FailedError(_too_large(job, settings)) from None
    except OSError as error:
        raise LaterError(_why(error)) from None
    except (ContractError, TableError) as error:
        raise _judgement(error, job, settings) from None
    except ProviderError:
        # For memory that others have now, or a cluster that is away; but not for ever.
        if job.fence < MAX_REFUSALS:
            raise LaterError("the engine refused") from None
        raise FailedError(INTERNAL) from None
    except Exception as error:
        # Neither the message nor a value, which may be what was sent.
        places = [f"{at.filename}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)]
        log.error("failed by our mistake", job=job.id, error=type(error).__name__, at=places)
        raise FailedError(INTERNAL) from None


def _judgement(error: Exception, job: Job, settings: Settings) -> ProviderError:
    """What a sentence about files means, by what it was made from."""
    cause = error.__context__
    if isinstance(cause, MemoryError):
        return FailedError(_too_large(job, settings))
    if isinstance(error, MemoryShortError):
        return LaterError("memory")
    if isinstance(cause, OSError) and cause.errno in OF_THE_MACHINE:
        return LaterError(_why(cause))
    return FailedError(DAMAGED)


def _why(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def _too_large(job: Job, settings: Settings) -> Reason:
    needed = engines.needed_bytes(shape(job), threads=engines.threads(settings))
    return Reason(
        code="job-too-large",
        detail=f"the job took more than the {settings.worker_bytes / 1e9:,.2f} GB of memory that a"
        f" worker has here, though by what was announced {needed / 1e9:,.2f} GB would do",
    )


def _chosen(job: Job, settings: Settings) -> str:
    """The engine for the job: settings may have changed since it was announced."""
    try:
        engine = engines.choose(settings, shape(job))
    except TooLargeError as error:
        raise FailedError(Reason(code="job-too-large", detail=str(error))) from None
    available = available_memory()
    needed = engines.needed_bytes(shape(job), threads=engines.threads(settings))
    if engine == engines.LOCAL and available is not None and needed > available:
        raise LaterError("memory")
    return engine


def _fetch(place: Workplace, job: Job) -> None:
    for file in job.files:
        target = place.submission / file.name
        try:
            place.store.get(blobs.upload(job.id, file.name), target)
        except FileNotFoundError:
            # Such as after a database was restored without the blobs: it will not come back.
            log.error("missing in the blobs", job=job.id)
            raise FailedError(INTERNAL) from None
        if digest_of_file(target) != file.sha256:
            # It had its digest when it was uploaded.
            log.error("damaged in the blobs", job=job.id)
            raise FailedError(INTERNAL)


def _check_announced(folder: Path, job: Job) -> None:
    """Raise unless the submission is of the size for which there is room."""
    stated = open_submission(folder)
    found = (stated.n_rows, len(stated.contract.quasi), stated.contract.min_leaf)
    if found != (job.rows, job.columns, job.min_leaf):
        raise FailedError(DAMAGED)


def _signing(settings: Settings, began: datetime) -> Callable[[Path], object] | None:
    if settings.key_file is None:
        return None
    try:
        key = read_signing_key(settings.key_file)
    except TableError:
        raise LaterError("the key cannot be read") from None
    return lambda folder: write_receipt(folder, key, began, datetime.now(UTC))


def _store(place: Workplace) -> tuple[File, ...]:
    folder, claim = place.delivery, place.claim
    files = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        name = path.relative_to(folder).as_posix()
        place.store.put(blobs.attempt(claim.job_id, claim.fence, name), path)
        files.append(File(name=name, size=path.stat().st_size, sha256=digest_of_file(path)))
    return tuple(files)
