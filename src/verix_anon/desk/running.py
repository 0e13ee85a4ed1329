"""The desk that runs for a folder: a file that only its user can read names the port and a secret.

With it `verix-anon desk --url` has the running desk accept another link, for another browser. Each
proves to the other that it knows the secret: a desk may have been killed, and another process may
listen on its port.
"""

import hmac
import http.client
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from verix_anon.desk.sessions import ANSWERS, ASKS, TOKEN, proof
from verix_anon.errors import Error, TableError
from verix_anon.fields import Fields
from verix_anon.files.aside import write_bytes, written_aside

__all__ = ["FILE", "Running", "fresh_url", "noted"]

FILE = ".verix-desk.json"
WAIT_SECONDS = 5.0
LONGEST = 1 << 12


class Running(NamedTuple):
    """Where a desk listens, and what only it and its user know."""

    port: int
    control: str


@contextmanager
def noted(folder: Path, running: Running) -> Iterator[None]:
    """The file, as long as the desk runs."""
    path = folder / FILE
    data = json.dumps({"port": running.port, "control": running.control}).encode()
    with written_aside(path, overwrite=True, folder=False, private=True) as aside:
        write_bytes(aside, data)
    try:
        yield
    finally:
        # Another desk may have taken the name since.
        if _read(folder) == running:
            path.unlink(missing_ok=True)


def _read(folder: Path) -> Running | None:
    """What the file says, if it is this user's own and for nobody else."""
    try:
        descriptor = os.open(folder / FILE, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TableError(f"{folder / FILE} cannot be read ({error.strerror})") from None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
            raise TableError(f"{folder / FILE} is not this user's own; it is not believed")
        data = file.read(LONGEST)
    try:
        fields = Fields.parse(data, FILE, TableError)
        return Running(fields.whole("port"), fields.text("control"))
    except Error:
        return None


def fresh_url(folder: Path) -> str | None:
    """Another URL that lets a browser in, once; None if nobody answers who knows the secret."""
    found = _read(folder.resolve())
    if found is None:
        return None
    control, nonce = found.control, secrets.token_urlsafe(32)
    given = {"Authorization": f"Verix {nonce} {proof(control, ASKS, nonce)}"}
    connection = http.client.HTTPConnection("127.0.0.1", found.port, timeout=WAIT_SECONDS)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("POST", "/token", headers=given)
        said = connection.getresponse().read(LONGEST)
        if hmac.compare_digest(said, proof(control, ANSWERS, nonce).encode()):
            return f"http://127.0.0.1:{found.port}/enter?token={proof(control, TOKEN, nonce)}"
    return None
