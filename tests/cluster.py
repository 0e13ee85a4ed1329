"""A PostgreSQL of the tests' own: a cluster in a temporary folder, reached by a socket in it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "s3cr/et@pw"
USER = "owner"


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


def restart(folder: Path) -> None:
    """End the server as a crash would, and start it again."""
    control = program("pg_ctl")
    assert control is not None
    data, log = str(folder / "data"), str(folder / "log")
    run(folder, control, "-w", "-D", data, "-l", log, "-m", "immediate", "restart")


@contextmanager
def running() -> Iterator[Path]:
    """The folder of a server that runs until the block ends."""
    initdb, control, user = program("initdb"), program("pg_ctl"), other_user()
    if initdb is None or control is None:
        pytest.skip("there is no PostgreSQL: make system installs it")
    if os.getuid() == 0 and user is None:
        pytest.skip("PostgreSQL does not run as root, and there is no other user")
    # Not pytest's own folder, which nobody else may enter; and a socket's name must be short.
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        folder = Path(name)
        (folder / "password").write_text(PASSWORD)
        if user:
            shutil.chown(folder, user)
        data = str(folder / "data")
        run(
            folder,
            initdb,
            *("-D", data, "-U", USER, "-A", "scram-sha-256", "-N", "-E", "UTF8", "--locale=C"),
            f"--pwfile={folder / 'password'}",
        )
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        log = str(folder / "log")
        run(folder, control, "-w", "-D", data, "-l", log, "-o", options, "start")
        try:
            yield folder
        finally:
            run(folder, control, "-w", "-D", data, "-m", "immediate", "stop")
