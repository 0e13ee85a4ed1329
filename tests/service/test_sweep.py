"""What is deleted, and what is not."""

from pathlib import Path

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from service import made
from verix_anon.protocol.providers import JobState
from verix_anon.service import blobs, jobs, leases
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database, JobRow, Reason, now
from verix_anon.service.leases import LeasedJob
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.supervisor import sweep


class Place:
    """A service's folder with jobs in it."""

    def __init__(self, folder: Path, database: Database) -> None:
        made.tenant(database)
        self.database = database
        self.settings = ServiceSettings(folder=folder)
        self.store = Blobs(self.settings.blobs_url)
        self.source = folder / "source"
        self.source.write_text("x")

    def sweep(self) -> None:
        sweep(self.settings, self.database, self.store)

    def claimed(self) -> LeasedJob:
        """A job that runs, with all files that a job may have."""
        job = made.queued(self.database)
        claim = leases.claim(self.database, "one", lease_seconds=60)
        assert claim is not None
        assert claim.job_id == job.id
        self.put(claim)
        return claim

    def put(self, claim: LeasedJob) -> None:
        self.store.put(blobs.upload(claim.job_id, "a"), self.source)
        self.store.put(blobs.attempt(claim.job_id, claim.fence, "x"), self.source)
        (self.settings.work / f"{claim.job_id}-{claim.fence}").mkdir(parents=True)

    def work(self) -> set[str]:
        return {path.name for path in self.settings.work.iterdir()}

    def age(self, job_id: str) -> None:
        with self.database.write() as session:
            row = update(JobRow).where(JobRow.id == job_id)
            session.execute(row.values(expires=now() - 1))

    def state(self, job: JobRow | LeasedJob) -> JobState | None:
        found = jobs.find(self.database, None, job.job_id if isinstance(job, LeasedJob) else job.id)
        return None if found is None else found.state


@pytest.fixture
def place(tmp_path: Path, database: Database) -> Place:
    return Place(tmp_path, database)


def test_a_running_job_keeps_all_it_has(place: Place) -> None:
    claim = place.claimed()
    place.sweep()
    assert place.store.attempts() == {claim.job_id: {0, 1}}
    assert place.work() == {f"{claim.job_id}-1"}


def test_a_done_job_keeps_its_delivery_until_it_expires(place: Place) -> None:
    claim = place.claimed()
    leases.finish(place.database, claim, root="ab", delivery=())
    place.sweep()
    assert place.store.attempts() == {claim.job_id: {1}}
    assert place.work() == set()
    place.age(claim.job_id)
    place.sweep()
    assert place.state(claim) is None
    assert place.store.attempts() == {}


def test_lost_attempts_are_swept_and_the_one_that_runs_is_not(place: Place) -> None:
    first = place.claimed()
    leases.lose(place.database, "one")
    place.sweep()
    assert place.store.attempts() == {first.job_id: {0}}
    assert place.work() == set()
    second = leases.claim(place.database, "two", lease_seconds=60)
    assert second is not None
    place.put(second)
    place.put(first)  # A slow worker, which does not know.
    place.sweep()
    assert place.store.attempts() == {first.job_id: {0, 2}}
    assert place.work() == {f"{first.job_id}-2"}


def test_all_files_of_a_failed_job_are_swept(place: Place) -> None:
    claim = place.claimed()
    leases.fail(place.database, claim, Reason(code="internal", detail=""))
    place.sweep()
    assert place.store.attempts() in ({}, {claim.job_id: set()})
    assert place.state(claim) is JobState.FAILED


def test_the_upload_of_a_job_that_kills_its_workers_is_swept(place: Place) -> None:
    """It does not count towards the tenant's bytes any more, so it may not take room."""
    claim = place.claimed()
    for _ in range(leases.MAX_LOST):
        leases.lose(place.database, "one")
        leases.claim(place.database, "one", lease_seconds=60)
    assert place.state(claim) is JobState.FAILED
    place.sweep()
    with pytest.raises(FileNotFoundError):
        place.store.pieces(blobs.upload(claim.job_id, "a"), 0, 1)


def test_the_files_of_a_deleted_job_are_swept(place: Place) -> None:
    claim = place.claimed()
    jobs.delete(place.database, made.TENANT, claim.job_id)
    place.sweep()
    assert place.store.attempts() == {}
    assert place.work() == set()


def test_uploads_that_were_given_up_expire(place: Place) -> None:
    kept, old = made.created(place.database), made.created(place.database)
    for job in (kept, old):
        (place.settings.staging / job.id).mkdir(parents=True)
    place.age(old.id)
    place.sweep()
    assert (place.state(kept), place.state(old)) == (JobState.UPLOADING, None)
    assert [path.name for path in place.settings.staging.iterdir()] == [kept.id]
    made.queued(place.database, kept)
    place.sweep()
    assert list(place.settings.staging.iterdir()) == []


def test_a_sweep_that_is_cut_off_has_freed_room_and_is_made_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that is too full for the database."""
    claim = place.claimed()
    leases.finish(place.database, claim, root="ab", delivery=())
    place.age(claim.job_id)

    def full() -> None:
        raise OperationalError("DELETE", {}, Exception("database or disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr(place.database, "write", full)
        with pytest.raises(OperationalError):
            place.sweep()
    assert place.store.attempts() == {}
    assert place.state(claim) is JobState.DONE
    place.sweep()
    assert place.state(claim) is None


def test_an_upload_that_has_expired_is_not_completed(place: Place) -> None:
    job = made.created(place.database)
    place.age(job.id)
    assert jobs.complete_file(place.database, job.id, "a") is None


def test_leases_run_out_where_no_worker_is_left(place: Place) -> None:
    claim = place.claimed()
    with place.database.write() as session:
        session.execute(update(JobRow).values(lease=now() - 1))
    place.sweep()
    assert place.state(claim) is JobState.QUEUED
