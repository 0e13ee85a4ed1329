"""What the routes of one HTTP process share."""

from dataclasses import dataclass

from fastapi import Request

from verix_anon.service.api.models import Key
from verix_anon.service.api.rates import Rates
from verix_anon.service.api.readiness import Readiness
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database
from verix_anon.service.metrics import Metrics
from verix_anon.service.settings import Settings
from verix_anon.service.tenants import Token

__all__ = ["Context", "context_of", "tenant_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One service: its settings and where its state is."""

    settings: Settings
    database: Database
    blobs: Blobs
    rates: Rates
    readiness: Readiness
    metrics: Metrics
    keys: tuple[Key, ...] = ()
    """Receipts are signed with one of these"""


def context_of(request: Request) -> Context:
    """What the application was made with."""
    context: Context = request.app.state.context
    return context


def tenant_of(request: Request) -> str:
    """Whose request it is; the guard has seen to it that it is somebody's."""
    token: Token = request.state.token
    assert token.tenant is not None
    return token.tenant
