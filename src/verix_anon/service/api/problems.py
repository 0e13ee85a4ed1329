"""What can go wrong over HTTP: each problem has a stable code, and repeats nothing that was sent.

A problem is `application/problem+json` (RFC 9457). Its sentence may state limits and counts of
ours; names, values and tokens that came with the request have no place in it.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
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


_API = tomllib.loads((files("verix_anon.service.api") / "openapi.toml").read_text("utf-8"))
PROBLEMS = {code: ProblemKind(*kind) for code, kind in _API["problems"].items()}
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


def body_of(route: str) -> dict[str, Any]:
    """The body of a request that the route reads itself, as OpenAPI describes it."""
    return {"requestBody": _API["routes"][route]["body"]}


def answers_of(route: str, *, public: bool = False) -> dict[int | str, dict[str, Any]]:
    """What a route answers as OpenAPI describes it; a public one asks for no token."""
    own = _API["routes"][route]
    by_status: dict[int | str, list[str]] = {}
    for code in sorted({*own.get("problems", ()), *ALWAYS, *(() if public else GUARDED)}):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    responses = own.get("responses", {}).items()
    found: dict[int | str, dict[str, Any]] = {int(status): said for status, said in responses}
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
