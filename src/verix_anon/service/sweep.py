"""Delete what nobody needs: jobs that have expired, and files that no job's row speaks for.

A row is there before its job's files and gone before them. So the files are listed first and the
rows are read after: what has no row then is nobody's.
"""

from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from sqlalchemy import delete, select

from verix_anon.protocol.wire import State
from verix_anon.service import blobs, leases
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database, JobRow, now
from verix_anon.service.settings import Settings

__all__ = ["Swept", "sweep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """How much there was to delete."""

    jobs: int
    """That had expired"""
    leftovers: int
    """Folders of lost attempts and of jobs that are gone"""


def sweep(settings: Settings, database: Database, store: Blobs) -> Swept:
    """Delete expired jobs, and all files that belong to none or to an attempt that was lost."""
    leases.expire(database)
    with database.write() as session:
        old = delete(JobRow).where(JobRow.expires < now()).returning(JobRow.id)
        n_expired = len(session.scalars(old).all())
    stored = store.attempts()
    staged, worked = _names(settings.staging), _names(settings.work)
    with database.read() as session:
        found = session.execute(select(JobRow.id, JobRow.state, JobRow.fence)).all()
    rows = {row.id: (row.state, row.fence) for row in found}
    gone = [blobs.job(job) for job in stored if job not in rows]
    lost = [
        blobs.attempt(job, fence)
        for job, fences in stored.items()
        for fence in fences
        if job in rows and _is_over(rows[job], fence, State.RUNNING, State.DONE)
    ]
    for prefix in gone + lost:
        store.delete(prefix)
    idle = [settings.staging / job for job in staged if not _is_uploaded(rows, job)]
    idle += [settings.work / claim for claim in worked if not _is_worked_on(rows, claim)]
    for folder in idle:
        rmtree(folder, ignore_errors=True)
    return Swept(jobs=n_expired, leftovers=len(gone) + len(lost) + len(idle))


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def _is_over(row: tuple[str, int], fence: int, *going: State) -> bool:
    """Whether an attempt came to nothing; a newer one than the row knows of has just begun."""
    state, last = row
    return fence < last or (fence == last and state not in going)


def _is_uploaded(rows: dict[str, tuple[str, int]], job: str) -> bool:
    return job in rows and rows[job][0] == State.UPLOADING


def _is_worked_on(rows: dict[str, tuple[str, int]], claim: str) -> bool:
    job, _, fence = claim.rpartition("-")
    known = job in rows and fence.isdecimal()
    return known and not _is_over(rows[job], int(fence), State.RUNNING)
