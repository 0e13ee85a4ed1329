"""Uploads over HTTP, as tus 1.0 has them."""

import random
import socket
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from service.api.test_jobs import code
from service.running import PIECE, SECONDS, TUS, Service, create, offset, order, send

NAME = "records.parquet"


class Sent:
    """A job of which nothing has been uploaded, and the bytes of its records."""

    def __init__(self, client: httpx2.Client, submission: Path) -> None:
        self.client = client
        asked = order(submission)
        # Whether they are Parquet is for the worker to find out.
        self.data = random.Random(0).randbytes(2 << 20)
        file = next(file for file in asked["files"] if file["name"] == NAME)
        file |= {"size": len(self.data), "sha256": sha256(self.data).hexdigest()}
        self.job = str(create(client, asked)["id"])
        self.path = f"/v1/jobs/{self.job}/files/{NAME}"

    def send(self, data: bytes, at: int) -> httpx2.Response:
        return send(self.client, self.job, NAME, data, at)

    def offset(self) -> int:
        return offset(self.client, self.job, NAME)


@pytest.fixture
def sent(client: httpx2.Client, submission: Path) -> Sent:
    return Sent(client, submission)


def test_a_file_in_pieces(sent: Sent) -> None:
    assert sent.offset() == 0
    for at in range(0, len(sent.data), 500_000):
        answer = sent.send(sent.data[at : at + 500_000], at)
        assert answer.status_code == 204
        assert answer.headers["tus-resumable"] == "1.0.0"
        assert int(answer.headers["upload-offset"]) == sent.offset()
    answer = sent.client.head(sent.path, headers=TUS)
    assert int(answer.headers["upload-length"]) == sent.offset() == len(sent.data)
    assert answer.headers["cache-control"] == "no-store"
    assert sent.send(b"", len(sent.data)).status_code == 204
    assert code(sent.send(b"x", len(sent.data)), 413) == "upload-too-large"
    assert code(sent.send(b"x", 0), 409) == "offset-mismatch"


def test_a_wrong_offset_tells_the_right_one(sent: Sent) -> None:
    sent.send(sent.data[:100], 0)
    for wrong in (0, 99, 101, 10**12):
        answer = sent.send(b"x", wrong)
        assert code(answer, 413 if wrong == 10**12 else 409) in (
            "offset-mismatch",
            "upload-too-large",
        )
    assert sent.offset() == 100


def test_another_digest_begins_anew(sent: Sent) -> None:
    assert code(sent.send(bytes(len(sent.data)), 0), 422) == "digest-mismatch"
    assert sent.offset() == 0
    assert sent.send(sent.data, 0).status_code == 204


@pytest.mark.parametrize("length", [True, False], ids=["stated", "chunked"])
def test_an_upload_ends_at_its_size(sent: Sent, length: bool) -> None:
    def endless() -> Iterator[bytes]:
        yield sent.data
        for _ in range(100_000):
            yield b"x" * 65536

    content: Any = sent.data + b"x" if length else endless()
    headers = PIECE | {"Upload-Offset": "0"}
    answer = sent.client.patch(sent.path, content=content, headers=headers)
    assert code(answer, 413) == "upload-too-large"
    assert sent.offset() <= len(sent.data)
    at = sent.offset()
    assert sent.send(sent.data[at:], at).status_code == 204


