"""The server dies, and its clients go on where they were; large files take no memory."""

import random
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

import cluster
from files.samples import delivered
from service.api.test_files import raw_patch
from service.running import (
    PIECE,
    SECONDS,
    Service,
    create,
    ended,
    offset,
    order,
    running,
    send,
    submit,
)

NAME = "records.parquet"


def with_records(submission: Path, size: int, digest: str) -> dict[str, Any]:
    """An order whose records are of this size and digest."""
    asked = order(submission)
    file = next(file for file in asked["files"] if file["name"] == NAME)
    file |= {"size": size, "sha256": digest}
    return asked


def test_an_upload_survives_the_server(tmp_path: Path, submission: Path) -> None:
    """kill -9 in the middle of a PATCH; after a restart HEAD tells from where to go on."""
    data = (submission / NAME).read_bytes()
    with running(tmp_path / "folder") as service, service.client() as client:
        asked = order(submission)
        job = create(client, asked, "key")["id"]
        assert send(client, job, NAME, data[:1_000]).status_code == 204
        path = f"/v1/jobs/{job}/files/{NAME}"
        token = client.headers["authorization"]
        with raw_patch(service.port, path, token, at=1_000, length=len(data) - 1_000) as cut:
            cut.sendall(data[1_000:2_000])
            service.kill()
        service.start()
        at = offset(client, job, NAME)
        assert 1_000 <= at <= 2_000
        assert send(client, job, NAME, data[at:], at).status_code == 204
        assert create(client, asked, "key")["id"] == job
        for name in ("contract.json", "submission.json"):
            assert send(client, job, name, (submission / name).read_bytes()).status_code == 204
        found = ended(client, job)
        assert found["root"] == delivered().header.root.hex(), found


@pytest.mark.long
def test_a_server_that_dies_before_the_last_word(tmp_path: Path, submission: Path) -> None:
    """All bytes are on disk, and nobody noted it: HEAD after the restart does."""
    with running(tmp_path / "folder") as service, service.client() as client:
        job = create(client, order(submission))["id"]
        for name in ("contract.json", "submission.json"):
            assert send(client, job, name, (submission / name).read_bytes()).status_code == 204
        service.kill()
        staged = service.folder / "staging" / job / sha256(NAME.encode()).hexdigest()
        staged.write_bytes((submission / NAME).read_bytes())
        service.start()
        assert offset(client, job, NAME) == staged_size(submission)
        assert ended(client, job)["state"] == "done"


def staged_size(submission: Path) -> int:
    return (submission / NAME).stat().st_size


@pytest.mark.long
def test_a_download_survives_the_server(tmp_path: Path, submission: Path) -> None:
    with running(tmp_path / "folder") as service, service.client() as client:
        job = ended(client, submit(client, submission))
        blob = next(service.folder.glob(f"blobs/jobs/{job['id']}/attempt-*/{NAME}"))
        whole = random.Random(0).randbytes(48 << 20)
        blob.write_bytes(whole)
        restate_row(service, job["id"], len(whole), sha256(whole).hexdigest())
        url = f"/v1/jobs/{job['id']}/delivery/{NAME}"
        got, tag = cut_download(client, url, service)
        assert 8 << 20 <= len(got) < len(whole)
        service.start()
        headers = {"Range": f"bytes={len(got)}-", "If-Range": tag}
        rest = client.get(url, headers=headers)
        assert rest.status_code == 206
        assert got + rest.content == whole


def cut_download(client: httpx2.Client, url: str, service: Service) -> tuple[bytes, str]:
    """What has come of a file when the server is killed in the middle, and its ETag."""
    got = bytearray()
    with suppress(httpx2.HTTPError), client.stream("GET", url) as answer:
        for piece in answer.iter_bytes(1 << 20):
            got += piece
            if len(got) == 8 << 20:
                service.kill()
    return bytes(got), answer.headers["etag"]


def restate_row(service: Service, job: str, size: int, digest: str) -> None:
    """Let the database say of a delivered file what was put in its place."""
    with sqlite3.connect(service.folder / "verix.db") as connection:
        connection.execute(
            "UPDATE delivered SET size = ?, sha256 = ? WHERE job = ? AND name = ?",
            (size, digest, job, NAME),
        )
    connection.close()


