"""Which worker does a job: a lease in database time, and a number that stops workers who lost it.

Every claim of a job gets a higher number than the claims before, and every write names the number
of its claim. So a worker that was slow, cut off or stopped cannot change a job that another worker
has taken up since. The clocks of processes play no part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, case, func, select, update
from sqlalchemy.orm import Session

from verix_anon.errors import ProviderError
from verix_anon.protocol.providers import File, JobState
from verix_anon.service import daily_counts
from verix_anon.service.database import (
    Database,
    DeliveredRow,
    JobProgress,
    JobRow,
    Reason,
    TenantRow,
    now,
)
from verix_anon.service.settings import ServiceSettings

MAX_LOST = 3
KILLED = Reason(
    code="worker-killed",
    detail=f"{MAX_LOST} workers that took the job up ended without a word, such as for memory",
)

FREED = {**dict.fromkeys(("worker", "lease", "stage", "done", "total")), "updated": now()}
ENDED = {**FREED, "finished": now(), "expires": now() + JobRow.retention}


class LostError(ProviderError):
    """Another worker has the job now, or it was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedJob:
    """A job that is this worker's while it renews the lease."""

    job_id: str
    fence: int

    def change(
        self, session: Session, values: Mapping[str, Any]
    ) -> Row[str, float | None, float | None]:
        """Change the job, and return its tenant, start and end; LostError if the lease was lost."""
        its = (JobRow.id == self.job_id, JobRow.fence == self.fence)
        held = update(JobRow).where(*its, JobRow.state == JobState.RUNNING).values(**values)
        changed = session.execute(held.returning(JobRow.tenant, JobRow.started, JobRow.finished))
        if (row := changed.one_or_none()) is None:
            raise LostError("another worker has the job now, or it was deleted")
        return row


def claim(database: Database, worker: str, *, lease_seconds: float) -> LeasedJob | None:
    """Claim the oldest waiting job of the tenant whose turn it is; None if no job waits.

    Tenants take turns: one with a hundred jobs waits as long as one with a single job.
    """
    waits = (JobRow.state == JobState.QUEUED, JobRow.not_before <= now())
    first = select(JobRow.id).join(TenantRow, TenantRow.name == JobRow.tenant).where(*waits)
    turn = func.coalesce(TenantRow.served, 0.0)
    first = first.order_by(turn, JobRow.queued, JobRow.id).limit(1)
    # Skips a job that another worker is claiming right now; SQLite has one write at a time.
    free = first.with_for_update(skip_locked=True, of=JobRow).correlate(None).scalar_subquery()
    with database.write() as session:
        expire(session)
        found = session.execute(
            update(JobRow)
            .where(JobRow.id == free)
            .values(state=JobState.RUNNING, fence=JobRow.fence + 1, worker=worker)
            .values(lease=now() + lease_seconds, started=now(), updated=now())
            .returning(JobRow.id, JobRow.fence, JobRow.tenant)
        ).one_or_none()
        if found is not None:
            its = update(TenantRow).where(TenantRow.name == found.tenant)
            session.execute(its.values(served=now()))
    return None if found is None else LeasedJob(job_id=found.id, fence=found.fence)


def renew(
    database: Database,
    held: LeasedJob,
    *,
    lease_seconds: float,
    progress: JobProgress | None = None,
) -> None:
    """Extend the lease, and say how far the job is; LostError if the lease was lost."""
    stage, done, total = progress or (None, None, None)
    kept = {"lease": now() + lease_seconds, "updated": now()}
    with database.write() as session:
        held.change(session, {**kept, "stage": stage, "done": done, "total": total})


def finish(database: Database, held: LeasedJob, *, root: str, delivery: tuple[File, ...]) -> None:
    """Mark the job as done and its delivery as visible; LostError if the lease was lost."""
    n_bytes = sum(file.size for file in delivery)
    done = {"state": JobState.DONE, "root": root, "bytes": n_bytes, **ENDED}
    with database.write() as session:
        tenant, started, finished = held.change(session, done)
        seconds = (finished or 0.0) - (started or 0.0)
        event = daily_counts.DELIVERED
        daily_counts.count(session, tenant, event, n_bytes=n_bytes, seconds=seconds)
        session.add_all(
            DeliveredRow(job=held.job_id, name=file.name, size=file.size, sha256=file.sha256)
            for file in delivery
        )


def fail(database: Database, held: LeasedJob, reason: Reason) -> None:
    """Mark the job as failed for good; LostError if the lease was lost."""
    failed = {"state": JobState.FAILED, "code": reason.code, "detail": reason.detail, **ENDED}
    with database.write() as session:
        tenant, _, _ = held.change(session, failed)
        daily_counts.count(session, tenant, daily_counts.FAILED + reason.code)


def release(database: Database, held: LeasedJob, *, delay_seconds: float = 0.0) -> None:
    """Queue the job again, to start after a delay at the earliest; LostError if it was lost."""
    back = {"state": JobState.QUEUED, "not_before": now() + delay_seconds, **FREED}
    with database.write() as session:
        held.change(session, back)


def is_overdue(database: Database, held: LeasedJob, settings: ServiceSettings) -> bool:
    """Whether the job has waited for longer than jobs are kept."""
    late = JobRow.queued < now() - settings.retention_seconds
    with database.read() as session:
        found = session.scalars(select(JobRow.id).where(JobRow.id == held.job_id, late))
        return found.one_or_none() is not None


def lose(database: Database, worker: str) -> None:
    """End the leases of a worker that is known to be dead."""
    its = (JobRow.worker == worker, JobRow.state == JobState.RUNNING)
    with database.write() as session:
        session.execute(update(JobRow).where(*its).values(lease=0.0))
        expire(session)


def expire(session: Session) -> None:
    """Queue jobs again whose lease has run out; a job that was lost too often fails."""
    is_last = JobRow.lost + 1 >= MAX_LOST
    ended = session.execute(
        update(JobRow)
        .where(JobRow.state == JobState.RUNNING, JobRow.lease < now())
        .values(lost=JobRow.lost + 1, **FREED)
        .values(
            state=case((is_last, JobState.FAILED), else_=JobState.QUEUED),
            code=case((is_last, KILLED.code), else_=None),
            detail=case((is_last, KILLED.detail), else_=None),
            finished=case((is_last, now()), else_=None),
            expires=case((is_last, now() + JobRow.retention), else_=None),
        )
        .returning(JobRow.tenant, JobRow.state)
    ).all()
    failed = [tenant for tenant, state in ended if state is JobState.FAILED]
    daily_counts.count(session, failed, daily_counts.FAILED + KILLED.code)
