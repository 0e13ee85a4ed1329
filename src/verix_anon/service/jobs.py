"""Jobs as their owners see them: created, uploaded, looked at, deleted. See `leases` for the work.

A job's row comes before its files and goes before them, so files without a row are nobody's.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock

from sqlalchemy import delete as delete_rows
from sqlalchemy import func, insert, select, text, tuple_
from sqlalchemy.orm import Session

from verix_anon.errors import ProviderError
from verix_anon.protocol.wire import State
from verix_anon.service.database import Database, DeliveredRow, FileRow, JobRow, TenantRow, now

__all__ = [
    "File",
    "Job",
    "KeyInFlightError",
    "KeyReusedError",
    "NewJob",
    "Page",
    "Reason",
    "TooManyJobsError",
    "complete_file",
    "counts",
    "create",
    "database_time",
    "delete",
    "find",
    "page",
]


OPEN = (State.UPLOADING, State.QUEUED, State.RUNNING)
"""What counts as one of a tenant's concurrent jobs"""
MOST_KEPT = 1_000
"""Jobs of a tenant, those that have ended included"""
NO_FILE = ""
"""A name that no file has"""


class TooManyJobsError(ProviderError):
    """The tenant has as many open jobs as it may have."""


class KeyReusedError(ProviderError):
    """The Idempotency-Key was used for something else."""


