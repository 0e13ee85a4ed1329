"""The application: the routes of all pages behind the gate, and how mistakes are told."""

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from verix_anon.desk.gate import Gate
from verix_anon.desk.pages import (
    columns,
    jobs,
    privacy,
    release,
    send,
    static,
    table,
    task,
    upload,
    verdict,
)
from verix_anon.desk.sessions import Sessions
from verix_anon.desk.show import Desk, page
from verix_anon.errors import Error

__all__ = ["PAGES", "make_app", "make_routes"]

PAGES = (static, jobs, task, table, upload, columns, privacy, send, verdict, release)


def make_app(desk: Desk, sessions: Sessions, port: int) -> ASGIApp:
    """All that listens: the gate is the application, and the routes are behind it."""
    return Gate(make_routes(desk), sessions=sessions, port=port)


def make_routes(desk: Desk) -> FastAPI:
    """The routes; never served without the gate."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.desk = desk
    for module in PAGES:
        app.include_router(module.router)
    app.add_exception_handler(Error, _mistaken)
    app.add_exception_handler(HTTPException, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


async def _mistaken(request: Request, error: Exception) -> Response:
    """A sentence for the person who made the mistake."""
    return page(request, "error.html", {"code": 400, "said": str(error)}, status=400)


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    view = {"code": error.status_code, "said": ""}
    return page(request, "error.html", view, status=error.status_code)


async def _invalid(request: Request, error: Exception) -> Response:
    return page(request, "error.html", {"code": 400, "said": ""}, status=400)
