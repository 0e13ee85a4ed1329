"""A service in a process of its own, its address, tokens, and what it and its workers take."""

import os
import re
import resource
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from verix_anon.service.database import Database
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.tenants import TokenRole, create_token

SECONDS = 60.0


def allow_descriptors() -> None:
    """Allow this process, and those that it starts, as many connections as the system does."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@dataclass(frozen=True, slots=True)
class Service:
    """A service that runs."""

    folder: Path
    process: subprocess.Popen[str]
    url: str

    def token(self, tenant: str | None) -> str:
        """A new token, of a tenant, or the operator's for None."""
        database = Database(ServiceSettings(folder=self.folder).database_url)
        try:
            role = TokenRole.OPERATOR if tenant is None else TokenRole.TENANT
            return create_token(database, tenant, role)
        finally:
            database.close()

    def workers(self) -> list[int]:
        """Processes that the server started."""
        return [pid for pid in _processes() if _parent(pid) == self.process.pid]

    def peaks(self) -> tuple[int, list[int]]:
        """The most memory that the server has held, and each worker."""
        return _peak(self.process.pid), [_peak(pid) for pid in self.workers()]

    def statuses(self) -> dict[str, int]:
        """How many requests were answered with each status."""
        asked = urllib.request.Request(
            f"{self.url}/metrics", headers={"Authorization": f"Bearer {self.token(None)}"}
        )
        with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
            text = answer.read().decode()
        found: dict[str, int] = {}
        for labels, value in re.findall(
            r"^verix_requests_total\{(.*)\} (\S+)$", text, re.MULTILINE
        ):
            status = re.search(r'status="(\d+)"', labels)
            assert status is not None
            found[status[1]] = found.get(status[1], 0) + int(float(value))
        return dict(sorted(found.items()))


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Service]:
    """A service on a free port until the block ends, whatever ends it."""
    command = [sys.executable, "-m", "verix_anon", "serve", str(folder), "--port", "0", *options]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said, (folder / "log").read_text()[-2000:]
        yield Service(folder, process, said.split()[-1])
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert process.stdout is not None
        process.stdout.close()


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent(pid: int) -> int:
    return _status(pid).get("PPid", 0)


def _peak(pid: int) -> int:
    return 1024 * _status(pid).get("VmHWM", 0)


def _status(pid: int) -> dict[str, int]:
    """The numbers that the system tells of a process; none of one that has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    return {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+)", text, re.MULTILINE)}
