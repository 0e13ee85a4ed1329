"""Jobs as they are sent."""

from datetime import UTC, datetime
from pathlib import Path

from verix_anon.service import jobs
from verix_anon.service.api import models
from verix_anon.service.uploads import Upload

__all__ = ["line_of", "seen", "time_of", "upload_of"]


def time_of(seconds: float) -> str:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def upload_of(staging: Path, job: jobs.Job, file: jobs.File) -> Upload:
    """The upload of a file of a job."""
    return Upload(staging, job.id, file.name, file.size, file.sha256)


def line_of(job: jobs.Job) -> models.JobLine:
    """A job in a list."""
    return models.JobLine(
        id=job.id,
        state=job.state.value,
        created=time_of(job.created),
        updated=time_of(job.updated),
        expires=None if job.expires is None else time_of(job.expires),
        rows=job.rows,
        progress=_progress(job),
        attempts=job.fence,
        reason=_reason(job),
        root=job.root,
    )


def seen(job: jobs.Job, staging: Path) -> models.Job:
    """A job as its owner sees it."""
    return models.Job(
        **dict(line_of(job)),
        files=[_file(staging, job, file) for file in job.files],
        delivery=None if job.delivery is None else [_delivered(file) for file in job.delivery],
    )


def _file(staging: Path, job: jobs.Job, file: jobs.File) -> models.FileState:
    offset = file.size if file.is_complete else upload_of(staging, job, file).offset()
    return models.FileState(name=file.name, size=file.size, sha256=file.sha256, offset=offset)


def _delivered(file: jobs.File) -> models.Delivered:
    return models.Delivered(name=file.name, size=file.size, sha256=file.sha256)


def _reason(job: jobs.Job) -> models.Reason | None:
    if job.reason is None:
        return None
    return models.Reason(code=job.reason.code, detail=job.reason.detail)


def _progress(job: jobs.Job) -> models.Stage | None:
    if job.progress is None:
        return None
    stage, done, total = job.progress
    return models.Stage(stage=stage, done=done, total=total)
