"""What becomes of a job in a worker's hands, in this process."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import structlog

import cluster
from files.samples import N_ROWS
from service import made
from service.working import check_done, during, result, taken, taken_later
from verix_anon.errors import ProviderError
from verix_anon.files.job_folder import RECEIPT_FILE
from verix_anon.files.keys import new_key, write_key
from verix_anon.progress import Progress
from verix_anon.protocol.envelopes import open_envelope
from verix_anon.protocol.messages import Header
from verix_anon.protocol.providers import JobState
from verix_anon.protocol.statements import Receipt
from verix_anon.service import blobs, engines, jobs, leases
from verix_anon.service import worker as worker_module
from verix_anon.service.database import JobRow
from verix_anon.service.leases import LostError
from verix_anon.service.server import with_key
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.supervisor import sweep
from verix_anon.service.worker import DAMAGED, INTERNAL, Heartbeat, Worker


@pytest.fixture
def job(worker: Worker, tmp_path: Path) -> JobRow:
    return made.submitted(worker.database, worker.blobs, tmp_path / "submission")


def test_a_job_is_done(worker: Worker, job: JobRow, tmp_path: Path) -> None:
    worker.work(taken(worker))
    check_done(worker, job, folder=tmp_path / "back")
    assert list((tmp_path / "work").iterdir()) == []


def test_a_job_is_done_from_every_store(
    worker_settings: ServiceSettings, blobs_url: str, tmp_path: Path
) -> None:
    worker = Worker(dataclasses.replace(worker_settings, blobs=blobs_url), "one")
    job = made.submitted(worker.database, worker.blobs, tmp_path / "submission")
    worker.work(taken(worker))
    check_done(worker, job, folder=tmp_path / "back")
    jobs.delete(worker.database, made.TENANT, job.id)
    sweep(worker.settings, worker.database, worker.blobs)
    assert worker.blobs.attempts() == {}
    worker.database.close()


def test_a_delivery_is_signed(worker: Worker, job: JobRow, tmp_path: Path) -> None:
    key = new_key()
    write_key(key, tmp_path / "key")
    worker.settings = with_key(dataclasses.replace(worker.settings, key_file=tmp_path / "key"))
    worker = Worker(worker.settings, "one")
    # What is put there later signs nothing.
    (tmp_path / "key").write_text("another")
    assert worker.settings.signing_key not in repr(worker.settings)
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
    worker.blobs.get(blobs.attempt(job.id, 1, RECEIPT_FILE), tmp_path / "receipt")
    opened = open_envelope((tmp_path / "receipt").read_bytes(), [key.public], "the receipt")
    assert Receipt.from_bytes(opened.payload).root.hex() == result(worker, job).root
    worker.database.close()


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
    assert (failed.state, failed.reason) == (JobState.FAILED, DAMAGED)
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
    assert result(worker, job).reason == DAMAGED


def test_a_blob_that_was_damaged_here_is_not_blamed_on_the_owner(
    worker: Worker, job: JobRow, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("{}")
    worker.blobs.put(blobs.upload(job.id, "contract.json"), tmp_path / "other")
    worker.work(taken(worker))
    assert result(worker, job).reason == INTERNAL


def test_a_slow_worker_that_lost_its_job_cannot_finish_it(
    worker: Worker, job: JobRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    # What the slow one stored, if its heart did not stop it before, lies where nobody looks.
    assert worker.blobs.attempts()[job.id] - {1} == {2}


def test_a_worker_that_lost_its_job_leaves_the_upload_to_the_next(
    worker: Worker, job: JobRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        leases.release(worker.database, taken_by)
        raise TypeError("and our mistake besides")

    with monkeypatch.context() as patch:
        during(patch, lose)
        taken_by = taken(worker)
        worker.work(taken_by)
    worker.work(taken_later(worker))
    check_done(worker, job, fence=2, folder=tmp_path / "back")


def test_a_job_that_is_deleted_meanwhile_is_dropped(
    worker: Worker, job: JobRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    during(monkeypatch, lambda: jobs.delete(worker.database, made.TENANT, job.id))
    worker.work(taken(worker))
    assert jobs.find(worker.database, None, job.id) is None


def test_work_ends_once_the_heart_knows_that_it_is_lost(
    worker: Worker, job: JobRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.settings = dataclasses.replace(worker.settings, lease_seconds=0.1)
    beaten = 0

    def run_endlessly(*_: object, progress: Progress, **__: object) -> Header:
        nonlocal beaten
        jobs.delete(worker.database, made.TENANT, job.id)
        while True:
            beaten += 1
            progress("grow", beaten, 10**9)

    monkeypatch.setattr(engines, "run", run_endlessly)
    worker.work(taken(worker))
    assert beaten


def test_the_heart_beats_on_when_memory_is_short(
    worker: Worker, job: JobRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.settings = dataclasses.replace(worker.settings, lease_seconds=0.03)
    beats = Event()

    def renew(*of: Any, **more: Any) -> None:
        monkeypatch.setattr(leases, "renew", lambda *of, **more: beats.set())
        raise MemoryError

    monkeypatch.setattr(leases, "renew", renew)
    with Heartbeat(worker, taken(worker)):
        assert beats.wait(30)


@pytest.mark.parametrize("is_over", [False, True])
def test_a_late_worker_ends_unless_its_job_has_just_ended(
    worker: Worker, job: JobRow, monkeypatch: pytest.MonkeyPatch, *, is_over: bool
) -> None:
    """After its job it may have taken up another, which must not end with it."""
    worker.settings = dataclasses.replace(worker.settings, lease_seconds=0.03, job_seconds=-1.0)
    ended: list[int] = []
    heart = Heartbeat(worker, taken(worker))

    def fail(*_: object) -> None:
        if is_over:
            heart._is_over.set()
        raise LostError("done already")

    def end(code: int) -> None:
        ended.append(code)
        heart._is_over.set()

    monkeypatch.setattr(leases, "fail", fail)
    monkeypatch.setattr(os, "_exit", end)
    heart._beat()
    assert ended == ([] if is_over else [1])


def test_our_mistake_fails_the_job_and_no_log_repeats_a_value(
    worker: Worker, job: JobRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistake() -> None:
        raise KeyError("secret-value")

    during(monkeypatch, mistake)
    with structlog.testing.capture_logs() as logs:
        worker.work(taken(worker))
    failed = result(worker, job)
    assert (failed.state, failed.reason) == (JobState.FAILED, INTERNAL)
    assert "secret" not in str(logs) + str(failed)
    assert "KeyError" in str(logs)
    assert "test_worker.py" in str(logs)


def test_an_engine_that_refuses_is_asked_again_but_not_for_ever(
    worker: Worker, job: JobRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise ProviderError("secret-value")

    during(monkeypatch, refuse)
    monkeypatch.setattr(worker_module, "MAX_REFUSALS", 3)
    for _ in range(2):
        worker.work(taken_later(worker))
        assert result(worker, job).state is JobState.QUEUED
    worker.work(taken_later(worker))
    assert result(worker, job).reason == INTERNAL


def test_the_database_may_be_restarted_in_the_midst(
    worker: Worker,
    job: JobRow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if worker.database.is_sqlite:
        pytest.skip("SQLite has no server")
    during(monkeypatch, lambda: cluster.restart(request.getfixturevalue("server")))
    worker.work(taken(worker))
    check_done(worker, job, folder=tmp_path / "back")
