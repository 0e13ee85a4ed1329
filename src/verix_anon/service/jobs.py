"""Jobs as their owners see them: created, uploaded, looked at, deleted. See `leases` for the work.

A job's row is made before its files, so files without a row belong to no job. The row is deleted
after the files. So a disk that is too full for a change of the row gains room first, and a deletion
that was interrupted can be repeated.
"""

import math
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from sqlalchemy import delete as delete_rows
from sqlalchemy import func, insert, select, tuple_
from sqlalchemy.orm import Session, selectinload

from verix_anon.errors import Error, ProviderError
from verix_anon.protocol.providers import File, JobState
from verix_anon.service import daily_counts
from verix_anon.service.database import (
    Database,
    DeliveredRow,
    FileRow,
    JobRow,
    TenantRow,
    database_time,
)

OPEN = (JobState.UPLOADING, JobState.QUEUED, JobState.RUNNING)
"""The states in which a job counts towards a tenant's concurrent jobs"""
MOST_KEPT = 1_000
"""Jobs of a tenant, those that have ended included"""


class RequestRefusedError(Error):
    """A request of an owner's that cannot be met; the sentence repeats nothing that was sent."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        """The code of the problem (`api/openapi.toml`)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A requested job; the caller has checked names, limits and the contract's digest."""

    tenant: str
    rows: int
    columns: int
    """Quasi-identifiers"""
    min_leaf: int
    files: tuple[File, ...]
    key: str | None = None
    """The Idempotency-Key"""

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)

    @property
    def request(self) -> str:
        """SHA-256 of the request, which shows whether a key is used again for the same request."""
        asked = [f"{file.name}\0{file.size}\0{file.sha256}" for file in self.files]
        return sha256("\n".join([str(self.rows), *sorted(asked)]).encode()).hexdigest()


def create(
    database: Database,
    new: NewJob,
    *,
    engine: str,
    most: int,
    retention_seconds: float,
    tenant_bytes: float = math.inf,
    room: float = math.inf,
) -> JobRow:
    """Return a new job, or the job that this key was used for before, without its files.

    Requests of one tenant are handled one after the other, by the lock on the tenant's row or, in
    SQLite, because there is one write at a time. So if two requests with the same key come at once,
    the second one finds the job of the first, and no limit is exceeded. `room` is the room that the
    disk has for all files that are announced and not yet uploaded.

    Raises:
        RequestRefusedError: The key was used for something else, the tenant has `most` open jobs
            or would have files of more than `tenant_bytes`, or the disk has no room.
    """
    with database.write() as session:
        tenant = select(TenantRow).where(TenantRow.name == new.tenant)
        session.scalars(tenant.with_for_update()).one()
        used = (JobRow.tenant == new.tenant, JobRow.key == new.key)
        with_key = select(JobRow).where(*used)
        if new.key is not None and (row := session.scalars(with_key).one_or_none()) is not None:
            if row.request != new.request:
                raise RequestRefusedError(
                    "idempotency-key-reused", "The key was used for other files."
                )
            if row.expires is None or row.expires >= database_time(session):
                return row
            # The sweep may have begun with its files, and finds those that are left.
            session.delete(row)
            session.flush()
            daily_counts.count(session, new.tenant, daily_counts.EXPIRED)
        _check_counts(session, new.tenant, most)
        _check_bytes(session, new, tenant_bytes, room)
        daily_counts.count(session, new.tenant, daily_counts.CREATED, n_bytes=new.bytes)
        return _new_row(session, new, engine, retention_seconds)


def _check_counts(session: Session, tenant: str, most: int) -> None:
    """Raise RequestRefusedError unless the tenant may have one more."""
    by_state = select(JobRow.state, func.count()).where(JobRow.tenant == tenant)
    rows = session.execute(by_state.group_by(JobRow.state))
    found = {state: int(n) for state, n in rows}
    if sum(n for state, n in found.items() if state in OPEN) >= most:
        sentence = f"{most:,} jobs are open, and no more may be: wait for one to end"
        raise RequestRefusedError("too-many-jobs", sentence)
    if sum(found.values()) >= MOST_KEPT:
        sentence = f"{MOST_KEPT:,} jobs are kept, and no more may be: delete some"
        raise RequestRefusedError("too-many-jobs", sentence)


def _check_bytes(session: Session, new: NewJob, tenant_bytes: float, room: float) -> None:
    """Raise unless the new files fit the tenant's share and the disk."""
    kept = (JobRow.tenant == new.tenant, JobRow.state != JobState.FAILED)
    its = session.scalar(select(func.sum(JobRow.bytes)).where(*kept))
    if int(its or 0) + new.bytes > tenant_bytes:
        raise RequestRefusedError(
            "too-many-bytes",
            f"all files of a tenant together have at most {tenant_bytes:,.0f} bytes: fetch and"
            " delete a job that is done, or wait for one to end",
        )
    promised = select(func.sum(JobRow.missing)).where(JobRow.state == JobState.UPLOADING)
    if int(session.scalar(promised) or 0) + new.bytes > room:
        raise RequestRefusedError("storage-full", "There is no room for these files now.")


