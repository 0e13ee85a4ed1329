"""What this service can do, so that a client refuses before it uploads."""

from fastapi import APIRouter, Request, Security

from verix_anon import __version__
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.wire import SERVICE_FORMAT
from verix_anon.service import engines
from verix_anon.service.api import models
from verix_anon.service.api.auth import AS_TENANT, TenantRoute
from verix_anon.service.api.context import context_of
from verix_anon.service.api.problems import described

__all__ = ["router"]

router = APIRouter(route_class=TenantRoute, tags=["about"], dependencies=[Security(AS_TENANT)])


@router.get("/v1", responses=described())
def about(request: Request) -> models.About:
    """Limits, rules, engines, and the keys that receipts are signed with."""
    context = context_of(request)
    settings, limits = context.settings, context.settings.limits
    return models.About(
        format=SERVICE_FORMAT,
        version=__version__,
        rules=[rule.value for rule in Rule],
        engines=list(engines.names(settings)),
        keys=list(context.keys),
        limits=models.LimitsBody(
            upload_bytes=limits.upload_bytes,
            file_bytes=limits.file_bytes,
            rows=limits.rows,
            columns=limits.columns,
            concurrent_jobs=limits.concurrent_jobs,
            requests_per_minute=limits.requests_per_minute,
            request_bytes=limits.request_bytes,
            worker_bytes=settings.worker_bytes,
            retention_seconds=int(settings.retention_seconds),
        ),
    )
