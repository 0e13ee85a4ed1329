"""What becomes of a job in a worker's hands, in this process."""

import dataclasses
import errno
import json
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType

import pytest
import structlog

import cluster
from files.samples import N_ROWS, sent
from service import made
from verix_anon.errors import ProviderError
from verix_anon.files.deliveries import RECEIPT_FILE, read_delivery
from verix_anon.files.keys import new_key, write_key
from verix_anon.protocol.envelopes import open_envelope
from verix_anon.protocol.messages import Header
from verix_anon.protocol.statements import Receipt
from verix_anon.provider.local import LocalProvider
from verix_anon.service import blobs, engines, jobs, leases, work
from verix_anon.service import worker as worker_module
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database
from verix_anon.service.engines import Task
from verix_anon.service.jobs import Job, State
from verix_anon.service.settings import Settings
from verix_anon.service.sweep import sweep
from verix_anon.service.worker import Worker


@pytest.fixture
def settings(tmp_path: Path, database_url: str, database: Database) -> Settings:
    made.tenant(database)
    return Settings(
        folder=tmp_path, database=database_url, workers=1, lease_seconds=30, retry_seconds=0.01
    )


@pytest.fixture
def worker(settings: Settings) -> Iterator[Worker]:
    worker = Worker(settings, "one")
    yield worker
    worker.database.close()


@pytest.fixture
def job(worker: Worker, tmp_path: Path) -> Job:
    return made.submitted(worker.database, worker.blobs, tmp_path / "submission")


@pytest.fixture
def place(worker: Worker, job: Job, tmp_path: Path) -> tuple[Worker, Job, Path]:
    return worker, job, tmp_path


def taken(worker: Worker) -> leases.Claim:
    claim = leases.claim(worker.database, worker.name, lease_seconds=30)
    assert claim is not None
    return claim


def result(worker: Worker, job: Job) -> Job:
    found = jobs.find(worker.database, made.TENANT, job.id)
    assert found is not None
    return found


def check_done(worker: Worker, job: Job, *, fence: int = 1, folder: Path) -> None:
    """The delivery is there, and is what the local engine makes."""
    done = result(worker, job)
    assert (done.state, done.fence, done.reason) == (State.DONE, fence, None)
    assert done.delivery is not None
    for file in done.delivery:
        worker.blobs.get(blobs.attempt(job.id, fence, file.name), folder / file.name)
    found = {(file.name, file.size, file.sha256) for file in made.files_of(folder)}
    assert found == {(file.name, file.size, file.sha256) for file in done.delivery}
    expected = LocalProvider(threads=1).anonymize(sent()).header.root
    assert done.root == expected.hex()
    snapshot = read_delivery(folder, sent().contract, n_rows=N_ROWS)
    assert snapshot.delivery.header.root == expected
    assert not snapshot.damaged


