"""Nothing that was sent is repeated, in no answer and in no log; and what the logs do hold."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from service.running import PIECE, SECONDS, TUS, Service, create, order, running, send

MARK = "m4rk3r"
HEX_MARK = "feedc0ffee" * 6 + "feed"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of its own, whose logs nobody else fills."""
    with running(tmp_path_factory.mktemp("silence") / "folder") as service:
        yield service


def hostile(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Orders with a mark wherever something can be written."""
    contract, files = asked["contract"], asked["files"]
    column = contract["columns"][0]
    yield asked | {MARK: 1}
    yield asked | {"rows": MARK}
    yield asked | {"contract": MARK}
    yield asked | {"contract": {MARK: MARK}}
    yield asked | {"contract": contract | {"rule": MARK}}
    yield asked | {"contract": contract | {"submission_id": MARK}}
    yield asked | {"contract": contract | {"columns": [column | {"name": MARK}]}}
    yield asked | {"contract": contract | {"columns": [column | {"kind": MARK}]}}
    yield asked | {"contract": contract | {MARK: {MARK: [MARK]}}}
    for change in ({"name": f"../{MARK}"}, {"sha256": MARK}, {"size": MARK}, {MARK: MARK}):
        yield asked | {"files": [files[0] | change, *files[1:]]}
    yield asked | {"files": {MARK: MARK}}


def answers(service: Service, submission: Path) -> Iterator[httpx2.Response]:
    """What is answered to requests that carry the mark everywhere."""
    with service.client() as client:
        asked = order(submission)
        for body in hostile(asked):
            yield client.post("/v1/jobs", json=body, headers={"Idempotency-Key": f"{MARK}\x7f"})
            yield client.post("/v1/jobs", json=body)
        yield client.post("/v1/jobs", content=f'{{"{MARK}": {MARK}')
        job = create(client, asked, MARK)["id"]
        files = f"/v1/jobs/{job}/files"
        for path in (
            f"/{MARK}",
            f"/v1/jobs?limit={MARK}",
            f"/v1/jobs?after={MARK}",
            f"/v1/jobs/{MARK}",
            f"/v1/jobs/{HEX_MARK[:32]}",
            f"{files}/{MARK}",
            f"/v1/jobs/{job}/delivery/{MARK}",
        ):
            for method in ("GET", "HEAD", "PATCH", "DELETE", MARK.upper()):
                headers = PIECE | {"Upload-Offset": "0", "X-Mark": MARK, "Range": MARK}
                yield client.request(method, path, headers=headers)
        for change in ({"Upload-Offset": MARK}, {"Tus-Resumable": MARK}, {"Content-Type": MARK}):
            headers = PIECE | {"Upload-Offset": "0"} | change
            yield client.patch(f"{files}/contract.json", content=MARK, headers=headers)
        data = MARK.encode() * 1_000
        size = (submission / "contract.json").stat().st_size
        yield send(client, job, "contract.json", data[:size])
        yield send(client, job, "contract.json", data[:size] + data)
    for authorization in (f"Bearer vrx_{MARK}", f"Basic {MARK}", MARK):
        for path in ("/v1", "/operator", "/metrics"):
            headers = {"Authorization": authorization}
            yield httpx2.get(service.url + path, headers=headers, timeout=SECONDS)


def test_nothing_that_was_sent_is_repeated(alone: Service, submission: Path) -> None:
    n_answers = 0
    for answer in answers(alone, submission):
        n_answers += 1
        assert answer.status_code < 500, answer.request
        told = f"{answer.text}{answer.headers}".lower()
        assert MARK not in told, answer.request
        assert HEX_MARK[:32] not in told
    with socket.create_connection(("127.0.0.1", alone.port)) as raw:
        raw.sendall(f"{MARK} {MARK} {MARK}\r\n{MARK}\r\n\r\n".encode())
        assert MARK.encode() not in raw.recv(1 << 16)
    assert n_answers > 70
    logged(alone, "GET", "/metrics", 401, None, None)
    written = alone.log.read_text().lower()
    assert MARK not in written
    assert HEX_MARK[:32] not in written
    assert "vrx_" not in written


def logged(service: Service, *expected: object) -> None:
    """Wait for the line of a request, which is written when its answer has been sent."""
    until = time.monotonic() + SECONDS
    names = ("method", "route", "status", "tenant", "job")
    while time.monotonic() < until:
        # The last line may be half there.
        lines = map(json.loads, service.log.read_text().splitlines(keepends=True)[:-1])
        if any(tuple(line.get(name) for name in names) == expected for line in lines):
            return
        with service.client(service.token()) as client:
            client.get("/v1")
    raise AssertionError("it was not logged")


def test_logs_are_lines_of_json_without_data(alone: Service, submission: Path) -> None:
    with alone.client() as client:
        job = create(client, order(submission))["id"]
        client.head(f"/v1/jobs/{job}/files/contract.json", headers=TUS)
    logged(alone, "HEAD", "/v1/jobs/{job}/files/{name:path}", 200, "acme", job)
    lines = [json.loads(line) for line in alone.log.read_text().splitlines()]
    accesses = [line for line in lines if line["event"] == "access"]
    keys = {"method", "route", "status", "seconds", "tenant", "job", "event", "level", "timestamp"}
    assert all(line.keys() == keys for line in accesses)
    assert not any("contract.json" in json.dumps(line) for line in lines)


def test_a_line_of_the_metrics(alone: Service) -> None:
    with alone.client() as client:
        assert client.get("/v1").status_code == 200
    logged(alone, "GET", "/v1", 200, "acme", None)
    headers = {"Authorization": f"Bearer {alone.token(None)}"}
    text = httpx2.get(f"{alone.url}/metrics", headers=headers, timeout=SECONDS).text
    assert 'verix_requests_total{method="GET",route="/v1",status="200"}' in text
    assert 'verix_jobs{state="uploading"}' in text
    assert "verix_request_seconds_bucket" in text
    assert MARK not in text.lower()