class KeyInFlightError(ProviderError):
    """A request with that Idempotency-Key is being answered at this moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that is uploaded or delivered."""

    name: str
    size: int
    sha256: str
    is_complete: bool = False
    """Whether all of it is there; a delivered file is"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a job failed."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """What is asked for; whoever asks has checked names, limits and the contract's digest."""

    tenant: str
    rows: int
    columns: int
    """Quasi-identifiers"""
    min_leaf: int
    engine: str
    """As `engines.choose` chose it"""
    files: tuple[File, ...]
    key: str | None = None
    """The Idempotency-Key"""

    @property
    def request(self) -> str:
        """SHA-256 of what is asked for, by which a key is known to be used for the same again."""
        asked = [f"{file.name}\0{file.size}\0{file.sha256}" for file in self.files]
        return sha256("\n".join([str(self.rows), *sorted(asked)]).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it stood when it was looked at; times are the database's, in seconds since 1970."""

    id: str
    tenant: str
    state: State
    rows: int
    columns: int
    min_leaf: int
    engine: str
    created: float
    updated: float
    expires: float | None
    queued: float | None
    started: float | None
    finished: float | None
    fence: int
    """How many times it was taken up; the delivery lies under the last"""
    progress: tuple[str, int, int] | None
    """Stage, done and total"""
    reason: Reason | None
    root: str | None
    files: tuple[File, ...]
    delivery: tuple[File, ...] | None
    """None until it is done"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some jobs, newest first, and where the next page begins."""

    jobs: tuple[Job, ...]
    next: str | None


def create(
    database: Database, new: NewJob, *, most: int, retention_seconds: float
) -> tuple[Job, bool]:
    """The new job, or the one that this key was used for before, and whether it is new.

    Raises:
        KeyReusedError: The key was used for something else.
        KeyInFlightError: The key is being used at this moment.
        TooManyJobsError: The tenant has `most` open jobs.
    """
    with _in_flight(new), database.write() as session:
        _lock_key(session, new)
        # Requests of one tenant are counted one after the other.
        session.scalars(
            select(TenantRow).where(TenantRow.name == new.tenant).with_for_update()
        ).one()
        if new.key is not None and (row := _of_key(session, new)) is not None:
            if row.request != new.request:
                raise KeyReusedError("the Idempotency-Key was used for other files")
            return _jobs(session, [row])[0], False
        _check_counts(session, new.tenant, most)
        row = _new_row(session, new, retention_seconds)
        return _jobs(session, [row])[0], True


def _check_counts(session: Session, tenant: str, most: int) -> None:
    """Raise TooManyJobsError unless the tenant may have one more."""
    by_state = select(JobRow.state, func.count()).where(JobRow.tenant == tenant)
    rows = session.execute(by_state.group_by(JobRow.state))
    found = {State(state): int(n) for state, n in rows}
    if sum(n for state, n in found.items() if state in OPEN) >= most:
        raise TooManyJobsError(f"{most:,} jobs are open, and no more may be: wait for one to end")
    if sum(found.values()) >= MOST_KEPT:
        raise TooManyJobsError(f"{MOST_KEPT:,} jobs are kept, and no more may be: delete some")


def find(
    database: Database, tenant: str | None, job_id: str, *, file: str | None = None
) -> Job | None:
    """A job of a tenant, or of any if that is None; one of another tenant is not there.

    With all its files, or with those of one name only: a job may have thousands.
    """
    with database.read() as session:
        row = session.get(JobRow, job_id)
        if row is None or tenant not in (None, row.tenant):
            return None
        return _jobs(session, [row], file)[0]


def page(database: Database, tenant: str | None, *, limit: int, after: str | None = None) -> Page:
    """A tenant's jobs, or all if that is None, newest first, after those of the page before.

    They come without their files.

    Raises:
        ProviderError: `after` is not what a page called its next.
    """
    wanted = select(JobRow).order_by(JobRow.created.desc(), JobRow.id.desc()).limit(limit + 1)
    if tenant is not None:
        wanted = wanted.where(JobRow.tenant == tenant)
    if after is not None:
        wanted = wanted.where(tuple_(JobRow.created, JobRow.id) < _cursor(after))
    with database.read() as session:
        rows = session.scalars(wanted).all()
        found = _jobs(session, rows[:limit], NO_FILE)
    last = found[-1] if len(rows) > limit else None
    return Page(jobs=found, next=f"{last.created.hex()}_{last.id}" if last else None)


def delete(database: Database, tenant: str, job_id: str) -> bool:
    """Forget a job, whatever its state, and whether there was one; its files are deleted after.

    A worker that runs it finds at its next word to the database that it has lost it.
    """
    wanted = (JobRow.id == job_id, JobRow.tenant == tenant)
    with database.write() as session:
        gone = session.scalars(delete_rows(JobRow).where(*wanted).returning(JobRow.id))
        return gone.one_or_none() is not None


def complete_file(database: Database, job_id: str, name: str) -> State | None:
    """Note that a file lies in the blobs with the digest it must have; None if the job is gone.

    With the last file the job is queued, in the same transaction. Once more changes nothing.
    """
    with database.write() as session:
        # Of two files that are completed together, one must see the other.
        row = session.scalars(
            select(JobRow).where(JobRow.id == job_id).with_for_update()
        ).one_or_none()
        if row is None:
            return None
        file = session.get_one(FileRow, (job_id, name))
        if not file.is_complete:
            at = database_time(session)
            file.is_complete, row.updated = True, at
            session.flush()
            lacking = (FileRow.job == job_id, FileRow.is_complete.is_(False))
            if session.scalars(select(FileRow.name).where(*lacking).limit(1)).first() is None:
                row.state, row.queued, row.not_before, row.expires = State.QUEUED, at, at, None
        return State(row.state)


def counts(database: Database) -> dict[State, int]:
    """How many jobs there are in each state."""
    with database.read() as session:
        found = session.execute(select(JobRow.state, func.count()).group_by(JobRow.state))
        by_state = {State(state): int(count) for state, count in found}
    return {state: by_state.get(state, 0) for state in State}


def database_time(session: Session) -> float:
    """The database's time, in seconds since 1970."""
    return float(session.scalars(select(now())).one())


_KEYS: set[tuple[str, str]] = set()
_KEYS_LOCK = Lock()


@contextmanager
def _in_flight(new: NewJob) -> Iterator[None]:
    """Refuse a second request with the same key in this process while the first is answered."""
    if new.key is None:
        yield
        return
    used = (new.tenant, new.key)
    with _KEYS_LOCK:
        if used in _KEYS:
            raise KeyInFlightError("a request with this Idempotency-Key is being answered")
        _KEYS.add(used)
    try:
        yield
    finally:
        with _KEYS_LOCK:
            _KEYS.remove(used)


def _lock_key(session: Session, new: NewJob) -> None:
    """The same among processes, which SQLite has write one after the other."""
    if new.key is None or session.get_bind().dialect.name == "sqlite":
        return
    digest = sha256(f"{new.tenant}\0{new.key}".encode()).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    if not session.scalars(text("SELECT pg_try_advisory_xact_lock(:n)"), {"n": number}).one():
        raise KeyInFlightError("a request with this Idempotency-Key is being answered")


def _of_key(session: Session, new: NewJob) -> JobRow | None:
    used = (JobRow.tenant == new.tenant, JobRow.key == new.key)
    return session.scalars(select(JobRow).where(*used)).one_or_none()


def _new_row(session: Session, new: NewJob, retention_seconds: float) -> JobRow:
    at = database_time(session)
    row = JobRow(
        id=secrets.token_hex(16),
        tenant=new.tenant,
        state=State.UPLOADING,
        key=new.key,
        request=new.request,
        rows=new.rows,
        columns=new.columns,
        min_leaf=new.min_leaf,
        engine=new.engine,
        created=at,
        updated=at,
        expires=at + retention_seconds,
        retention=retention_seconds,
        fence=0,
        lost=0,
    )
    session.add(row)
    session.flush()
    files = [{"job": row.id, "name": f.name, "size": f.size, "sha256": f.sha256} for f in new.files]
    if files:
        # In one statement, because others wait for this transaction: a job may have thousands.
        session.execute(insert(FileRow), files)
    return row


def _cursor(after: str) -> tuple[float, str]:
    created, _, job_id = after.partition("_")
    try:
        return float.fromhex(created), bytes.fromhex(job_id).hex()
    except (ValueError, OverflowError):
        raise ProviderError("that is not where a page of jobs begins") from None


def _jobs(session: Session, rows: Sequence[JobRow], name: str | None = None) -> tuple[Job, ...]:
    """The jobs of these rows, with all their files, or those of one name."""
    ids = [row.id for row in rows]
    sent: dict[str, list[File]] = {each: [] for each in ids}
    back: dict[str, list[File]] = {each: [] for each in ids}
    asked = select(FileRow).where(FileRow.job.in_(ids)).order_by(FileRow.name)
    given = select(DeliveredRow).where(DeliveredRow.job.in_(ids)).order_by(DeliveredRow.name)
    if name is not None:
        asked, given = asked.where(FileRow.name == name), given.where(DeliveredRow.name == name)
    for file in session.scalars(asked):
        sent[file.job].append(
            File(name=file.name, size=file.size, sha256=file.sha256, is_complete=file.is_complete)
        )
    for one in session.scalars(given):
        back[one.job].append(
            File(name=one.name, size=one.size, sha256=one.sha256, is_complete=True)
        )
    return tuple(_job(row, tuple(sent[row.id]), tuple(back[row.id])) for row in rows)


def _job(row: JobRow, files: tuple[File, ...], delivery: tuple[File, ...]) -> Job:
    progress = row.stage is not None and (row.stage, row.done or 0, row.total or 0)
    return Job(
        id=row.id,
        tenant=row.tenant,
        state=State(row.state),
        rows=row.rows,
        columns=row.columns,
        min_leaf=row.min_leaf,
        engine=row.engine,
        created=row.created,
        updated=row.updated,
        expires=row.expires,
        queued=row.queued,
        started=row.started,
        finished=row.finished,
        fence=row.fence,
        progress=progress or None,
        reason=Reason(code=row.code, detail=row.detail or "") if row.code else None,
        root=row.root,
        files=files,
        delivery=delivery if row.state == State.DONE else None,
    )
