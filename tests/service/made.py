"""Jobs of a test's own: a submission in the blobs, and its rows in the database."""

from hashlib import sha256
from pathlib import Path

from files.samples import N_ROWS, sent
from verix_anon.files.folder_writer import write_submission
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.providers import File, JobState
from verix_anon.service import blobs, jobs, tenants
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database, JobRow
from verix_anon.service.jobs import NewJob

TENANT = "clinic"


def tenant(database: Database, name: str = TENANT) -> str:
    """A token of a tenant."""
    return tenants.create_token(database, name, tenants.TokenRole.TENANT)


def files_of(folder: Path) -> tuple[File, ...]:
    """The files of a folder, as a client lists them."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return tuple(
        File(
            name=path.relative_to(folder).as_posix(),
            size=path.stat().st_size,
            sha256=sha256(path.read_bytes()).hexdigest(),
        )
        for path in found
    )


def new(files: tuple[File, ...] = (), *, key: str | None = None, owner: str = TENANT) -> NewJob:
    """What is asked for in most tests."""
    files = files or (File(name="a", size=1, sha256="0" * 64), File(name="b", size=2, sha256="1"))
    return NewJob(
        tenant=owner,
        rows=N_ROWS,
        columns=len(sent().contract.quasi),
        min_leaf=sent().contract.min_leaf,
        files=files,
        key=key,
    )


def created(
    database: Database, asked: NewJob | None = None, *, retention: float = 1000.0
) -> JobRow:
    """A job whose files are still to come."""
    made = jobs.create(
        database, asked or new(), engine="verix-local", most=1000, retention_seconds=retention
    )
    found = jobs.find(database, None, made.id)
    assert found is not None
    return found


def facts(job: JobRow | None) -> tuple[object, ...]:
    """All that is known of a job, to compare it as it stood at two times."""
    assert job is not None
    known = [getattr(job, column.key) for column in JobRow.__table__.columns]
    return *known, *((file.name, file.size, file.sha256, file.is_complete) for file in job.files)


def queued(database: Database, job: JobRow | None = None) -> JobRow:
    """A job that waits for a worker."""
    job = job or created(database)
    for file in job.files:
        state = jobs.complete_file(database, job.id, file.name)
    assert state is JobState.QUEUED
    done = jobs.find(database, None, job.id)
    assert done is not None
    return done


def submitted(
    database: Database, store: Blobs, folder: Path, submission: Submission | None = None
) -> JobRow:
    """A job that waits for a worker with a real submission in the blobs."""
    if not folder.exists():
        write_submission(submission or sent(), folder)
    job = created(database, new(files_of(folder)))
    for file in job.files:
        store.put(blobs.upload(job.id, file.name), folder / file.name)
    return queued(database, job)