@pytest.mark.parametrize(
    ("change", "status", "expected"),
    [
        ({"Tus-Resumable": "0.2.2"}, 412, "unsupported-tus-version"),
        ({"Tus-Resumable": ""}, 412, "unsupported-tus-version"),
        ({"Content-Type": "application/octet-stream"}, 415, "unsupported-media-type"),
        ({"Upload-Offset": "-1"}, 422, "invalid-request"),
        ({"Upload-Offset": "1e3"}, 422, "invalid-request"),
        ({"Upload-Offset": "9" * 400}, 422, "invalid-request"),
        ({"Upload-Offset": ""}, 422, "invalid-request"),
    ],
)
def test_headers(sent: Sent, change: dict[str, str], status: int, expected: str) -> None:
    headers = PIECE | {"Upload-Offset": "0"} | change
    answer = sent.client.patch(sent.path, content=b"x", headers=headers)
    assert code(answer, status) == expected
    if status == 412:
        assert answer.headers["tus-version"] == "1.0.0"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nothing",
        "../x",
        "..%2f..%2fverix.db",
        "%2fetc%2fpasswd",
        "%00",
        "records.parquet%00",
        "é",
    ],
)
def test_names_that_are_not_there(sent: Sent, name: str) -> None:
    for url in (f"/v1/jobs/{sent.job}/files/{name}", f"/v1/jobs/{sent.job}/delivery/{name}"):
        answer = sent.client.get(url)
        assert answer.status_code in (404, 405, 409)
    answer = sent.client.patch(
        f"/v1/jobs/{sent.job}/files/{name}", headers=PIECE | {"Upload-Offset": "0"}
    )
    assert code(answer, answer.status_code) in ("not-found", "method-not-allowed")


def test_what_is_spoken(sent: Sent) -> None:
    answer = sent.client.options(sent.path)
    assert answer.status_code == 204
    assert answer.headers["tus-version"] == "1.0.0"
    assert int(answer.headers["tus-max-size"]) == 20 * 10**9


def raw_patch(port: int, path: str, token: str, *, at: int, length: int) -> socket.socket:
    """A connection that has begun a PATCH of so many bytes."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(
        f"PATCH {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n"
        f"Tus-Resumable: 1.0.0\r\nUpload-Offset: {at}\r\nContent-Length: {length}\r\n"
        "Content-Type: application/offset+octet-stream\r\n\r\n".encode()
    )
    return connection


def raw(service: Service, sent: Sent) -> socket.socket:
    """A connection that has begun to send all of a file."""
    token = sent.client.headers["authorization"]
    return raw_patch(service.port, sent.path, token, at=0, length=len(sent.data))


def await_begin(service: Service, sent: Sent) -> None:
    """Wait until a PATCH writes, or may."""
    until = time.monotonic() + SECONDS
    while not list((service.folder / "staging" / sent.job).glob("*.writer")):
        assert time.monotonic() < until
        time.sleep(0.01)


def received(connection: socket.socket) -> str:
    """An answer with a body in JSON."""
    answer = b""
    while not answer.endswith(b"}"):
        piece = connection.recv(1 << 16)
        assert piece
        answer += piece
    return answer.decode()


def test_what_came_of_a_client_that_left_is_kept(service: Service, sent: Sent) -> None:
    with raw(service, sent) as connection:
        connection.sendall(sent.data[: 3 << 19])
        until = time.monotonic() + SECONDS
        while sent.offset() == 0:
            assert time.monotonic() < until
            time.sleep(0.01)
    at = sent.offset()
    while sent.send(sent.data[at:], at).status_code != 204:
        assert time.monotonic() < until
        at = sent.offset()
    assert at >= 1 << 20
    assert sent.offset() == len(sent.data)


def test_a_dead_client_is_taken_over_at_once(service: Service, sent: Sent) -> None:
    """It still holds its connection, and says nothing more until another has gone on."""
    with raw(service, sent) as dead:
        dead.sendall(sent.data[:10])
        await_begin(service, sent)
        assert sent.send(sent.data[:500], 0).status_code == 204
        dead.sendall(sent.data[10:])
        answer = received(dead)
        assert answer.startswith("HTTP/1.1 409")
        assert "upload-taken-over" in answer
    assert sent.offset() == 500
    assert sent.send(sent.data[500:], 500).status_code == 204


def test_a_deleted_job_takes_no_more(service: Service, sent: Sent) -> None:
    with raw(service, sent) as connection:
        connection.sendall(sent.data[:10])
        await_begin(service, sent)
        assert sent.client.delete(f"/v1/jobs/{sent.job}").status_code == 204
        connection.sendall(sent.data[10:])
        assert "HTTP/1.1 404" in received(connection)
    assert not (service.folder / "staging" / sent.job).exists()
    assert not (service.folder / "blobs" / "jobs" / sent.job).exists()
