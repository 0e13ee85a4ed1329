"""The application: all routes, how failures are told, and the contract of it all (OpenAPI)."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from verix_anon import __version__
from verix_anon.service import operator
from verix_anon.service.api import about, delivery, files, health, jobs
from verix_anon.service.api.context import Context
from verix_anon.service.api.gate import Gate
from verix_anon.service.api.models import JobOrder
from verix_anon.service.api.problems import Problem, ProblemBody, answer, from_validation

__all__ = ["make_app"]

TITLE = "verix-anon service"
IDLE_SECONDS = 60.0


def make_app(context: Context, *, idle_seconds: float = IDLE_SECONDS) -> FastAPI:
    """The application of one HTTP process."""
    app = FastAPI(
        title=TITLE,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    app.state.context = context
    for module in (about, jobs, files, delivery, health, operator):
        app.include_router(module.router)
    app.add_exception_handler(HTTPException, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(
        Gate,
        metrics=context.metrics,
        request_bytes=context.settings.limits.request_bytes,
        idle_seconds=idle_seconds,
    )
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


async def _told(request: Request, error: Exception) -> Response:
    """A problem, ours or the framework's."""
    assert isinstance(error, HTTPException)
    if isinstance(error, Problem):
        return answer(error)
    if error.status_code == 405:
        methods = ", ".join(sorted(_allowed(request)))
        return answer(
            Problem("method-not-allowed", f"Allowed here: {methods}.", {"Allow": methods})
        )
    if error.status_code == 404:
        return answer(Problem("not-found", "There is nothing here."))
    return answer(Problem("invalid-request", "The request cannot be read."))


def _allowed(request: Request) -> set[str]:
    """The methods of all routes that share this path; the framework names those of the first."""
    template = request.scope["route"].path.replace(":path}", "}")
    paths: Mapping[str, Mapping[str, object]] = request.app.openapi()["paths"]
    return {method.upper() for method in paths.get(template, {"get": None})}


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(from_validation(error))


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The contract; what routes read themselves is described here too."""
    if app.openapi_schema is None:
        schema = get_openapi(title=TITLE, version=__version__, routes=app.routes)
        _, made = models_json_schema(
            [(ProblemBody, "serialization"), (JobOrder, "validation")],
            ref_template="#/components/schemas/{model}",
        )
        parts: Mapping[str, Any] = made["$defs"]
        renamed = {name.removesuffix("Body"): part for name, part in parts.items()}
        schema.setdefault("components", {}).setdefault("schemas", {}).update(renamed)
        app.openapi_schema = schema
    return app.openapi_schema
