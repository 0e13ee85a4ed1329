"""What goes over the wire in JSON, as OpenAPI describes it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from verix_anon.protocol.providers import File, JobState
from verix_anon.service import jobs
from verix_anon.service.database import Database, DeliveredRow, FileRow, JobRow
from verix_anon.service.uploads import PATTERN, Upload

MOST = 2**63 - 1
PAGE = 100
"""Files that are shown at once: a job may have thousands, and is asked about again and again"""
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Of the bytes, in hexadecimal")]
JobId = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="32 hexadecimal digits")]


def time_of(seconds: float) -> str:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


Time = Annotated[
    str,
    BeforeValidator(time_of),
    Field(json_schema_extra={"format": "date-time"}, description="In UTC, by the service's clock"),
]
Count = Annotated[int, Field(ge=0, le=MOST)]
State = Literal["uploading", "queued", "running", "done", "failed"]


class Strict(BaseModel):
    """Nothing else than what is named, and no number as text."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, from_attributes=True)


class FileOrder(Strict):
    """A file that will be uploaded."""

    name: Annotated[str, Field(pattern=PATTERN, description="Its name in the submission's folder")]
    size: Annotated[int, Field(ge=1, le=MOST)]
    sha256: Sha256


class JobOrder(Strict):
    """A request for a job."""

    contract: dict[str, Any] = Field(description="What contract.json holds")
    rows: Annotated[int, Field(ge=1, le=MOST)]
    files: Annotated[list[FileOrder], Field(min_length=3, max_length=10_002)]


class DeliveredBody(Strict):
    """A file of a delivery."""

    name: str
    size: Count
    sha256: Sha256


class FileState(DeliveredBody):
    """A file of a submission, and how much of it has arrived."""

    offset: Count


class Stage(Strict):
    """How far the work has come."""

    stage: str
    done: Count
    total: Count


class ReasonBody(Strict):
    """Why a job failed."""

    code: str
    detail: str


class JobLine(Strict):
    """A job in a list."""

    id: JobId
    state: State
    created: Time
    updated: Time
    expires: Time | None
    rows: Count
    progress: Stage | None
    attempts: Count = Field(validation_alias="fence")
    reason: ReasonBody | None
    root: Sha256 | None


class JobBody(JobLine):
    """A job, with the first of its files."""

    files: list[FileState]
    next_file: str | None = Field(description="For `after` of /files, if there are more")
    delivery: list[DeliveredBody] | None
    next_delivered: str | None = Field(description="For `after` of /delivery, if there are more")


class UploadedFiles(Strict):
    """A page of a job's files, by their names."""

    files: list[FileState]
    next: str | None = Field(description="For `after`, to see the next page")


class DeliveredFiles(Strict):
    """A page of the files of a delivery, by their names."""

    files: list[DeliveredBody]
    next: str | None = Field(description="For `after`, to see the next page")


class Jobs(Strict):
    """A page of jobs, newest first."""

    jobs: list[JobLine]
    next: str | None = Field(description="For `after`, to see the next page")


class Key(Strict):
    """A key that receipts are signed with."""

    keyid: str
    public: str = Field(description="In PEM")


class LimitsBody(Strict):
    """The limits of this service."""

    upload_bytes: Count
    file_bytes: Count
    rows: Count
    columns: Count
    concurrent_jobs: Count
    tenant_bytes: Count
    requests_per_minute: Count
    request_bytes: Count
    worker_bytes: Count
    retention_seconds: Count


class AboutService(Strict):
    """What this service can do."""

    format: Literal["verix/service/1"]
    version: str
    rules: list[str]
    engines: list[str]
    keys: list[Key]
    limits: LimitsBody


def upload_of(staging: Path, job: JobRow, file: FileRow) -> Upload:
    """The upload of a file of a job."""
    return Upload(staging, job.id, File(name=file.name, size=file.size, sha256=file.sha256))


def uploaded(database: Database, job: JobRow, staging: Path, after: str = "") -> UploadedFiles:
    """A page of a job's files, and how much of each is there."""
    found, next_page = jobs.files(database, job.id, FileRow, limit=PAGE, after=after)
    files = []
    for file in found:
        offset = file.size if file.is_complete else upload_of(staging, job, file).offset()
        files.append(FileState(name=file.name, size=file.size, sha256=file.sha256, offset=offset))
    return UploadedFiles(files=files, next=next_page)


def delivered(database: Database, job: JobRow, after: str = "") -> DeliveredFiles:
    """A page of the files of a job's delivery."""
    found, next_page = jobs.files(database, job.id, DeliveredRow, limit=PAGE, after=after)
    files = [DeliveredBody.model_validate(file) for file in found]
    return DeliveredFiles(files=files, next=next_page)


def seen(database: Database, job: JobRow, staging: Path) -> JobBody:
    """A job as its owner sees it."""
    sent = uploaded(database, job, staging)
    back = delivered(database, job) if job.state is JobState.DONE else None
    # All of its parts are checked already.
    return JobBody.model_construct(
        **dict(JobLine.model_validate(job)),
        files=sent.files,
        next_file=sent.next,
        delivery=back and back.files,
        next_delivered=back and back.next,
    )
