"""Jobs as their owners see them."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from service import made
from verix_anon.errors import ProviderError
from verix_anon.protocol.providers import File, JobState
from verix_anon.service import jobs
from verix_anon.service.database import Database, JobRow
from verix_anon.service.jobs import RequestRefusedError

OTHER = (File(name="a", size=1, sha256="9" * 64),)


@pytest.fixture(autouse=True)
def _tenants(database: Database) -> None:
    for name in (made.TENANT, "other"):
        made.tenant(database, name)


def create(database: Database, asked: jobs.NewJob, most: int = 10) -> JobRow:
    return jobs.create(database, asked, engine="verix-local", most=most, retention_seconds=100)


def test_a_new_job_waits_for_its_files(database: Database) -> None:
    job = made.created(database)
    assert job.state is JobState.UPLOADING
    assert [file.name for file in job.files] == ["a", "b"]
    assert job.expires == pytest.approx(job.created + 1000)
    assert made.facts(jobs.find(database, made.TENANT, job.id)) == made.facts(job)


def test_the_last_file_queues_the_job_and_once_more_changes_nothing(database: Database) -> None:
    job = made.created(database)
    assert jobs.complete_file(database, job.id, "a") is JobState.UPLOADING
    one = jobs.find(database, None, job.id)
    assert one is not None
    assert [file.is_complete for file in one.files] == [True, False]
    assert jobs.complete_file(database, job.id, "b") is JobState.QUEUED
    both = jobs.find(database, None, job.id)
    assert both is not None
    assert (both.state, both.expires) == (JobState.QUEUED, None)
    assert jobs.complete_file(database, job.id, "b") is JobState.QUEUED
    assert made.facts(jobs.find(database, None, job.id)) == made.facts(both)
    assert jobs.complete_file(database, "0" * 32, "b") is None


def test_files_that_are_completed_together_queue_the_job(database: Database) -> None:
    names = [f"part-{i}" for i in range(8)]
    files = tuple(File(name=name, size=1, sha256="0") for name in names)
    job = made.created(database, made.new(files))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: jobs.complete_file(database, job.id, name), names))
    again = jobs.find(database, made.TENANT, job.id)
    assert again is not None
    assert again.state is JobState.QUEUED


def test_the_same_key_gives_the_same_job(database: Database) -> None:
    first = create(database, made.new(key="k"))
    again = create(database, made.new(key="k"))
    assert (again.id, again.request) == (first.id, first.request)
    with pytest.raises(RequestRefusedError, match="other files"):
        create(database, made.new(OTHER, key="k"))
    others = create(database, made.new(key="k", owner="other"))
    assert others.id != first.id


def test_a_key_of_a_job_that_has_expired_makes_a_new_one(database: Database) -> None:
    """Else its owner is told that it is done, or sends files to it, while it is swept."""
    first = jobs.create(
        database, made.new(key="k"), engine="verix-local", most=10, retention_seconds=-1.0
    )
    again = create(database, made.new(key="k"))
    assert jobs.find(database, None, first.id) is None
    assert create(database, made.new(key="k")).id == again.id


def test_the_same_key_at_once_makes_one_job(database: Database, database_url: str) -> None:
    """In many threads, and on connections of their own as other processes have."""
    many = [Database(database_url) for _ in range(4)]

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda at: create(at, made.new(key="k")), many * 4))
    assert len({job.id for job in answers}) == 1
    assert len(jobs.page(database, made.TENANT, limit=10)[0]) == 1
    for each in many:
        each.close()


def test_a_request_waits_for_one_with_the_same_key(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second is on a connection of its own, as another process is."""
    make, other = jobs._new_row, Database(database_url)
    later: list[Future[JobRow]] = []

    def make_slowly(*of: Any) -> JobRow:
        later.append(pool.submit(create, other, made.new(key="k")))
        assert not wait(later, timeout=0.3).done
        return make(*of)

    monkeypatch.setattr(jobs, "_new_row", make_slowly)
    with ThreadPoolExecutor(1) as pool:
        first = create(database, made.new(key="k"))
        again = later[0].result()
    assert (again.id, len(later)) == (first.id, 1)
    other.close()


def test_open_jobs_are_counted_by_tenant(database: Database) -> None:
    for _ in range(3):
        create(database, made.new(), most=3)
    with pytest.raises(RequestRefusedError, match="3 jobs are open"):
        create(database, made.new(), most=3)
    create(database, made.new(owner="other"), most=3)


def test_requests_at_once_do_not_exceed_the_count(database: Database) -> None:
    def ask(_: int) -> bool:
        try:
            create(database, made.new(), most=3)
            return True
        except RequestRefusedError:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(16))) == 3


def test_a_job_of_another_tenant_is_not_there(database: Database) -> None:
    job = made.created(database)
    assert jobs.find(database, "other", job.id) is None
    assert not jobs.delete(database, "other", job.id)
    assert jobs.page(database, "other", limit=5) == ((), None)
    for who in (made.TENANT, None):
        assert made.facts(jobs.find(database, who, job.id)) == made.facts(job)
    assert jobs.delete(database, made.TENANT, job.id)
    assert not jobs.delete(database, made.TENANT, job.id)
    assert jobs.find(database, made.TENANT, job.id) is None


def test_jobs_that_have_ended_count_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MOST_KEPT", 2)
    for _ in range(2):
        made.created(database)
    with pytest.raises(RequestRefusedError, match="delete some"):
        made.created(database)


def test_of_many_files_one_can_be_asked_for(database: Database) -> None:
    job = made.created(database)
    for name, found in (("a", ["a"]), ("c", [])):
        one = jobs.find(database, made.TENANT, job.id, file=name)
        assert one is not None
        assert [file.name for file in one.files] == found


def test_pages_hold_every_job_once_newest_first(database: Database) -> None:
    made_here = [made.created(database).id for _ in range(7)]
    create(database, made.new(owner="other"))
    seen: list[str] = []
    after = None
    while True:
        page, after = jobs.page(database, made.TENANT, limit=3, after=after)
        seen += [job.id for job in page]
        if after is None:
            break
    assert seen == made_here[::-1]
    assert len(jobs.page(database, None, limit=10)[0]) == 8


@pytest.mark.parametrize("after", ["x", "0x1p9999999_00", "0x1p9_\0", "0x1p9_zz"])
def test_a_page_after_nothing_known_is_refused(database: Database, after: str) -> None:
    with pytest.raises(ProviderError, match="page"):
        jobs.page(database, made.TENANT, limit=3, after=after)


def test_states_are_counted(database: Database) -> None:
    made.created(database)
    made.queued(database)
    counts = jobs.counts(database)
    assert (counts[JobState.UPLOADING], counts[JobState.QUEUED], counts[JobState.DONE]) == (1, 1, 0)
