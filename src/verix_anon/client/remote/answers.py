"""Read a service's answers strictly, because the service is not trusted.

Every answer is bounded before it is read, and what is shown of it is one printable line.
"""

from dataclasses import dataclass
from dataclasses import fields as fields_of

from verix_anon.errors import Error, ProviderError
from verix_anon.fields import Fields, printable
from verix_anon.protocol.providers import SERVICE_FORMAT, File, JobState

MOST_SHOWN = 300
"""Characters of what a service says that an error repeats."""
COUNTS = range(2**53)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteProblem:
    """Why a service refused: its status, and the code and detail that it gave."""

    status: int
    code: str
    detail: str

    @classmethod
    def parse(cls, status: int, data: bytes) -> "RemoteProblem":
        """Read the problem in an answer; it has no code unless our service wrote it."""
        try:
            return Fields.parse(data, "problem", ProviderError).record(cls, status=status)
        except Error:
            return cls(status=status, code="", detail="")

    def __str__(self) -> str:
        code = printable(self.code, 60) or f"HTTP {self.status}"
        detail = printable(self.detail, MOST_SHOWN)
        return f"{code}: {detail}" if detail else code


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedLimits:
    """The most that a service takes."""

    upload_bytes: int
    file_bytes: int
    request_bytes: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a service says about itself."""

    version: str
    rules: tuple[str, ...]
    keys: tuple[str, ...]
    limits: OfferedLimits

    @classmethod
    def parse(cls, data: bytes) -> "Offer":
        """Read what GET /v1 answers."""
        fields = Fields.parse(data, "the service's offer", ProviderError)
        fields.expect("format", SERVICE_FORMAT)
        limits = fields.inner("limits")
        return cls(
            version=printable(fields.text("version"), 60),
            rules=fields.texts("rules"),
            keys=tuple(key.text("keyid") for key in fields.each("keys")),
            limits=OfferedLimits(
                **{f.name: limits.whole(f.name, COUNTS) for f in fields_of(OfferedLimits)}
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteJob:
    """A job, as the service describes it."""

    id: str
    state: JobState
    done: int
    total: int
    reason: RemoteProblem | None
    delivery: tuple[File, ...]
    next_delivered: str = ""
    """After which name more files of the delivery are listed; empty if all are here"""

    @classmethod
    def parse(cls, data: bytes) -> "RemoteJob":
        """Read a job; fields that are not needed here are passed over."""
        fields = Fields.parse(data, "the service's job", ProviderError)
        done, total, reason = 0, 1, None
        if fields.has("progress"):
            progress = fields.inner("progress")
            total = max(1, progress.whole("total", COUNTS))
            done = min(progress.whole("done", COUNTS), total)
        job_id, state = fields.digest("id", 16).hex(), fields.choice("state", JobState)
        if fields.has("reason"):
            reason = fields.inner("reason").record(RemoteProblem, status=0)
        return cls(
            id=job_id,
            state=state,
            done=done,
            total=total,
            reason=reason,
            delivery=_files(fields, "delivery") if fields.has("delivery") else (),
            next_delivered=fields.text("next_delivered") if fields.has("next_delivered") else "",
        )


def parse_page(data: bytes) -> tuple[tuple[File, ...], str]:
    """Read a page of a delivery's files, and after which name the next begins, if one does."""
    fields = Fields.parse(data, "the service's list of files", ProviderError)
    return _files(fields, "files"), fields.text("next") if fields.has("next") else ""


def _files(fields: Fields, name: str) -> tuple[File, ...]:
    return tuple(
        File(
            name=file.text("name"),
            size=file.whole("size", COUNTS),
            sha256=file.digest("sha256").hex(),
        )
        for file in fields.each(name)
    )
