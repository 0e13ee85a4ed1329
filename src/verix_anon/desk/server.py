"""The desk as a process: one listener on this machine, from its start until it is ended."""

import signal
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType

import uvicorn

from verix_anon.desk.app import make_app
from verix_anon.desk.running import Running, fresh_url, noted
from verix_anon.desk.sessions import Sessions
from verix_anon.desk.show import Desk
from verix_anon.desk.tasks import Tasks
from verix_anon.errors import ProviderError, TableError

__all__ = ["serve"]

HOST = "127.0.0.1"
GRACE_SECONDS = 1
"""Event streams have no end of their own."""


def serve(folder: Path, port: int, *, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `ready` gets the URL that lets a browser in."""
    folder = folder.resolve()
    if not folder.is_dir():
        raise TableError(f"there is no folder {folder}")
    if fresh_url(folder) is not None:
        raise TableError(
            f"a desk is running for {folder}; its address: verix-anon desk {folder} --url"
        )
    sessions, tasks = Sessions(), Tasks(folder)
    with _listening(port) as listener, closing(tasks):
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            make_app(Desk(folder, tasks), sessions, port),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            # A URL may hold a token.
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            # uvicorn raises the signal once more when it has closed; then the tasks are ended.
            signal.signal(number, _leave)
        with noted(folder, Running(port, sessions.control)):
            ready(f"http://{HOST}:{port}/enter?token={sessions.fresh_token()}")
            uvicorn.Server(config).run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise ProviderError(f"port {port} cannot be listened on ({error.strerror})") from None


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)