def during(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> None:
    """Something happens in the midst of an engine's work."""
    honest = engines.run

    def run(name: str, settings: Settings, task: Task) -> Header:
        happen()
        return honest(name, settings, task)

    monkeypatch.setattr(engines, "run", run)


def test_a_job_is_done(worker: Worker, job: Job, tmp_path: Path) -> None:
    worker.work(taken(worker))
    check_done(worker, job, folder=tmp_path / "back")
    assert list((tmp_path / "work").iterdir()) == []


def test_a_job_is_done_from_every_store(settings: Settings, blobs_url: str, tmp_path: Path) -> None:
    worker = Worker(dataclasses.replace(settings, blobs=blobs_url), "one")
    job = made.submitted(worker.database, worker.blobs, tmp_path / "submission")
    worker.work(taken(worker))
    check_done(worker, job, folder=tmp_path / "back")
    jobs.delete(worker.database, made.TENANT, job.id)
    sweep(worker.settings, worker.database, worker.blobs)
    assert worker.blobs.attempts() == {}
    worker.database.close()


def test_a_delivery_is_signed(worker: Worker, job: Job, tmp_path: Path) -> None:
    key = new_key()
    write_key(key, tmp_path / "key")
    worker.settings = dataclasses.replace(worker.settings, key_file=tmp_path / "key")
    worker.work(taken(worker))
    delivery = result(worker, job).delivery
    assert delivery is not None
    assert {file.name for file in delivery} == {
        "delivery.json",
        "leaves.parquet",
        "nodes.parquet",
        RECEIPT_FILE,
        "records.parquet",
    }
    with worker.blobs.open(blobs.attempt(job.id, 1, RECEIPT_FILE)) as file:
        opened = open_envelope(file.read(), [key.public], "the receipt")
    assert Receipt.from_bytes(opened.payload).root.hex() == result(worker, job).root


def spoil_records(folder: Path) -> None:
    data = bytearray((folder / "records.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "records.parquet").write_bytes(data)


def spoil_contract(folder: Path) -> None:
    contract = json.loads((folder / "contract.json").read_text())
    contract["k"] = "secret-value"
    (folder / "contract.json").write_text(json.dumps(contract))


def lack_a_file(folder: Path) -> None:
    (folder / "contract.json").unlink()


@pytest.mark.parametrize("spoil", [spoil_records, spoil_contract, lack_a_file])
def test_a_damaged_submission_fails_without_repeating_it(
    worker: Worker, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    made.submitted(worker.database, worker.blobs, tmp_path / "submission")
    spoil(tmp_path / "submission")
    jobs.delete(worker.database, made.TENANT, taken(worker).job_id)
    job = made.submitted(worker.database, worker.blobs, tmp_path / "submission")
    with structlog.testing.capture_logs() as logs:
        worker.work(taken(worker))
    failed = result(worker, job)
    assert (failed.state, failed.reason) == (State.FAILED, work.DAMAGED)
    assert "secret" not in str(logs) + str(failed)


def test_another_shape_than_was_announced_is_damage(worker: Worker, tmp_path: Path) -> None:
    made.submitted(worker.database, worker.blobs, tmp_path / "submission")
    jobs.delete(worker.database, made.TENANT, taken(worker).job_id)
    files = made.files_of(tmp_path / "submission")
    lie = dataclasses.replace(made.new(files), rows=N_ROWS - 1)
    job = made.created(worker.database, lie)
    for file in files:
        worker.blobs.put(blobs.upload(job.id, file.name), tmp_path / "submission" / file.name)
    made.queued(worker.database, job)
    worker.work(taken(worker))
    assert result(worker, job).reason == work.DAMAGED


def test_a_blob_that_was_damaged_here_is_not_blamed_on_the_owner(
    worker: Worker, job: Job, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("{}")
    worker.blobs.put(blobs.upload(job.id, "contract.json"), tmp_path / "other")
    worker.work(taken(worker))
    assert result(worker, job).reason == work.INTERNAL


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
    ("module", "step"), [(work, "_fetch"), (engines, "write_delivery"), (work, "_store")]
)
def test_a_full_disk_puts_the_job_back(
    place: tuple[Worker, Job, Path],
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
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
        assert (waiting.state, waiting.fence) == (State.QUEUED, attempt)
        assert waiting.delivery is None
    monkeypatch.undo()
    worker.work(taken_later(worker))
    check_done(worker, job, fence=5, folder=tmp_path / "back")


def taken_later(worker: Worker) -> leases.Claim:
    while (claim := leases.claim(worker.database, "one", lease_seconds=30)) is None:
        pass
    return claim


def test_no_room_in_the_blobs_puts_the_job_back(
    worker: Worker, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    assert (waiting.state, waiting.delivery, waiting.root) == (State.QUEUED, None, None)
    worker.work(taken_later(worker))
    check_done(worker, job, fence=2, folder=tmp_path / "back")


def test_a_disk_that_is_full_for_the_database_is_waited_for(
    worker: Worker, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not worker.database.is_sqlite:
        pytest.skip("PostgreSQL has a disk of its own")
    store, full, slept = work._store, ExitStack(), []

    def fill(place: work.Workplace) -> tuple[jobs.File, ...]:
        stored = store(place)
        full.enter_context(small_files())
        return stored

    def make_room(seconds: float) -> None:
        slept.append(seconds)
        full.close()

    monkeypatch.setattr(work, "_store", fill)
    monkeypatch.setattr(time, "sleep", make_room)
    worker.work(taken(worker))
    monkeypatch.undo()
    assert slept == [worker_module.DATABASE_SECONDS]
    check_done(worker, job, folder=tmp_path / "back")


def test_a_key_that_cannot_be_read_is_waited_for(worker: Worker, job: Job, tmp_path: Path) -> None:
    worker.settings = dataclasses.replace(worker.settings, key_file=tmp_path / "none")
    worker.work(taken(worker))
    assert result(worker, job).state is State.QUEUED


def test_a_slow_worker_that_lost_its_job_cannot_finish_it(
    worker: Worker, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = Worker(worker.settings, "two")

    def lose() -> None:
        monkeypatch.undo()
        leases.lose(worker.database, "one")
        quick.work(taken(quick))

    during(monkeypatch, lose)
    worker.work(taken(worker))
    quick.database.close()
    check_done(worker, job, fence=2, folder=tmp_path / "back")
    # What the slow one stored lies where nobody looks.
    assert worker.blobs.attempts()[job.id] == {1, 2}


def test_a_job_that_is_deleted_meanwhile_is_dropped(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    during(monkeypatch, lambda: jobs.delete(worker.database, made.TENANT, job.id))
    worker.work(taken(worker))
    assert jobs.find(worker.database, None, job.id) is None


def test_work_ends_once_the_heart_knows_that_it_is_lost(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.settings = dataclasses.replace(worker.settings, lease_seconds=0.1)
    beaten = 0

    def run_endlessly(_: str, __: Settings, task: Task) -> Header:
        nonlocal beaten
        jobs.delete(worker.database, made.TENANT, job.id)
        while True:
            beaten += 1
            task.progress("grow", beaten, 10**9)

    monkeypatch.setattr(engines, "run", run_endlessly)
    worker.work(taken(worker))
    assert beaten


def test_our_mistake_fails_the_job_and_no_log_repeats_a_value(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistake() -> None:
        raise KeyError("secret-value")

    during(monkeypatch, mistake)
    with structlog.testing.capture_logs() as logs:
        worker.work(taken(worker))
    failed = result(worker, job)
    assert (failed.state, failed.reason) == (State.FAILED, work.INTERNAL)
    assert "secret" not in str(logs) + str(failed)
    assert "KeyError" in str(logs)
    assert "test_worker.py" in str(logs)


def test_an_engine_that_refuses_is_asked_again_but_not_for_ever(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise ProviderError("secret-value")

    during(monkeypatch, refuse)
    monkeypatch.setattr(work, "MAX_REFUSALS", 3)
    for _ in range(2):
        worker.work(taken_later(worker))
        assert result(worker, job).state is State.QUEUED
    worker.work(taken_later(worker))
    assert result(worker, job).reason == work.INTERNAL


def test_a_job_that_takes_more_memory_than_there_is_fails_with_both_figures(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_all() -> None:
        raise MemoryError

    during(monkeypatch, take_all)
    worker.work(taken(worker))
    reason = result(worker, job).reason
    assert reason is not None
    assert reason.code == "job-too-large"
    assert reason.detail.count(" GB") == 2


def test_a_worker_that_has_become_smaller_refuses(worker: Worker, job: Job) -> None:
    worker.settings = dataclasses.replace(worker.settings, worker_bytes=10**6)
    worker.work(taken(worker))
    reason = result(worker, job).reason
    assert reason is not None
    assert reason.code == "job-too-large"
    assert reason.detail.count(" GB") == 2


def test_a_job_waits_for_memory_that_others_have(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "available_memory", lambda: 10**6)
    worker.work(taken(worker))
    assert result(worker, job).state is State.QUEUED


def test_the_database_may_be_restarted_in_the_midst(
    worker: Worker,
    job: Job,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if worker.database.is_sqlite:
        pytest.skip("SQLite has no server")
    during(monkeypatch, lambda: cluster.restart(request.getfixturevalue("server")))
    worker.work(taken(worker))
    check_done(worker, job, folder=tmp_path / "back")
