"""HTTP on one socket until SIGTERM or SIGINT: what the desk and the service are served by."""

import signal
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

from verix_anon.errors import ProviderError

BACKLOG = 512


def listener(host: str, port: int) -> socket.socket:
    """A socket that takes connections; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ProviderError(
            f"{host} port {port} cannot be listened on ({error.strerror})"
        ) from None


def end_by_signal() -> None:
    """From now on a signal leaves this process by its `with` statements.

    uvicorn raises the signal once more when it has closed, and then what runs beside is ended.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))


def serve(
    app: Any, on: socket.socket, *, grace: int, tls: tuple[Path | None, Path | None] = (None, None)
) -> None:
    """Answer requests; those that last longer than so many seconds after a signal are cut.

    `tls` is the file of a certificate and that of its key.
    """
    certificate, key = tls
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        # A URL may hold a token.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=grace,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    uvicorn.Server(config).run(sockets=[on])
