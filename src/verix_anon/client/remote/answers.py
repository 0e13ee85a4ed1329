"""What a service answers, read as the words of somebody who is not trusted.

Every answer is bounded before it is read, and what is shown of it is one printable line.
"""

from dataclasses import dataclass

from verix_anon.errors import Error, ProviderError
from verix_anon.fields import Fields
from verix_anon.protocol.wire import SERVICE_FORMAT, State

__all__ = ["Delivered", "Job", "Limits", "Offer", "Problem", "one_line"]

MOST_SHOWN = 300
"""Characters of what a service says that an error repeats."""
MOST_BYTES = 2**53


def one_line(text: str, most: int = MOST_SHOWN) -> str:
    """Text of a stranger's as one printable line of bounded length."""
    kept = text[: most + 1]
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in kept)
    return line if len(line) <= most else line[:most] + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a service refused: its status, and the code and detail that it gave."""

    status: int
    code: str
    detail: str

    @classmethod
    def parse(cls, status: int, data: bytes) -> "Problem":
        """What an answer says; anything but a problem of ours has no code."""
        try:
            fields = Fields.parse(data, "problem", ProviderError)
            return cls(status=status, code=fields.text("code"), detail=fields.text("detail"))
        except Error:
            return cls(status=status, code="", detail="")

    def __str__(self) -> str:
        code = one_line(self.code, 60) or f"HTTP {self.status}"
        detail = one_line(self.detail)
        return f"{code}: {detail}" if detail else code


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
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
    limits: Limits

    @classmethod
    def parse(cls, data: bytes) -> "Offer":
        """Read what GET /v1 answers."""
        fields = Fields.parse(data, "the service's offer", ProviderError)
        fields.expect("format", SERVICE_FORMAT)
        limits = fields.inner("limits")
        most = range(MOST_BYTES)
        return cls(
            version=one_line(fields.text("version"), 60),
            rules=fields.texts("rules"),
            keys=tuple(key.text("keyid") for key in fields.each("keys")),
            limits=Limits(
                upload_bytes=limits.whole("upload_bytes", most),
                file_bytes=limits.whole("file_bytes", most),
                request_bytes=limits.whole("request_bytes", most),
                rows=limits.whole("rows", most),
                columns=limits.whole("columns", most),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """One file of a delivery, as the service announces it."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job, as the service describes it."""

    id: str
    state: State
    done: int
    total: int
    reason: Problem | None
    delivery: tuple[Delivered, ...]

    @classmethod
    def parse(cls, data: bytes) -> "Job":
        """Read a job; fields that are not needed here are passed over."""
        fields = Fields.parse(data, "the service's job", ProviderError)
        done, total = _progress(fields)
        return cls(
            id=fields.digest("id", 16).hex(),
            state=fields.choice("state", State),
            done=done,
            total=total,
            reason=_reason(fields),
            delivery=_delivery(fields),
        )


def _progress(fields: Fields) -> tuple[int, int]:
    if not fields.has("progress"):
        return 0, 1
    found = fields.inner("progress")
    total = max(1, found.whole("total", range(MOST_BYTES)))
    return min(found.whole("done", range(MOST_BYTES)), total), total


def _reason(fields: Fields) -> Problem | None:
    if not fields.has("reason"):
        return None
    found = fields.inner("reason")
    return Problem(status=0, code=found.text("code"), detail=found.text("detail"))


def _delivery(fields: Fields) -> tuple[Delivered, ...]:
    if not fields.has("delivery"):
        return ()
    return tuple(
        Delivered(
            name=file.text("name"),
            size=file.whole("size", range(MOST_BYTES)),
            sha256=file.digest("sha256").hex(),
        )
        for file in fields.each("delivery")
    )
