"""A PostgreSQL of one's own: a cluster in a temporary folder, reached by a socket in it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

PASSWORD = "s3cr/et@pw"
USER = "owner"


class NoPostgresError(Exception):
    """There is no PostgreSQL here, or no user that may run it."""


def program(name: str) -> str | None:
    """Debian keeps them beside the path, by version."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(found[-1]) if found else None)


def other_user() -> str | None:
    """Whose the server is: root may not run one."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


def url(folder: Path, password: str = PASSWORD, *, database: str = "postgres") -> str:
    return f"postgresql://{USER}:{quote(password, safe='')}@/{database}?host={folder}"


def run(folder: Path, *command: str) -> None:
    """Run one of its programs as whose it is."""
    done = subprocess.run(
        command, cwd=folder, user=other_user(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def start(folder: Path) -> None:
    """Start the server, which recovers if it ended as by a crash."""
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    _control(folder, "-l", str(folder / "log"), "-o", options, "start")


def stop(folder: Path) -> None:
    """End the server as a crash would."""
    _control(folder, "-m", "immediate", "stop")


def restart(folder: Path) -> None:
    """End the server as a crash would, and start it again."""
    stop(folder)
    start(folder)


def _control(folder: Path, *words: str) -> None:
    control = program("pg_ctl")
    assert control is not None
    run(folder, control, "-w", "-D", str(folder / "data"), *words)


@contextmanager
def running() -> Iterator[Path]:
    """The folder of a server that runs until the block ends; NoPostgresError if there is none."""
    initdb, user = program("initdb"), other_user()
    if initdb is None or program("pg_ctl") is None:
        raise NoPostgresError("there is no PostgreSQL: make system installs it")
    if os.getuid() == 0 and user is None:
        raise NoPostgresError("PostgreSQL does not run as root, and there is no other user")
    # Of this user's own folders others may enter none; and a socket's name must be short.
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        folder = Path(name)
        (folder / "password").write_text(PASSWORD)
        if user:
            shutil.chown(folder, user)
        run(
            folder,
            initdb,
            *("-D", str(folder / "data"), "-U", USER, "-A", "scram-sha-256"),
            *("-N", "-E", "UTF8", "--locale=C", f"--pwfile={folder / 'password'}"),
        )
        start(folder)
        try:
            yield folder
        finally:
            stop(folder)
