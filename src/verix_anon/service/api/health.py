"""Whether the process is alive, whether it can work, and its figures."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response, Security
from pydantic import BaseModel

from verix_anon.service.api.auth import AS_OPERATOR, OperatorRoute
from verix_anon.service.api.context import context_of
from verix_anon.service.api.problems import Problem, described
from verix_anon.service.metrics import CONTENT_TYPE

__all__ = ["router"]

router = APIRouter(tags=["operation"])
guarded = APIRouter(
    route_class=OperatorRoute, tags=["operation"], dependencies=[Security(AS_OPERATOR)]
)


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


@router.get("/healthz", responses=described(public=True))
async def healthz() -> Health:
    """Whether the process answers, whatever its threads are busy with."""
    return Health()


@router.get("/readyz", responses=described("unavailable", public=True))
def readyz(request: Request) -> Health:
    """Whether the database and the blobs can be reached."""
    if not context_of(request).readiness.is_ready():
        raise Problem(
            "unavailable", "The database or the files cannot be reached.", {"Retry-After": "5"}
        )
    return Health()


METRICS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Figures for Prometheus", "content": {"text/plain": {}}}
}


@guarded.get("/metrics", response_class=Response, responses=METRICS | described())
def metrics(request: Request) -> Response:
    """Requests by route, bytes, jobs by state."""
    return Response(context_of(request).metrics.text(), media_type=CONTENT_TYPE)


router.include_router(guarded)
