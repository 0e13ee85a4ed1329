"""What goes over the wire in JSON, as OpenAPI describes it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from verix_anon.service.uploads import PATTERN

__all__ = [
    "About",
    "Delivered",
    "FileOrder",
    "FileState",
    "Job",
    "JobLine",
    "JobOrder",
    "Jobs",
    "Key",
    "LimitsBody",
    "Reason",
    "Stage",
]

MOST = 2**63 - 1
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Of the bytes, in hexadecimal")]
JobId = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="32 hexadecimal digits")]
Time = Annotated[
    str,
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


class FileState(Strict):
    """A file of a submission, and how much of it has arrived."""

    name: str
    size: Count
    sha256: Sha256
    offset: Count


class Delivered(Strict):
    """A file of a delivery."""

    name: str
    size: Count
    sha256: Sha256


class Stage(Strict):
    """How far the work has come."""

    stage: str
    done: Count
    total: Count


class Reason(Strict):
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
    attempts: Count
    reason: Reason | None
    root: Sha256 | None


class Job(JobLine):
    """A job and all that can be known of it."""

    files: list[FileState]
    delivery: list[Delivered] | None


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


class About(Strict):
    """What this service can do."""

    format: Literal["verix/service/1"]
    version: str
    rules: list[str]
    engines: list[str]
    keys: list[Key]
    limits: LimitsBody
