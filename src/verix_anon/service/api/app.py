"""The application: all routes, how failures are told, and the contract of it all (OpenAPI).

The routes about the service itself are here: whether it is alive and can work, its figures, and
what it offers.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from verix_anon import __version__
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.providers import SERVICE_FORMAT
from verix_anon.service import engines, operator
from verix_anon.service.api import bodies, file_routes, job_routes
from verix_anon.service.api.context import AS_OPERATOR, AS_TENANT, Context, context_of
from verix_anon.service.api.gate import CONTENT_TYPE, ServiceGate
from verix_anon.service.api.problems import (
    Problem,
    ProblemBody,
    answer,
    answers_of,
    from_validation,
)

TITLE = "verix-anon service"
IDLE_SECONDS = 60.0

public = APIRouter(tags=["operation"])
for_operator = APIRouter(tags=["operation"], dependencies=[Security(AS_OPERATOR)])
for_tenants = APIRouter(tags=["operation", "about"], dependencies=[Security(AS_TENANT)])


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


@public.get("/healthz", responses=answers_of("healthz", public=True))
async def healthz() -> Health:
    """Whether the process answers, even if all its threads are busy."""
    return Health()


@public.get("/readyz", responses=answers_of("readyz", public=True))
def readyz(request: Request) -> Health:
    """Whether supervisor, workers, database and files all work."""
    if not context_of(request).readiness.is_ready():
        raise Problem(
            "unavailable",
            "The supervisor, all workers, the database or the files do not work.",
            {"Retry-After": "5"},
        )
    return Health()


@for_operator.get("/metrics", response_class=Response, responses=answers_of("metrics"))
def metrics(request: Request) -> Response:
    """Requests by route, bytes, jobs by state."""
    return Response(context_of(request).metrics.text(), media_type=CONTENT_TYPE)


@for_tenants.get("/v1", responses=answers_of("about"))
def about(request: Request) -> bodies.AboutService:
    """Limits, rules, engines, and the keys that receipts are signed with."""
    settings = context_of(request).settings
    signer = settings.signer
    return bodies.AboutService(
        format=SERVICE_FORMAT,
        version=__version__,
        rules=[rule.value for rule in Rule],
        engines=list(engines.names(settings)),
        keys=[bodies.Key(keyid=signer.public.keyid, public=signer.public.pem)] if signer else [],
        limits=bodies.LimitsBody(
            **asdict(settings.limits),
            worker_bytes=settings.worker_bytes,
            retention_seconds=int(settings.retention_seconds),
        ),
    )


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
    of_jobs = (job_routes.router, file_routes.uploads, file_routes.deliveries)
    for router in (*of_jobs, public, for_operator, for_tenants, operator.router):
        app.include_router(router)
    app.add_exception_handler(HTTPException, _told)
    app.add_exception_handler(RequestValidationError, _told)
    app.add_middleware(
        ServiceGate,
        metrics=context.metrics,
        request_bytes=context.settings.limits.request_bytes,
        idle_seconds=idle_seconds,
    )
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


async def _told(request: Request, error: Exception) -> Response:
    """A problem, ours or the framework's."""
    if isinstance(error, RequestValidationError):
        return answer(from_validation(error))
    assert isinstance(error, HTTPException)
    if isinstance(error, Problem):
        return answer(error)
    if error.status_code == 405:
        # The methods of all routes that share this path; the framework names those of the first.
        template = request.scope["route"].path.replace(":path}", "}")
        paths: Mapping[str, Mapping[str, object]] = request.app.openapi()["paths"]
        methods = ", ".join(sorted(each.upper() for each in paths.get(template, {"get": None})))
        return answer(
            Problem("method-not-allowed", f"Allowed here: {methods}.", {"Allow": methods})
        )
    if error.status_code == 404:
        return answer(Problem("not-found", "There is nothing here."))
    return answer(Problem("invalid-request", "The request cannot be read."))


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The contract; what routes read themselves is described here too."""
    if app.openapi_schema is None:
        schema = get_openapi(title=TITLE, version=__version__, routes=app.routes)
        _, made = models_json_schema(
            [(ProblemBody, "serialization"), (bodies.JobOrder, "validation")],
            ref_template="#/components/schemas/{model}",
        )
        parts: Mapping[str, Any] = made["$defs"]
        renamed = {name.removesuffix("Body"): part for name, part in parts.items()}
        schema.setdefault("components", {}).setdefault("schemas", {}).update(renamed)
        app.openapi_schema = schema
    return app.openapi_schema
