"""Who asks: a token is looked at before any byte of the body is.

A tenant's routes want `Authorization: Bearer TOKEN`. The operator's want the operator's token, as
bearer or as the password of HTTP Basic, which is what a browser asks a person for.
"""

import base64
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPBasic, HTTPBearer

from verix_anon.service.api.context import context_of
from verix_anon.service.api.problems import Problem
from verix_anon.service.tenants import Role, Token, find

__all__ = ["AS_OPERATOR", "AS_TENANT", "OperatorRoute", "TenantRoute"]

# These describe; the routes below decide, before FastAPI reads anything.
AS_TENANT = HTTPBearer(scheme_name="token", auto_error=False, description="A tenant's token")
AS_OPERATOR = HTTPBasic(
    scheme_name="operator", auto_error=False, description="User `operator`, the operator's token"
)
MAX_TOKEN = 200
USER = "operator"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class TenantRoute(APIRoute):
    """A route for tenants."""

    role = Role.TENANT

    def get_route_handler(self) -> Handler:
        """The handler, behind the guard."""
        inner = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            await _admit(request, self.role)
            return await inner(request)

        return guarded


class OperatorRoute(TenantRoute):
    """A route for the operator."""

    role = Role.OPERATOR


async def _admit(request: Request, role: Role) -> None:
    context = context_of(request)
    sent = _sent(request.headers.get("authorization", ""), role)
    token = await run_in_threadpool(find, context.database, sent) if sent else None
    if token is None or token.role is not role:
        raise _refusal(role)
    request.state.token = token
    request.state.tenant = _logged(token)
    context.rates.check(token.id)
    context.rates.enter(token.id)
    # Called when all of the answer is sent, which is after the route is done.
    request.state.leave = partial(context.rates.leave, token.id)


def _sent(header: str, role: Role) -> str | None:
    """The token in the header, if there is one."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "basic" and role is Role.OPERATOR:
        try:
            user, _, rest = base64.b64decode(rest, validate=True).decode("ascii").partition(":")
        except ValueError:
            return None
        scheme = "bearer" if user == USER else ""
    return rest if scheme.lower() == "bearer" and 0 < len(rest) <= MAX_TOKEN else None


def _logged(token: Token) -> str:
    return token.tenant or f"operator:{token.id}"


def _refusal(role: Role) -> Problem:
    challenge = 'Basic realm="verix operator"' if role is Role.OPERATOR else "Bearer"
    return Problem(
        "unauthorized",
        "There is no such token, or it has expired or was revoked.",
        {"WWW-Authenticate": challenge},
    )