def memory(service: Service) -> int:
    """Resident bytes of the server."""
    assert service.process is not None
    text = Path(f"/proc/{service.process.pid}/status").read_text()
    line = next(line for line in text.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


class Watch:
    """The most memory a server had while something went on."""

    def __init__(self, service: Service) -> None:
        self.service, self.most, self.is_over = service, memory(service), threading.Event()
        self.began = self.most
        self.thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self.is_over.wait(0.02):
            self.most = max(self.most, memory(self.service))

    def __enter__(self) -> "Watch":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.thread.join()


LARGE = 300 << 20
MORE = 40 << 20
"""What a transfer may add to the server's memory"""


@pytest.mark.long
def test_memory_does_not_grow_with_a_file(tmp_path: Path, submission: Path) -> None:
    piece = random.Random(0).randbytes(1 << 20)
    n_pieces = LARGE // len(piece)
    digest = sha256()
    for _ in range(n_pieces):
        digest.update(piece)

    def body() -> Iterator[bytes]:
        for _ in range(n_pieces):
            yield piece

    with running(tmp_path / "folder") as service, service.client() as client:
        warm = ended(client, submit(client, submission))
        job = create(client, with_records(submission, LARGE, digest.hexdigest()))["id"]
        with Watch(service) as watch:
            headers = PIECE | {"Upload-Offset": "0"}
            answer = client.patch(f"/v1/jobs/{job}/files/{NAME}", content=body(), headers=headers)
            assert answer.status_code == 204, answer.text
        assert watch.most - watch.began < MORE
        blob = next(service.folder.glob(f"blobs/jobs/{warm['id']}/attempt-*/{NAME}"))
        uploaded = service.folder / "blobs" / "jobs" / job / "upload" / NAME
        uploaded.replace(blob)
        restate_row(service, warm["id"], LARGE, digest.hexdigest())
        seen = sha256()
        url = f"/v1/jobs/{warm['id']}/delivery/{NAME}"
        with Watch(service) as watch, client.stream("GET", url) as download:
            for chunk in download.iter_bytes():
                seen.update(chunk)
        assert seen.hexdigest() == digest.hexdigest()
        assert watch.most - watch.began < MORE


@pytest.mark.long
def test_a_slow_upload_holds_nobody_up(tmp_path: Path, submission: Path) -> None:
    """Twenty clients that send a byte now and then, and one that asks."""
    with running(tmp_path / "folder") as service, service.client() as client:
        data = (submission / NAME).read_bytes()
        token = client.headers["authorization"]
        opened = []
        for _ in range(20):
            job = create(client, order(submission))["id"]
            path = f"/v1/jobs/{job}/files/{NAME}"
            opened.append(raw_patch(service.port, path, token, at=0, length=len(data)))
            opened[-1].sendall(data[:1])
        began = time.monotonic()
        for _ in range(20):
            assert client.get("/v1").status_code == 200
        assert time.monotonic() - began < SECONDS / 4
        for connection in opened:
            connection.close()


@pytest.mark.long
def test_a_database_that_restarts(server: Path, tmp_path: Path, submission: Path) -> None:
    """Who asks meanwhile is told to come again, and afterwards the job goes its way."""
    statuses: set[int] = set()
    is_over = threading.Event()
    name = f"v{secrets.token_hex(8)}"
    with psycopg.connect(cluster.url(server), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = cluster.url(server, database=name)
    with running(tmp_path / "folder", database=url) as service, service.client() as client:
        job = create(client, order(submission))["id"]

        def ask() -> None:
            with service.client(client.headers["authorization"].split()[1]) as other:
                while not is_over.is_set():
                    statuses.add(other.get(f"/v1/jobs/{job}").status_code)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            cluster.restart(server)
        finally:
            is_over.set()
            asking.join()
        assert statuses <= {200, 503}
        for file in order(submission)["files"]:
            data = (submission / file["name"]).read_bytes()
            assert send(client, job, file["name"], data).status_code == 204
        assert ended(client, job)["root"] == delivered().header.root.hex()
