"""The desk as a process: all pages behind the gate, on one listener of this machine."""

from collections.abc import Callable
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from verix_anon import http_server
from verix_anon.desk.gate import DeskGate
from verix_anon.desk.pages import columns, jobs, privacy, release, send, series, table, verdict
from verix_anon.desk.rendering import Desk, page
from verix_anon.desk.sessions import Sessions, link_file
from verix_anon.desk.tasks import Tasks
from verix_anon.errors import Error, TableError
from verix_anon.protocol.providers import Provider

HOST = "127.0.0.1"
GRACE_SECONDS = 1
"""How long the end waits for open requests: event streams do not end by themselves."""
PAGES = (jobs, series, table, columns, privacy, send, verdict, release)
STATIC = {"desk.css": "text/css", "desk.js": "text/javascript", "desk.svg": "image/svg+xml"}
"""The style, the script and the icon: ours, and small enough to be read."""
router = APIRouter()


def serve(folder: Path, port: int, *, provider: Provider, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `ready` gets the URL that lets a browser in."""
    folder = folder.resolve()
    if not folder.is_dir():
        raise TableError(f"there is no folder {folder}")
    tasks = Tasks(folder)
    with (
        link_file(folder) as write_link,
        http_server.listener(HOST, port) as listener,
        closing(tasks),
    ):
        port = listener.getsockname()[1]

        def link(token: str) -> str:
            return f"http://{HOST}:{port}/enter?token={token}"

        sessions = Sessions(lambda token: write_link(link(token)))
        app = make_app(Desk(folder, tasks, provider), sessions, port)
        http_server.end_by_signal()
        ready(link(sessions.token))
        http_server.serve(app, listener, grace=GRACE_SECONDS)


def make_app(desk: Desk, sessions: Sessions, port: int) -> ASGIApp:
    """Return the application: the gate, with the routes behind it."""
    return DeskGate(make_routes(desk), sessions=sessions, port=port)


def make_routes(desk: Desk) -> FastAPI:
    """Return the routes, which are never served without the gate."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.desk = desk
    app.include_router(router)
    for module in PAGES:
        app.include_router(module.router)
    for kind in (Error, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _told)
    return app


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Send one of the desk's own files."""
    if name not in STATIC:
        raise HTTPException(404)
    data = (files("verix_anon.desk") / "static" / name).read_bytes()
    return Response(data, media_type=STATIC[name])


async def _told(request: Request, error: Exception) -> Response:
    """Show a sentence for the user's own mistakes; for other errors only the status."""
    said = str(error) if isinstance(error, Error) else ""
    status = error.status_code if isinstance(error, HTTPException) else 400
    return page(request, "error.html", {"code": status, "said": said}, status=status)
