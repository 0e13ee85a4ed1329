"""A job for which there is no room on a disk or in memory is done later, or refused."""

import dataclasses
import errno
import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from service import made
from service.working import check_done, during, result, taken, taken_later
from verix_anon import machine
from verix_anon.errors import MemoryShortError
from verix_anon.files.submissions import read_submission
from verix_anon.protocol.providers import File, JobState
from verix_anon.provider import local
from verix_anon.service import worker as worker_module
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import JobRow
from verix_anon.service.leases import LeasedJob
from verix_anon.service.worker import Worker


@pytest.fixture
def job(worker: Worker, tmp_path: Path) -> JobRow:
    return made.submitted(worker.database, worker.blobs, tmp_path / "submission")


@pytest.fixture
def place(worker: Worker, job: JobRow, tmp_path: Path) -> tuple[Worker, JobRow, Path]:
    return worker, job, tmp_path


@contextmanager
def small_files() -> Iterator[None]:
    """The system refuses to write files of more than 1000 bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(
    ("module", "step"),
    [(Worker, "_fetch"), (local, "write_delivery"), (Worker, "_store")],
)
def test_a_full_disk_puts_the_job_back(
    place: tuple[Worker, JobRow, Path],
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType | type,
    step: str,
) -> None:
    worker, job, tmp_path = place
    real = getattr(module, step)

    def full(*of: object, **more: object) -> object:
        with small_files():
            return real(*of, **more)

    monkeypatch.setattr(module, step, full)
    for attempt in range(1, 5):  # More often than a worker may be killed.
        worker.work(taken_later(worker))
        waiting = result(worker, job)
        assert (waiting.state, waiting.fence) == (JobState.QUEUED, attempt)
        assert waiting.delivery is None
    monkeypatch.undo()
    worker.work(taken_later(worker))
    check_done(worker, job, fence=5, folder=tmp_path / "back")


def test_no_room_in_the_blobs_puts_the_job_back(
    worker: Worker, job: JobRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Blobs.put

    def full(self: Blobs, name: str, source: Path) -> None:
        if source.name == "records.parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        put(self, name, source)

    monkeypatch.setattr(Blobs, "put", full)
    worker.work(taken(worker))
    monkeypatch.undo()
    waiting = result(worker, job)
    assert (waiting.state, waiting.delivery, waiting.root) == (JobState.QUEUED, None, None)
    worker.work(taken_later(worker))
    check_done(worker, job, fence=2, folder=tmp_path / "back")


def test_a_job_waits_for_room_above_the_reserve(
    worker: Worker, job: JobRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.settings = dataclasses.replace(worker.settings, reserve_bytes=1 << 60)
    worker.work(taken(worker))
    waiting = result(worker, job)
    assert (waiting.state, waiting.missing) == (JobState.QUEUED, 0)
    assert waiting.bytes == sum(file.size for file in job.files)
    worker.settings = dataclasses.replace(worker.settings, reserve_bytes=0)
    worker.work(taken_later(worker))
    check_done(worker, job, fence=2, folder=tmp_path / "back")
    done = result(worker, job)
    assert done.delivery is not None
    assert done.bytes == sum(file.size for file in done.delivery)


def test_a_job_that_never_finds_room_fails_with_the_reason(worker: Worker, job: JobRow) -> None:
    worker.settings = dataclasses.replace(
        worker.settings, reserve_bytes=1 << 60, retention_seconds=0.0
    )
    worker.work(taken(worker))
    failed = result(worker, job)
    assert failed.reason is not None
    assert (failed.state, failed.reason.code) == (JobState.FAILED, "no-room")
    assert "ENOSPC" in failed.reason.detail


def test_a_store_that_is_away_puts_the_job_back(
    worker: Worker, job: JobRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class EndpointConnectionError(Exception):
        """As the client of S3 raises it; it is not an OSError."""

    def refuse(*_: object, **__: object) -> None:
        raise EndpointConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(worker.blobs._fs, "get_file", refuse)
        worker.work(taken(worker))
    assert result(worker, job).state is JobState.QUEUED
    with monkeypatch.context() as patch:
        patch.setattr(worker.blobs._fs, "rm", refuse)
        worker.work(taken_later(worker))
    check_done(worker, job, fence=2, folder=tmp_path / "back")


def test_a_disk_that_is_full_for_the_database_is_waited_for(
    worker: Worker, job: JobRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not worker.database.is_sqlite:
        pytest.skip("PostgreSQL has a disk of its own")
    store, full, slept = worker._store, ExitStack(), []

    def fill(claim: LeasedJob, folder: Path) -> tuple[File, ...]:
        stored = store(claim, folder)
        full.enter_context(small_files())
        return stored

    def make_room(seconds: float) -> None:
        slept.append(seconds)
        full.close()

    monkeypatch.setattr(worker, "_store", fill)
    monkeypatch.setattr(time, "sleep", make_room)
    worker.work(taken(worker))
    monkeypatch.undo()
    assert slept == [worker_module.DATABASE_SECONDS]
    check_done(worker, job, folder=tmp_path / "back")


def test_a_job_that_takes_more_memory_than_there_is_fails_with_both_figures(
    worker: Worker, job: JobRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_all() -> None:
        raise MemoryError

    during(monkeypatch, take_all)
    worker.work(taken(worker))
    reason = result(worker, job).reason
    assert reason is not None
    assert reason.code == "job-too-large"
    assert reason.detail.count(" GB") == 2


def test_a_worker_that_has_become_smaller_refuses(worker: Worker, job: JobRow) -> None:
    worker.settings = dataclasses.replace(worker.settings, worker_bytes=10**6)
    worker.work(taken(worker))
    reason = result(worker, job).reason
    assert reason is not None
    assert reason.code == "job-too-large"
    assert reason.detail.count(" GB") == 2


def test_a_job_waits_for_memory_that_others_have(
    worker: Worker, job: JobRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "available_memory", lambda: 10**6)
    worker.work(taken(worker))
    assert result(worker, job).state is JobState.QUEUED


def test_memory_that_is_gone_when_the_records_are_read_is_no_damage(
    place: tuple[Worker, JobRow, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, job, tmp_path = place
    with monkeypatch.context() as patch:
        patch.setattr(machine, "available_memory", lambda: 1000)
        with pytest.raises(MemoryShortError, match="needs about"):
            read_submission(tmp_path / "submission")
        worker.work(taken(worker))
    found = result(worker, job)
    assert (found.state, found.reason) == (JobState.QUEUED, None)
    worker.work(taken_later(worker))
    check_done(worker, job, fence=2, folder=tmp_path / "found")
