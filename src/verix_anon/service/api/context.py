"""What the routes of one HTTP process share: the service's state, its limits, and who asks.

A token is looked at before any byte of the body is. A tenant's routes want `Authorization: Bearer
TOKEN`. The operator's want the operator's token, as bearer or as the password of HTTP Basic, which
is what a browser asks a person for.
"""

import base64
import math
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from threading import Lock

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPBasic, HTTPBearer
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from sqlalchemy import select

from verix_anon.service.api.gate import Metrics
from verix_anon.service.api.problems import Problem
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database, ServerRow, TokenRow, now
from verix_anon.service.logs import log
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.tenants import TokenRole, find

MAX_TOKEN = 200
USER = "operator"
KEPT_SECONDS = 1.0
"""How long an answer is kept: anybody may ask, and each look asks the database"""
SILENT_SECONDS = 12.0
"""After this many seconds without a row, the supervisor or the database does not work"""
MOST_AT_ONCE = 32
COST_BYTES = 1 << 14
"""A request counts once more for each of these in its body, uploads aside"""
LARGE_BYTES, LARGE_WEIGHT = 1 << 16, 16
"""A body of more than so many bytes counts for so many requests at once"""


class Rates:
    """Requests per minute and token."""

    def __init__(self, per_minute: int) -> None:
        self.item = RateLimitItemPerMinute(per_minute)
        self.limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._in_flight = Counter[str]()

    def check(self, token: str, cost: int = 1) -> None:
        """Count a request; one too many is a problem that says when to come again."""
        if self.limiter.hit(self.item, token, cost=min(cost, self.item.amount)):
            return
        reset = self.limiter.get_window_stats(self.item, token).reset_time
        wait = min(60, max(1, math.ceil(reset - time.time())))
        raise Problem(
            "rate-limited",
            f"At most {self.item.amount} requests a minute are answered for a token.",
            {"Retry-After": str(wait)},
        )

    def enter(self, token: str, weight: int = 1) -> None:
        """Count a request that is being answered, until `leave`; one too many is a problem."""
        if self._in_flight[token] + weight > MOST_AT_ONCE:
            raise Problem(
                "rate-limited",
                f"At most {MOST_AT_ONCE} requests of a token are answered at once.",
                {"Retry-After": "1"},
            )
        self._in_flight[token] += weight

    def leave(self, token: str, weight: int = 1) -> None:
        """Count a request as ended."""
        # A token without requests is forgotten.
        self._in_flight -= Counter({token: weight})


def workers(database: Database) -> list[tuple[str, int]]:
    """Return the servers that wrote a row lately, and how many workers of each were alive."""
    lately = ServerRow.seen > now() - SILENT_SECONDS
    wanted = select(ServerRow.name, ServerRow.workers).where(lately).order_by(ServerRow.name)
    with database.read() as session:
        return [(name, int(alive)) for name, alive in session.execute(wanted)]


class Readiness:
    """What the supervisor found when it last looked, so that a store that hangs cannot delay it."""

    def __init__(self, database: Database, server: str) -> None:
        self.database, self.server = database, server
        self._lock = Lock()
        self._found: tuple[float, bool] | None = None

    def is_ready(self) -> bool:
        """Whether supervisor, workers, database and files all work."""
        with self._lock:
            if self._found is None or time.monotonic() > self._found[0] + KEPT_SECONDS:
                self._found = (time.monotonic(), self._look())
            return self._found[1]

    def _look(self) -> bool:
        its = (ServerRow.name == self.server, ServerRow.seen > now() - SILENT_SECONDS)
        try:
            with self.database.read() as session:
                found = session.scalars(select(ServerRow).where(*its)).one_or_none()
        except Exception as error:
            log.warning("not ready", error=type(error).__name__)
            return False
        if found is None:
            log.warning("not ready", error="the supervisor is silent")
        return found is not None and found.workers > 0 and found.is_storing


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One service: its settings and where its state is."""

    settings: ServiceSettings
    database: Database
    blobs: Blobs
    rates: Rates
    readiness: Readiness
    metrics: Metrics


def context_of(request: Request) -> Context:
    """What the application was made with."""
    context: Context = request.app.state.context
    return context


def tenant_of(request: Request) -> str:
    """Return the tenant of a request; the guard has checked its token."""
    token: TokenRow = request.state.token
    assert token.tenant is not None
    return token.tenant


async def token_of(request: Request, role: TokenRole) -> TokenRow:
    """Return the valid token that a request came with."""
    context = context_of(request)
    sent = _sent(request.headers.get("authorization", ""), role)
    token = await run_in_threadpool(find, context.database, sent) if sent else None
    if token is None or token.role != role:
        challenge = 'Basic realm="verix operator"' if role is TokenRole.OPERATOR else "Bearer"
        raise Problem(
            "unauthorized",
            "There is no such token, or it has expired or was revoked.",
            {"WWW-Authenticate": challenge},
        )
    return token


class _TenantGuard(HTTPBearer):
    async def __call__(self, request: Request) -> None:  # type: ignore[override]
        await _admit(request, TokenRole.TENANT)


class _OperatorGuard(HTTPBasic):
    async def __call__(self, request: Request) -> None:  # type: ignore[override]
        await _admit(request, TokenRole.OPERATOR)


# Routers name these as their first dependency, so they decide before anything else is looked at.
AS_TENANT = _TenantGuard(scheme_name="token", description="A tenant's token")
AS_OPERATOR = _OperatorGuard(
    scheme_name="operator", description="User `operator`, the operator's token"
)


async def _admit(request: Request, role: TokenRole) -> None:
    context, token = context_of(request), await token_of(request, role)
    request.state.token = token
    request.state.tenant = token.tenant or f"operator:{token.id}"
    size = request.state.body_bytes = _body_bytes(request)
    weight = LARGE_WEIGHT if size > LARGE_BYTES else 1
    context.rates.check(token.id, 1 + size // COST_BYTES)
    context.rates.enter(token.id, weight)
    # Called when all of the answer is sent, which is after the route is done.
    request.state.leave = partial(context.rates.leave, token.id, weight)


def _body_bytes(request: Request) -> int:
    """Bytes that the body may have; 0 for pieces of uploads, which are never held as a whole."""
    if request.method == "PATCH":
        return 0
    most, stated = context_of(request).settings.limits.request_bytes, request.headers
    if "transfer-encoding" in stated:
        return most
    length = stated.get("content-length", "0")
    return min(most, int(length)) if length.isdecimal() else most


def _sent(header: str, role: TokenRole) -> str | None:
    """The token in the header, if there is one."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "basic" and role is TokenRole.OPERATOR:
        try:
            user, _, rest = base64.b64decode(rest, validate=True).decode("ascii").partition(":")
        except ValueError:
            return None
        scheme = "bearer" if user == USER else ""
    return rest if scheme.lower() == "bearer" and 0 < len(rest) <= MAX_TOKEN else None
