"""What goes over the wire in JSON, as OpenAPI describes it."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from verix_anon.protocol.providers import File
from verix_anon.service.database import FileRow, JobRow
from verix_anon.service.uploads import PATTERN, Upload

MOST = 2**63 - 1
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

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FileOrder(Strict):
    """A file that will be uploaded."""

    name: Annotated[str, Field(pattern=PATTERN, description="Its name in the submission's folder")]
    size: Annotated[int, Field(ge=1, le=MOST)]
    sha256: Sha256


class JobOrder(Strict):
    """What a job is asked for with."""

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
    """A job and all that can be known of it."""

    files: list[FileState]
    delivery: list[DeliveredBody] | None


class Jobs(Strict):
    """A page of jobs, newest first."""

    jobs: list[JobLine]
    next: str | None = Field(description="For `after`, to see the next page")


class Key(Strict):
    """A key that receipts are signed with."""

    keyid: str
    public: str = Field(description="In PEM")


class LimitsBody(Strict):
    """What this service takes at most."""

    upload_bytes: Count
    file_bytes: Count
    rows: Count
    columns: Count
    concurrent_jobs: Count
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


def line_of(job: JobRow) -> JobLine:
    """A job in a list."""
    return JobLine.model_validate(job, from_attributes=True)


def seen(job: JobRow, staging: Path) -> JobBody:
    """A job as its owner sees it."""
    files = []
    for file in job.files:
        offset = file.size if file.is_complete else upload_of(staging, job, file).offset()
        files.append(FileState(name=file.name, size=file.size, sha256=file.sha256, offset=offset))
    delivery = None
    if job.delivery is not None:
        of_row = partial(DeliveredBody.model_validate, from_attributes=True)
        delivery = [of_row(file) for file in job.delivery]
    # All of its parts are checked already.
    return JobBody.model_construct(**dict(line_of(job)), files=files, delivery=delivery)
