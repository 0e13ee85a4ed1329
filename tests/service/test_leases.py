"""A job is one worker's at a time, whatever becomes of workers and of clocks."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from service import made
from verix_anon.protocol.providers import File, JobState
from verix_anon.service import jobs, leases
from verix_anon.service.database import Database, JobProgress, JobRow, Reason, now
from verix_anon.service.leases import LeasedJob, LostError

DELIVERY = (File(name="delivery.json", size=3, sha256="2" * 64),)


@pytest.fixture
def job(database: Database) -> JobRow:
    made.tenant(database)
    return made.queued(database)


def take(database: Database, worker: str = "one", *, seconds: float = 60.0) -> LeasedJob | None:
    return leases.claim(database, worker, lease_seconds=seconds)


def taken(database: Database, worker: str = "one") -> LeasedJob:
    claim = take(database, worker)
    assert claim is not None
    return claim


def pass_time(database: Database) -> None:
    """All leases run out."""
    with database.write() as session:
        session.execute(update(JobRow).values(lease=now() - 1))


def found(database: Database, job: JobRow) -> JobRow:
    again = jobs.find(database, made.TENANT, job.id)
    assert again is not None
    return again


def test_a_job_is_claimed_done_and_claimed_no_more(database: Database, job: JobRow) -> None:
    claim = taken(database)
    assert (claim.job_id, claim.fence) == (job.id, 1)
    assert found(database, job).state is JobState.RUNNING
    assert take(database, "two") is None
    leases.renew(database, claim, lease_seconds=60, progress=JobProgress("grow", 1, 2))
    assert found(database, job).progress == ("grow", 1, 2)
    leases.finish(database, claim, root="ab", delivery=DELIVERY)
    done = found(database, job)
    assert (done.state, done.root, done.fence) == (JobState.DONE, "ab", 1)
    assert done.delivery is not None
    delivered = [File(name=file.name, size=file.size, sha256=file.sha256) for file in done.delivery]
    assert tuple(delivered) == DELIVERY
    assert done.expires is not None
    assert done.finished is not None
    assert done.progress is None
    assert take(database) is None


def test_jobs_are_taken_in_the_order_in_which_they_were_queued(database: Database) -> None:
    made.tenant(database)
    waiting = [made.queued(database).id for _ in range(5)]
    assert [taken(database).job_id for _ in range(5)] == waiting


def test_what_is_still_uploaded_is_not_taken(database: Database) -> None:
    made.tenant(database)
    made.created(database)
    assert take(database) is None


@pytest.mark.parametrize("word", ["renew", "finish", "fail", "release"])
def test_whoever_lost_a_job_cannot_touch_it(database: Database, job: JobRow, word: str) -> None:
    words = {
        "renew": lambda held: leases.renew(database, held, lease_seconds=60),
        "finish": lambda held: leases.finish(database, held, root="cd", delivery=DELIVERY),
        "fail": lambda held: leases.fail(database, held, Reason(code="internal", detail="")),
        "release": lambda held: leases.release(database, held),
    }
    slow = taken(database)
    pass_time(database)
    with database.write() as session:
        leases.expire(session)
    with pytest.raises(LostError):
        words[word](slow)
    quick = taken(database, "two")
    assert quick.fence == 2
    before = found(database, job)
    with pytest.raises(LostError):
        words[word](slow)
    assert made.facts(found(database, job)) == made.facts(before)
    leases.finish(database, quick, root="ab", delivery=DELIVERY)
    with pytest.raises(LostError):
        words[word](quick)
    assert found(database, job).root == "ab"


def test_a_job_that_was_deleted_is_lost(database: Database, job: JobRow) -> None:
    claim = taken(database)
    assert jobs.delete(database, made.TENANT, job.id)
    with pytest.raises(LostError):
        leases.finish(database, claim, root="ab", delivery=DELIVERY)
    assert jobs.find(database, None, job.id) is None


def test_a_lease_is_kept_by_renewing_it(database: Database, job: JobRow) -> None:
    claim = taken(database)
    pass_time(database)
    leases.renew(database, claim, lease_seconds=60)
    assert take(database, "two") is None
    leases.finish(database, claim, root="ab", delivery=DELIVERY)


def test_a_job_that_kills_three_workers_has_failed(database: Database, job: JobRow) -> None:
    for attempt in (1, 2, 3):
        assert taken(database).fence == attempt
        pass_time(database)
    assert take(database) is None
    failed = found(database, job)
    assert failed.state is JobState.FAILED
    assert failed.reason is not None
    assert failed.reason.code == "worker-killed"
    assert failed.expires is not None


def test_a_job_that_was_put_back_is_not_lost_and_waits(database: Database, job: JobRow) -> None:
    for attempt in range(1, 6):
        claim = taken(database)
        assert claim.fence == attempt
        leases.release(database, claim)
        assert found(database, job).state is JobState.QUEUED
    leases.release(database, taken(database), delay_seconds=60)
    assert take(database) is None
    assert found(database, job).state is JobState.QUEUED


def test_the_jobs_of_a_dead_worker_wait_at_once(database: Database, job: JobRow) -> None:
    taken(database, "one")
    leases.lose(database, "two")
    assert found(database, job).state is JobState.RUNNING
    leases.lose(database, "one")
    assert found(database, job).state is JobState.QUEUED


@pytest.mark.parametrize("skew", [-1e6, 1e6])
def test_a_process_whose_clock_is_wrong_takes_nothing_away(
    database: Database, job: JobRow, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    claim = taken(database)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + skew)
    assert take(database, "two") is None
    leases.renew(database, claim, lease_seconds=60)
    assert take(database, "two") is None
    monkeypatch.undo()
    assert take(database, "three") is None
    assert found(database, job).expires is None


def test_threads_that_race_take_each_job_once(database: Database) -> None:
    made.tenant(database)
    waiting = {made.queued(database).id for _ in range(40)}

    def work(worker: int) -> list[str]:
        mine = []
        while claim := take(database, str(worker)):
            mine.append(claim.job_id)
            leases.finish(database, claim, root="ab", delivery=DELIVERY)
        return mine

    with ThreadPoolExecutor(8) as pool:
        taken_by = Counter(job_id for mine in pool.map(work, range(8)) for job_id in mine)
    assert taken_by == Counter(waiting)
    assert jobs.counts(database)[JobState.DONE] == 40


def test_tenants_take_turns(database: Database) -> None:
    for name in ("acme", "beta"):
        made.tenant(database, name)
    many = [made.queued(database, made.created(database, made.new(owner="acme"))) for _ in range(3)]
    few = [made.queued(database, made.created(database, made.new(owner="beta"))) for _ in range(2)]
    found = [taken(database).job_id for _ in range(5)]
    assert found == [many[0].id, few[0].id, many[1].id, few[1].id, many[2].id]


def test_a_tenant_whose_jobs_are_deleted_has_had_its_turn(database: Database) -> None:
    for name in ("acme", "beta"):
        made.tenant(database, name)
    made.queued(database, made.created(database, made.new(owner="acme")))
    jobs.delete(database, "acme", taken(database).job_id)
    made.queued(database, made.created(database, made.new(owner="acme")))
    last = made.queued(database, made.created(database, made.new(owner="beta")))
    assert taken(database).job_id == last.id
