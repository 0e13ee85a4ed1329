"""A service as an operator runs it: the real command in a process of its own, on a free port."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2

from verix_anon.service.database import Database
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.tenants import TokenRole, create_token

SECONDS = 60.0
"""How long anything may take that a test waits for"""
TUS = {"Tus-Resumable": "1.0.0"}
PIECE = TUS | {"Content-Type": "application/offset+octet-stream"}


@dataclass
class Service:
    """A service that can be ended, killed and started again on the same folder."""

    folder: Path
    options: tuple[str, ...] = ()
    database: str = ""
    port: int = 0
    process: subprocess.Popen[str] | None = None
    url: str = ""
    groups: list[int] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / "service.log"

    def start(self) -> None:
        """Start the command; it has said its address when this returns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        given = ["--database", self.database] if self.database else []
        command = [sys.executable, "-m", "verix_anon", "serve", str(self.folder)]
        command += ["--port", str(self.port), *given, *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        self.groups.append(self.process.pid)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said, self.log.read_text()[-2000:]
        self.url = said.split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def stop(self) -> int:
        """End it as an operator does."""
        assert self.process is not None
        self.process.terminate()
        return self._wait()

    def kill(self) -> None:
        """kill -9 of the server alone."""
        assert self.process is not None
        self.process.kill()
        self._wait()

    def _wait(self) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        code = self.process.wait(SECONDS)
        self.process.stdout.close()
        return code

    def close(self) -> None:
        """Nothing that was started outlives a test."""
        with suppress(subprocess.TimeoutExpired):
            self.stop()
        for group in self.groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._wait()

    def token(self, tenant: str | None = "acme", *, expires_in: float | None = None) -> str:
        """A new token of a tenant; the operator's for None."""
        settings = ServiceSettings(folder=self.folder, database=self.database)
        database = Database(settings.database_url)
        try:
            role = TokenRole.OPERATOR if tenant is None else TokenRole.TENANT
            return create_token(database, tenant, role, expires_in)
        finally:
            database.close()

    def client(self, token: str | None = None, **options: Any) -> httpx2.Client:
        """A client with a token, by default a new one of the tenant `acme`."""
        headers = {"Authorization": f"Bearer {token or self.token()}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=SECONDS, **options)


@contextmanager
def running(folder: Path, *options: str, database: str = "") -> Iterator[Service]:
    """A service with one worker unless the options say otherwise, ended with the block."""
    given = options if "--workers" in options else ("--workers", "1", *options)
    service = Service(folder, given, database)
    try:
        service.start()
        yield service
    finally:
        if service.process is not None:
            service.close()


def order(submission: Path) -> dict[str, Any]:
    """What a job for a submission's folder is asked for with."""
    files = []
    for path in sorted(path for path in submission.rglob("*") if path.is_file()):
        data = path.read_bytes()
        name = path.relative_to(submission).as_posix()
        files.append({"name": name, "size": len(data), "sha256": sha256(data).hexdigest()})
    stated = json.loads((submission / "submission.json").read_bytes())
    contract = json.loads((submission / "contract.json").read_bytes())
    return {"contract": contract, "rows": stated["rows"], "files": files}


def create(client: httpx2.Client, asked: dict[str, Any], key: str | None = None) -> dict[str, Any]:
    """A new job."""
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = client.post("/v1/jobs", json=asked, headers=headers)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{made['id']}"
    return made


def send(client: httpx2.Client, job: str, name: str, data: bytes, at: int = 0) -> httpx2.Response:
    """Bytes of a file at an offset."""
    headers = PIECE | {"Upload-Offset": str(at)}
    return client.patch(f"/v1/jobs/{job}/files/{name}", content=data, headers=headers)


def offset(client: httpx2.Client, job: str, name: str) -> int:
    """How much of a file is there."""
    answer = client.head(f"/v1/jobs/{job}/files/{name}", headers=TUS)
    assert answer.status_code == 200
    return int(answer.headers["upload-offset"])


def submit(client: httpx2.Client, submission: Path) -> str:
    """The id of a job with all files of a submission uploaded."""
    made = create(client, order(submission))
    for file in made["files"]:
        data = (submission / file["name"]).read_bytes()
        assert send(client, made["id"], file["name"], data).status_code == 204
    return str(made["id"])


def ended(client: httpx2.Client, job: str) -> dict[str, Any]:
    """The job when it is done or has failed."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        shown: dict[str, Any] = client.get(f"/v1/jobs/{job}").json()
        if shown["state"] in ("done", "failed"):
            return shown
        time.sleep(0.05)
    raise AssertionError(f"the job is still {shown['state']}")


def fetch(client: httpx2.Client, shown: dict[str, Any], folder: Path) -> Path:
    """The delivery of a job that is done, each file with the digest that was stated."""
    for file in shown["delivery"]:
        data = client.get(f"/v1/jobs/{shown['id']}/delivery/{file['name']}").content
        assert sha256(data).hexdigest() == file["sha256"]
        (folder / file["name"]).parent.mkdir(parents=True, exist_ok=True)
        (folder / file["name"]).write_bytes(data)
    return folder