def find(
    database: Database, tenant: str | None, job_id: str, *, file: str | None = None
) -> JobRow | None:
    """Return a job of this tenant, or of any tenant if that is None; None if there is no such job.

    It comes with all its files, with those of one name, or without files if the name is empty,
    because a job may have thousands.
    """
    wanted = select(JobRow).where(JobRow.id == job_id)
    if file != "":
        sent = [] if file is None else [FileRow.name == file]
        back = [] if file is None else [DeliveredRow.name == file]
        loaded = (JobRow.files.and_(*sent), JobRow.delivered.and_(*back))
        wanted = wanted.options(*map(selectinload, loaded))
    if tenant is not None:
        wanted = wanted.where(JobRow.tenant == tenant)
    with database.read() as session:
        return session.scalars(wanted).one_or_none()


FileKind = TypeVar("FileKind", FileRow, DeliveredRow)


def files(
    database: Database, job_id: str, kind: type[FileKind], *, limit: int, after: str = ""
) -> tuple[tuple[FileKind, ...], str | None]:
    """Return files of a job by name, from after this name on, and where the next page begins."""
    wanted = select(kind).where(kind.job == job_id, kind.name > after)
    with database.read() as session:
        rows = session.scalars(wanted.order_by(kind.name).limit(limit + 1)).all()
    return tuple(rows[:limit]), rows[limit - 1].name if len(rows) > limit else None


def page(
    database: Database, tenant: str | None, *, limit: int, after: str | None = None
) -> tuple[tuple[JobRow, ...], str | None]:
    """Return a tenant's jobs, or all if it is None, newest first, and where the next page begins.

    The jobs come without their files. `after` is the `next` of the page before.

    Raises:
        ProviderError: `after` is not the `next` of any page.
    """
    wanted = select(JobRow).order_by(JobRow.created.desc(), JobRow.id.desc()).limit(limit + 1)
    if tenant is not None:
        wanted = wanted.where(JobRow.tenant == tenant)
    if after is not None:
        wanted = wanted.where(tuple_(JobRow.created, JobRow.id) < _cursor(after))
    with database.read() as session:
        rows = session.scalars(wanted).all()
    last = rows[limit - 1] if len(rows) > limit else None
    return tuple(rows[:limit]), f"{last.created.hex()}_{last.id}" if last else None


def delete(database: Database, tenant: str, job_id: str) -> bool:
    """Delete a job's row in any state; return whether it existed. Its files are deleted before.

    A worker that runs the job learns that it was lost when it next writes to the database.
    """
    wanted = (JobRow.id == job_id, JobRow.tenant == tenant)
    with database.write() as session:
        gone = session.scalars(delete_rows(JobRow).where(*wanted).returning(JobRow.id))
        if gone.one_or_none() is None:
            return False
        daily_counts.count(session, tenant, daily_counts.DELETED)
        return True


def complete_file(database: Database, job_id: str, name: str) -> JobState | None:
    """Note that a file is in the blobs with its stated digest; None if the job is gone.

    The last file queues the job, in the same transaction. A repeated call changes nothing.
    """
    with database.write() as session:
        # If two files are completed at once, one of the calls must see both.
        wanted = select(JobRow).where(JobRow.id == job_id)
        row = session.scalars(wanted.with_for_update()).one_or_none()
        at = database_time(session)
        if row is None or (row.expires is not None and row.expires < at):
            # A sweep may have deleted other files of an expired job.
            return None
        file = session.get_one(FileRow, (job_id, name))
        if not file.is_complete:
            file.is_complete, row.updated, row.missing = True, at, row.missing - file.size
            session.flush()
            received = daily_counts.RECEIVED
            daily_counts.count(session, row.tenant, received, n_bytes=file.size)
            lacking = (FileRow.job == job_id, FileRow.is_complete.is_(False))
            if session.scalars(select(FileRow.name).where(*lacking).limit(1)).first() is None:
                row.state, row.queued, row.not_before, row.expires = JobState.QUEUED, at, at, None
        return row.state


def counts(database: Database) -> dict[JobState, int]:
    """Return how many jobs there are in each state."""
    with database.read() as session:
        found = session.execute(select(JobRow.state, func.count()).group_by(JobRow.state))
        by_state = {state: int(count) for state, count in found}
    return {state: by_state.get(state, 0) for state in JobState}


def _new_row(session: Session, new: NewJob, engine: str, retention_seconds: float) -> JobRow:
    at = database_time(session)
    row = JobRow(
        id=secrets.token_hex(16),
        tenant=new.tenant,
        state=JobState.UPLOADING,
        key=new.key,
        request=new.request,
        rows=new.rows,
        columns=new.columns,
        min_leaf=new.min_leaf,
        bytes=new.bytes,
        missing=new.bytes,
        engine=engine,
        created=at,
        updated=at,
        expires=at + retention_seconds,
        retention=retention_seconds,
    )
    session.add(row)
    session.flush()
    files = [{"job": row.id, "name": f.name, "size": f.size, "sha256": f.sha256} for f in new.files]
    if files:
        # In one statement: a job may have thousands of files, and others wait for this transaction.
        session.execute(insert(FileRow), files)
    return row


def _cursor(after: str) -> tuple[float, str]:
    created, _, job_id = after.partition("_")
    try:
        return float.fromhex(created), bytes.fromhex(job_id).hex()
    except (ValueError, OverflowError):
        raise ProviderError("that is not where a page of jobs begins") from None
