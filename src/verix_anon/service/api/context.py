"""What the routes of one HTTP process share: the service's state, its limits, and who asks.

A token is looked at before any byte of the body is. A tenant's routes want `Authorization: Bearer
TOKEN`. The operator's want the operator's token, as bearer or as the password of HTTP Basic, which
is what a browser asks a person for.
"""

import base64
import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPBasic, HTTPBearer
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from verix_anon.service.api.bodies import Key
from verix_anon.service.api.gate import Metrics
from verix_anon.service.api.problems import Problem
from verix_anon.service.blobs import Blobs
from verix_anon.service.database import Database
from verix_anon.service.jobs import database_time
from verix_anon.service.logs import log
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.tenants import Token, TokenRole, find

# These describe; the routes below decide, before FastAPI reads anything.
AS_TENANT = HTTPBearer(scheme_name="token", auto_error=False, description="A tenant's token")
AS_OPERATOR = HTTPBasic(
    scheme_name="operator", auto_error=False, description="User `operator`, the operator's token"
)
MAX_TOKEN = 200
USER = "operator"
KEPT_SECONDS = 1.0
"""Anybody may ask, and each look stores a file: an answer counts for so long"""
MOST_AT_ONCE = 32


class Rates:
    """Requests per minute and token."""

    def __init__(self, per_minute: int) -> None:
        self.item = RateLimitItemPerMinute(per_minute)
        self.limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._in_flight = Counter[str]()

    def check(self, token: str) -> None:
        """Count a request; one too many is a problem that says when to come again."""
        if self.limiter.hit(self.item, token):
            return
        reset = self.limiter.get_window_stats(self.item, token).reset_time
        wait = min(60, max(1, math.ceil(reset - time.time())))
        raise Problem(
            "rate-limited",
            f"At most {self.item.amount} requests a minute are answered for a token.",
            {"Retry-After": str(wait)},
        )

    def enter(self, token: str) -> None:
        """Count a request that is being answered, until `leave`; one too many is a problem."""
        if self._in_flight[token] >= MOST_AT_ONCE:
            raise Problem(
                "rate-limited",
                f"At most {MOST_AT_ONCE} requests of a token are answered at once.",
                {"Retry-After": "1"},
            )
        self._in_flight[token] += 1

    def leave(self, token: str) -> None:
        """One request less."""
        self._in_flight[token] -= 1
        if not self._in_flight[token]:
            del self._in_flight[token]


class Readiness:
    """What was found out last, and when."""

    def __init__(self, database: Database, blobs: Blobs, staging: Path) -> None:
        self.database, self.blobs, self.staging = database, blobs, staging
        self._lock = Lock()
        self._found: tuple[float, bool] | None = None

    def is_ready(self) -> bool:
        """Whether database and files can be reached."""
        with self._lock:
            if self._found is None or time.monotonic() > self._found[0] + KEPT_SECONDS:
                self._found = (time.monotonic(), self._look())
            return self._found[1]

    def _look(self) -> bool:
        try:
            with self.database.read() as session:
                database_time(session)
            self.blobs.check()
            self.staging.stat()
        except Exception as error:
            log.warning("not ready", error=type(error).__name__)
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One service: its settings and where its state is."""

    settings: ServiceSettings
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


class TenantRoute(APIRoute):
    """A route for tenants."""

    role = TokenRole.TENANT

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, behind the guard."""
        inner = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            await _admit(request, self.role)
            return await inner(request)

        return guarded


class OperatorRoute(TenantRoute):
    """A route for the operator."""

    role = TokenRole.OPERATOR


async def _admit(request: Request, role: TokenRole) -> None:
    context = context_of(request)
    sent = _sent(request.headers.get("authorization", ""), role)
    token = await run_in_threadpool(find, context.database, sent) if sent else None
    if token is None or token.role is not role:
        challenge = 'Basic realm="verix operator"' if role is TokenRole.OPERATOR else "Bearer"
        raise Problem(
            "unauthorized",
            "There is no such token, or it has expired or was revoked.",
            {"WWW-Authenticate": challenge},
        )
    request.state.token = token
    request.state.tenant = token.tenant or f"operator:{token.id}"
    context.rates.check(token.id)
    context.rates.enter(token.id)
    # Called when all of the answer is sent, which is after the route is done.
    request.state.leave = partial(context.rates.leave, token.id)


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
