"""What can go wrong over HTTP: each problem has a stable code, and repeats nothing that was sent.

A problem is `application/problem+json` (RFC 9457). Its sentence may state limits and counts of
ours; names, values and tokens that came with the request have no place in it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

MEDIA_TYPE = "application/problem+json"
URN = "urn:verix:problem:"


class ProblemKind(NamedTuple):
    """What a code means whenever it is used."""

    status: int
    title: str


PROBLEMS: dict[str, ProblemKind] = {
    "unauthorized": ProblemKind(401, "A valid token is needed"),
    "not-found": ProblemKind(404, "There is no such thing"),
    "method-not-allowed": ProblemKind(405, "The method is not allowed here"),
    "request-timeout": ProblemKind(408, "The request came too slowly"),
    "offset-mismatch": ProblemKind(409, "The upload is at another offset"),
    "upload-taken-over": ProblemKind(409, "Another request continues this upload"),
    "wrong-state": ProblemKind(409, "The job's state does not allow this"),
    "idempotency-key-in-flight": ProblemKind(409, "A request with this key is under way"),
    "unsupported-tus-version": ProblemKind(412, "The tus version is not supported"),
    "upload-too-large": ProblemKind(413, "The upload is too large"),
    "request-too-large": ProblemKind(413, "The request is too large"),
    "too-many-rows": ProblemKind(413, "The submission has too many rows"),
    "too-many-columns": ProblemKind(413, "The contract has too many columns"),
    "job-too-large": ProblemKind(413, "The job does not fit this service's memory"),
    "unsupported-media-type": ProblemKind(415, "The body is of another media type"),
    "range-not-satisfiable": ProblemKind(416, "The file has no such range"),
    "invalid-request": ProblemKind(422, "The request is not valid"),
    "invalid-contract": ProblemKind(422, "The contract is not valid"),
    "unknown-rule": ProblemKind(422, "The contract's rule is not known here"),
    "digest-mismatch": ProblemKind(422, "The upload has another SHA-256"),
    "idempotency-key-reused": ProblemKind(422, "The key was used for another job"),
    "rate-limited": ProblemKind(429, "Too many requests"),
    "too-many-jobs": ProblemKind(429, "Too many jobs at once"),
    "too-many-bytes": ProblemKind(429, "Too many bytes are announced or kept"),
    "internal": ProblemKind(500, "The service failed"),
    "unavailable": ProblemKind(503, "The service cannot work just now"),
    "storage-full": ProblemKind(507, "The service has no room left"),
}
# What any request may meet, whatever it asks for.
ALWAYS = ("internal", "request-too-large", "request-timeout")
GUARDED = ("unauthorized", "rate-limited", "unavailable")


class ProblemBody(BaseModel):
    """A problem (RFC 9457)."""

    model_config = ConfigDict(extra="forbid", title="Problem")

    type: str = Field(description=f"`{URN}` and the code")
    title: str = Field(description="What the code means")
    status: int = Field(description="The HTTP status")
    detail: str = Field(description="What happened here; it repeats nothing that was sent")
    code: str = Field(description="Stable, for programs")


class Problem(HTTPException):
    """Raised wherever a request cannot be answered; ends as the answer."""

    def __init__(self, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(PROBLEMS[code].status, detail, dict(headers or {}))
        self.code = code


def answer(problem: Problem) -> JSONResponse:
    """A problem as it is sent."""
    kind = PROBLEMS[problem.code]
    body = ProblemBody(
        type=URN + problem.code,
        title=kind.title,
        status=kind.status,
        detail=problem.detail,
        code=problem.code,
    )
    return JSONResponse(body.model_dump(), kind.status, problem.headers, MEDIA_TYPE)


def from_validation(error: RequestValidationError | ValidationError) -> Problem:
    """Which fields are wrong, by the names that the contract of this service gives them.

    Where a field has no business, its name is the sender's and is left out, as all values are.
    """
    found = set()
    for each in error.errors():
        parts = [str(part) for part in each["loc"]]
        place = ".".join(parts[:-1] if each["type"] == "extra_forbidden" else parts)
        found.add(f"{place or 'body'} ({each['type']})")
    shown = sorted(found)[:5]
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return Problem("invalid-request", f"Not valid: {', '.join(shown)}{more}.")


def described(*codes: str, public: bool = False) -> dict[int | str, dict[str, Any]]:
    """The problems of a route as OpenAPI describes them; a public one asks for no token."""
    by_status: dict[int | str, list[str]] = {}
    for code in sorted({*codes, *ALWAYS, *(() if public else GUARDED)}):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    found: dict[int | str, dict[str, Any]] = {}
    for status, named in by_status.items():
        schema = {
            "allOf": [{"$ref": "#/components/schemas/Problem"}],
            "properties": {"code": {"enum": named}},
        }
        found[status] = {
            "description": "; ".join(f"`{code}`: {PROBLEMS[code].title}" for code in named),
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
        if status in (429, 503):
            seconds = {"schema": {"type": "integer", "minimum": 1}}
            found[status]["headers"] = {
                "Retry-After": {**seconds, "description": "Seconds to wait"}
            }
    return found
