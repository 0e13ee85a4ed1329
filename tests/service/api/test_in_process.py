"""What no machine does at will: a full disk, a database that is away, a client that is slow."""

import asyncio
import errno
import json
import os
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from service.running import PIECE, TUS, order
from verix_anon.service import jobs
from verix_anon.service.api import app as app_module
from verix_anon.service.api.app import make_app
from verix_anon.service.api.context import MOST_AT_ONCE, Context
from verix_anon.service.api.problems import Problem
from verix_anon.service.operator import SHOWN
from verix_anon.service.server import make_context
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.tenants import TokenRole, create_token

NAME = "contract.json"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    made = make_context(ServiceSettings(folder=tmp_path / "folder"))
    yield made
    made.database.close()


@pytest.fixture
def client(context: Context) -> TestClient:
    token = create_token(context.database, "acme", TokenRole.TENANT)
    headers = {"Authorization": f"Bearer {token}"}
    return TestClient(make_app(context, idle_seconds=0.2), headers=headers)


class Disk:
    """A disk with so many bytes left, which takes a part of what does not fit."""

    def __init__(self, left: int) -> None:
        self.left, self.write = left, os.write

    def __call__(self, file: int, data: Any) -> int:
        if not self.left:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self.write(file, data[: self.left])
        self.left -= written
        return written


def test_a_full_disk_keeps_what_it_took(
    client: TestClient, submission: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = client.post("/v1/jobs", json=order(submission)).json()["id"]
    data, path = (submission / NAME).read_bytes(), f"/v1/jobs/{job}/files/{NAME}"
    with monkeypatch.context() as patch:
        patch.setattr("verix_anon.service.uploads.os.write", Disk(100))
        answer = client.patch(path, content=data, headers=PIECE | {"Upload-Offset": "0"})
    assert answer.status_code == 507
    assert answer.json()["code"] == "storage-full"
    at = client.head(path, headers=TUS).headers["upload-offset"]
    assert at == "100"
    answer = client.patch(path, content=data[100:], headers=PIECE | {"Upload-Offset": at})
    assert answer.status_code == 204


def test_blobs_without_room_are_told_and_tried_again(
    client: TestClient, submission: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upload is whole on the staging disk; HEAD finishes what PATCH could not."""
    job = client.post("/v1/jobs", json=order(submission)).json()["id"]
    data, path = (submission / NAME).read_bytes(), f"/v1/jobs/{job}/files/{NAME}"

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("verix_anon.service.blobs.Blobs.put", full)
        answer = client.patch(path, content=data, headers=PIECE | {"Upload-Offset": "0"})
        assert answer.status_code == 507
        assert client.head(path, headers=TUS).status_code == 507
    files = client.get(f"/v1/jobs/{job}").json()["files"]
    assert client.head(path, headers=TUS).headers["upload-offset"] == str(len(data))
    assert next(file for file in files if file["name"] == NAME)["offset"] == len(data)


def away(*_: object, **__: object) -> None:
    raise OperationalError("SELECT 'm4rk3r'", {}, Exception("m4rk3r"))


def test_a_database_that_is_away(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs, "page", away)
    answer = client.get("/v1/jobs")
    assert answer.status_code == 503
    assert answer.json()["code"] == "unavailable"
    assert int(answer.headers["retry-after"]) >= 1
    assert "m4rk3r" not in answer.text + capsys.readouterr().out


def test_a_body_that_would_take_long_to_parse_is_not_parsed(client: TestClient) -> None:
    answer = client.post("/v1/jobs", content=b'{"x":[' + b"[]," * 200_000 + b"0]}")
    assert (answer.status_code, answer.json()["code"]) == (413, "request-too-large")


def test_requests_of_a_token_are_counted_while_they_last(context: Context) -> None:
    for _ in range(MOST_AT_ONCE):
        context.rates.enter("one")
    with pytest.raises(Problem):
        context.rates.enter("one")
    context.rates.enter("two")
    context.rates.leave("one")
    context.rates.enter("one")


def test_a_request_that_is_over_counts_no_more(context: Context, client: TestClient) -> None:
    for _ in range(MOST_AT_ONCE + 1):
        assert client.get("/v1").status_code == 200
        assert client.get("/v1/jobs/none").status_code == 404


def test_a_bug_of_ours_tells_nothing(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def bug(*_: object, **__: object) -> None:
        raise KeyError("m4rk3r")

    monkeypatch.setattr(jobs, "page", bug)
    answer = client.get("/v1/jobs")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal"
    written = capsys.readouterr()
    assert "m4rk3r" not in answer.text + written.out + written.err
    assert "KeyError" in written.out + written.err


async def silent(context: Context, token: str) -> list[Any]:
    """What a client is told that begins a request and then says nothing more."""
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(SILENCE)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "method": "POST",
        "path": "/v1/jobs",
        "query_string": b"",
        "headers": [
            (b"authorization", f"Bearer {token}".encode()),
            (b"content-length", b"10"),
        ],
    }
    await make_app(context, idle_seconds=0.05)(scope, receive, send)
    return sent


SILENCE = 60.0


def test_whoever_says_nothing_is_not_waited_for(context: Context) -> None:
    token = create_token(context.database, "acme", TokenRole.TENANT)
    sent = asyncio.run(silent(context, token))
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert b"request-timeout" in sent[1]["body"]
    assert app_module.IDLE_SECONDS >= 30


@pytest.mark.parametrize("place", ["body", "file"])
def test_a_body_of_nothing_but_unknown_fields(
    client: TestClient, submission: Path, place: str
) -> None:
    """They are not reported one by one, which would take a hundred times their size."""
    fields = {f"{i:x}": 0 for i in range(200_000)}
    asked = order(submission)
    asked = asked | fields if place == "body" else asked | {"files": [asked["files"][0] | fields]}
    tracemalloc.start()
    try:
        answer = client.post("/v1/jobs", json=asked)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.json()["code"] == "invalid-request"
    assert peak < 40 * len(json.dumps(asked))


def test_the_operators_pages(context: Context, client: TestClient, submission: Path) -> None:
    for _ in range(SHOWN + 1):
        create_job(context)
    token = create_token(context.database, None, TokenRole.OPERATOR)
    operator = TestClient(client.app, headers={"Authorization": f"Bearer {token}"})
    first = operator.get("/operator").text
    assert first.count("<tr>") == SHOWN + 1
    link = re.search(r'href="(\?after=[^"]+)"', first)
    assert link is not None
    second = operator.get(f"/operator{link[1]}").text
    assert second.count("<tr>") == 2
    assert "Older jobs" not in second


def create_job(context: Context) -> None:
    new = jobs.NewJob(tenant="acme", rows=1, columns=1, min_leaf=2, engine="verix-local", files=())
    jobs.create(context.database, new, most=10_000, retention_seconds=60.0)
