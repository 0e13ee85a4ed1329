"""Workers and supervisors as real processes: killed, stopped, racing."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from files.samples import sent
from service import made
from verix_anon.protocol.providers import JobState
from verix_anon.provider.local import LocalProvider
from verix_anon.service import jobs
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database, JobRow
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.supervisor import Supervisor, sweep

DEADLINE = 300.0


@pytest.fixture
def settings(tmp_path: Path, database_url: str, database: Database) -> ServiceSettings:
    made.tenant(database)
    return ServiceSettings(folder=tmp_path, database=database_url, workers=1, lease_seconds=1.0)


@pytest.fixture
def job(settings: ServiceSettings, database: Database, tmp_path: Path) -> JobRow:
    return made.submitted(database, Blobs(settings.blobs_url), tmp_path / "submission")


@contextmanager
def process(
    module: str, *arguments: str, engine: str | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process of a module, which is gone when the block ends."""
    more = {} if engine is None else {"VERIX_TEST_ENGINE": engine}
    path = os.pathsep.join(filter(None, sys.path))
    started = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | more | {"PYTHONPATH": path},
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def tell(started: subprocess.Popen[str], settings: ServiceSettings) -> None:
    assert started.stdin is not None
    started.stdin.write(settings.to_json() + "\n")
    started.stdin.flush()


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, "too late"
        time.sleep(0.05)


def found(database: Database, job: JobRow) -> JobRow:
    again = jobs.find(database, made.TENANT, job.id)
    assert again is not None
    return again


def begun(settings: ServiceSettings) -> list[int]:
    """The processes whose engines have begun."""
    return [int(path.name.split("-")[1]) for path in settings.folder.glob("begun-*")]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def check_done(database: Database, job: JobRow, *, fence: int) -> None:
    done = found(database, job)
    assert (done.state, done.fence) == (JobState.DONE, fence)
    assert done.root == LocalProvider(threads=1).anonymize(sent()).header.root.hex()


def lost(database: Database, job: JobRow) -> int:
    with database.read() as session:
        return session.get_one(JobRow, job.id).lost


def test_processes_that_race_take_each_job_once(database: Database, database_url: str) -> None:
    made.tenant(database)
    waiting = {made.queued(database).id for _ in range(60)}
    claiming = ("service.claiming", database_url)
    with process(*claiming, "one") as one, process(*claiming, "two") as two:
        racers = (one, two)
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        taken = [racer.communicate(timeout=DEADLINE)[0].split() for racer in racers]
    assert Counter(taken[0] + taken[1]) == Counter(waiting)
    assert jobs.counts(database)[JobState.DONE] == 60


def test_the_job_of_a_killed_worker_is_taken_up_again(
    settings: ServiceSettings, database: Database, job: JobRow
) -> None:
    with process("service.odd_worker", "one", engine="stall") as worker:
        tell(worker, settings)
        until(lambda: begun(settings))
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    assert found(database, job).state is JobState.RUNNING
    with process("verix_anon.service.worker", "two") as worker:
        tell(worker, settings)
        until(lambda: found(database, job).state is JobState.DONE)
    check_done(database, job, fence=2)
    assert lost(database, job) == 1
    assert (settings.work / f"{job.id}-1").exists()
    sweep(settings, database, Blobs(settings.blobs_url))
    assert list(settings.work.iterdir()) == []


@pytest.mark.long
def test_a_worker_that_is_stopped_and_wakes_too_late_changes_nothing(
    settings: ServiceSettings, database: Database, job: JobRow
) -> None:
    """As on a machine that sleeps: its lease runs out, and another does the job."""
    with process("service.odd_worker", "one", engine="stall") as slow:
        tell(slow, settings)
        until(lambda: begun(settings))
        slow.send_signal(signal.SIGSTOP)
        with process("verix_anon.service.worker", "two") as quick:
            tell(quick, settings)
            until(lambda: found(database, job).state is JobState.DONE)
            before = found(database, job)
            (settings.folder / "go").touch()
            slow.send_signal(signal.SIGCONT)
            # It drops the job and is ready for the next.
            until(lambda: not (settings.work / f"{job.id}-1").exists())
    assert made.facts(found(database, job)) == made.facts(before)
    check_done(database, job, fence=2)


def test_a_job_that_kills_three_workers_has_failed(
    settings: ServiceSettings, database: Database, job: JobRow
) -> None:
    with process("service.supervising", engine="kill") as supervisor:
        tell(supervisor, settings)
        until(lambda: found(database, job).state is JobState.FAILED)
    failed = found(database, job)
    assert failed.reason is not None
    assert (failed.reason.code, failed.fence) == ("worker-killed", 3)
    assert len(begun(settings)) == 3


def test_a_job_that_takes_too_long_is_failed(
    settings: ServiceSettings, database: Database, job: JobRow
) -> None:
    """Whatever its engine does: the process ends, and the supervisor starts another."""
    with process("service.odd_worker", "one", engine="stall") as worker:
        tell(worker, dataclasses.replace(settings, job_seconds=0.5))
        assert worker.wait(DEADLINE) == 1
    failed = found(database, job)
    assert (failed.state, failed.reason and failed.reason.code) == (JobState.FAILED, "too-long")
    assert list(settings.work.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_supervisor_and_put_their_jobs_back(
    settings: ServiceSettings, database: Database, job: JobRow, how: signal.Signals
) -> None:
    long = dataclasses.replace(settings, lease_seconds=600.0)
    with process("service.supervising", engine="stall") as supervisor:
        tell(supervisor, long)
        until(lambda: begun(settings))
        (worker,) = begun(settings)
        supervisor.send_signal(how)
        until(lambda: found(database, job).state is JobState.QUEUED)
        until(lambda: not is_alive(worker))
        supervisor.wait(DEADLINE)
    waiting = found(database, job)
    assert (waiting.state, waiting.fence, lost(database, job)) == (JobState.QUEUED, 1, 0)
    assert list(settings.work.iterdir()) == []


@pytest.mark.long
def test_a_supervisor_replaces_the_dead_and_does_the_jobs(
    settings: ServiceSettings, database: Database, job: JobRow
) -> None:
    with Supervisor(settings) as supervisor:
        until(lambda: found(database, job).state is JobState.DONE)
        (first,) = supervisor.pids
        os.kill(first, signal.SIGKILL)
        until(lambda: supervisor.pids not in ((), (first,)))
        again = made.submitted(database, supervisor.blobs, settings.folder / "submission")
        until(lambda: found(database, again).state is JobState.DONE)
        (second,) = supervisor.pids
    assert not is_alive(second)
    check_done(database, again, fence=1)


LIMITED = """
import numpy, sys
from verix_anon.service.worker import limit_memory
limit_memory(200 * 10**6)
kept = numpy.ones(100 * 10**6, numpy.uint8)
try:
    numpy.ones(200 * 10**6, numpy.uint8)
except MemoryError:
    print("refused")
"""


def test_a_worker_gets_no_more_memory_than_it_may() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused\n"
