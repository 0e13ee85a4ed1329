"""What is done for one job: fetch the submission, run the engine, store the delivery.

Whatever goes wrong is one of three things: the job has failed for good, and its owner is told why
in a sentence that repeats nothing of what was sent; there is no room for it now, and it is done
later; or it was lost to another worker.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shutil import rmtree

import structlog

from verix_anon.errors import ContractError, ProviderError, TableError
from verix_anon.files.deliveries import write_delivery
from verix_anon.files.hashed import digest_of_file
from verix_anon.files.keys import read_signing_key
from verix_anon.files.submissions import read_submission
from verix_anon.machine import available_memory
from verix_anon.progress import Progress
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider.receipts import write_receipt
from verix_anon.service import blobs, engines
from verix_anon.service.blobs import Blobs
from verix_anon.service.engines import Shape, TooLargeError
from verix_anon.service.jobs import File, Job, Reason
from verix_anon.service.leases import Claim, LostError
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
log = structlog.get_logger("verix_anon.work")


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
        _check_room(job, place.settings)
        progress("fetch", 0, 1)
        _fetch(place, job)
        progress("read", 0, 1)
        submission = _read(place.folder / "submission", job)
        delivery = engines.provider(job.engine, place.settings, progress).anonymize(submission)
        progress("write", 0, 1)
        _write(place, delivery, began)
        progress("store", 0, 1)
        return delivery.header.root.hex(), _store(place)


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
        raise LaterError(error.strerror or type(error).__name__) from None
    except ProviderError:
        # It asks for memory that others have now.
        raise LaterError("the engine refused") from None
    except Exception as error:
        # Neither the message nor a value, which may be what was sent.
        places = [f"{at.filename}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)]
        log.error("failed by our mistake", job=job.id, error=type(error).__name__, at=places)
        raise FailedError(INTERNAL) from None


def _too_large(job: Job, settings: Settings) -> Reason:
    needed = engines.needed_bytes(shape(job), threads=engines.threads(settings))
    return Reason(
        code="job-too-large",
        detail=f"the job took more than the {settings.worker_bytes / 1e9:,.2f} GB of memory that a"
        f" worker has here, though by what was announced {needed / 1e9:,.2f} GB would do",
    )


def _check_room(job: Job, settings: Settings) -> None:
    """Raise unless the job fits a worker, as it did when it was announced, and does so now."""
    try:
        engines.choose(settings, shape(job))
    except TooLargeError as error:
        raise FailedError(Reason(code="job-too-large", detail=str(error))) from None
    available = available_memory()
    needed = engines.needed_bytes(shape(job), threads=engines.threads(settings))
    if available is not None and needed > available:
        raise LaterError("memory")


def _fetch(place: Workplace, job: Job) -> None:
    for file in job.files:
        target = place.folder / "submission" / file.name
        place.store.get(blobs.upload(job.id, file.name), target)
        if digest_of_file(target) != file.sha256:
            # It had its digest when it was uploaded.
            log.error("damaged in the blobs", job=job.id)
            raise FailedError(INTERNAL)


def _read(folder: Path, job: Job) -> Submission:
    try:
        submission = read_submission(folder)
    except (ContractError, TableError) as error:
        if isinstance(error.__context__, MemoryError):
            raise error.__context__ from None
        raise FailedError(DAMAGED) from None
    contract = submission.contract
    found = (submission.records.n_rows, len(contract.quasi), contract.min_leaf)
    if found != (job.rows, job.columns, job.min_leaf):
        raise FailedError(DAMAGED)
    return submission


def _write(place: Workplace, delivery: Delivery, began: datetime) -> None:
    key_file, sign = place.settings.key_file, None
    if key_file is not None:
        try:
            key = read_signing_key(key_file)
        except TableError:
            raise LaterError("the key cannot be read") from None
        sign = partial(write_receipt, key=key, began=began, finished=datetime.now(UTC))
    try:
        write_delivery(delivery, place.folder / "delivery", finish=sign)
    except TableError as error:
        raise error.__context__ or error from None


def _store(place: Workplace) -> tuple[File, ...]:
    folder, claim = place.folder / "delivery", place.claim
    files = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        name = path.relative_to(folder).as_posix()
        place.store.put(blobs.attempt(claim.job_id, claim.fence, name), path)
        files.append(File(name=name, size=path.stat().st_size, sha256=digest_of_file(path)))
    return tuple(files)
