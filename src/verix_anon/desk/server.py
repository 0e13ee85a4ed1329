"""The desk as a process: one listener on this machine, from its start until it is ended."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from verix_anon import listening
from verix_anon.desk.app import make_app
from verix_anon.desk.running import Running, fresh_url, noted
from verix_anon.desk.sessions import Sessions
from verix_anon.desk.show import Desk
from verix_anon.desk.tasks import Tasks
from verix_anon.errors import TableError
from verix_anon.machine import begin_import

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
    with listening.listener(HOST, port) as listener, closing(tasks):
        port = listener.getsockname()[1]
        app = make_app(Desk(folder, tasks), sessions, port)
        listening.end_by_signal()
        with noted(folder, Running(port, sessions.control)):
            ready(f"http://{HOST}:{port}/enter?token={sessions.fresh_token()}")
            # The first plot would wait for it.
            begin_import("verix_anon.client.report.pictures", "matplotlib.backends.backend_svg")
            listening.serve(app, listener, grace=GRACE_SECONDS)
