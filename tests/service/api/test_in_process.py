"""What no machine does at will: a full disk, a database that is away, a client that is slow."""

import asyncio
import errno
import json
import os
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from service.running import PIECE, TUS, order
from verix_anon.service import jobs
from verix_anon.service.api import app as app_module
from verix_anon.service.api.app import make_app
from verix_anon.service.api.bodies import PAGE
from verix_anon.service.api.context import (
    COST_BYTES,
    LARGE_BYTES,
    LARGE_WEIGHT,
    MOST_AT_ONCE,
    Context,
)
from verix_anon.service.api.job_routes import LARGE_BODIES
from verix_anon.service.api.problems import Problem
from verix_anon.service.blobs import StorageError
from verix_anon.service.operator import SHOWN
from verix_anon.service.server import make_context
from verix_anon.service.settings import ServiceLimits, ServiceSettings
from verix_anon.service.tenants import TokenRole, create_token, revoke, tokens
from verix_anon.service.uploads import UploadWriter

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


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_below_the_reserve_only_room_is_made(
    context: Context, client: TestClient, submission: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, asked = {"Idempotency-Key": "one"}, order(submission)
    job = client.post("/v1/jobs", json=asked, headers=kept).json()["id"]
    data, path = (submission / NAME).read_bytes(), f"/v1/jobs/{job}/files/{NAME}"
    total, size = 100 << 30, sum(file["size"] for file in asked["files"])
    with monkeypatch.context() as patch:
        left = (1 << 30) + size
        patch.setattr("shutil.disk_usage", lambda _: Usage(total, total - left, left))
        assert context.settings.room() == size
        # There is room for what was announced, and for nothing besides.
        answer = client.post("/v1/jobs", json=asked)
        assert (answer.status_code, answer.json()["code"]) == (507, "storage-full")
        assert client.post("/v1/jobs", json=asked, headers=kept).json()["id"] == job
        answer = client.patch(path, content=data, headers=PIECE | {"Upload-Offset": "0"})
        assert answer.status_code == 204
    data = (submission / "records.parquet").read_bytes()
    path = f"/v1/jobs/{job}/files/records.parquet"
    with monkeypatch.context() as patch:
        left = (1 << 30) + len(data) - 1
        patch.setattr("shutil.disk_usage", lambda _: Usage(total, total - left, left))
        answer = client.patch(path, content=data, headers=PIECE | {"Upload-Offset": "0"})
        assert (answer.status_code, answer.json()["code"]) == (507, "storage-full")
        assert client.delete(f"/v1/jobs/{job}").status_code == 204
    assert client.post("/v1/jobs", json=asked, headers=kept).json()["id"] != job


def test_the_reserve_is_a_share_of_a_small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(1000, 0, 1000))
    assert ServiceSettings(folder=Path("/nowhere")).room() == 950
    assert ServiceSettings(folder=Path("/nowhere"), reserve_bytes=2000).room() == -1000


def test_the_bytes_of_a_tenant_are_counted(tmp_path: Path, submission: Path) -> None:
    asked = order(submission)
    size = sum(file["size"] for file in asked["files"])
    settings = ServiceSettings(
        folder=tmp_path / "folder", limits=ServiceLimits(tenant_bytes=2 * size)
    )
    context = make_context(settings)
    clients = []
    for tenant in ("acme", "beta"):
        token = create_token(context.database, tenant, TokenRole.TENANT)
        clients.append(TestClient(make_app(context), headers={"Authorization": f"Bearer {token}"}))
    first, _ = [clients[0].post("/v1/jobs", json=asked).json()["id"] for _ in range(2)]
    answer = clients[0].post("/v1/jobs", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (429, "too-many-bytes")
    assert int(answer.headers["retry-after"]) >= 1
    assert clients[1].post("/v1/jobs", json=asked).status_code == 201
    assert clients[0].delete(f"/v1/jobs/{first}").status_code == 204
    assert clients[0].post("/v1/jobs", json=asked).status_code == 201
    context.database.close()


@pytest.mark.parametrize(
    "error", [StorageError(errno.EIO, "away"), OSError(errno.EMFILE, "too many open files")]
)
def test_a_store_that_is_away_is_told_and_tried_again(
    client: TestClient, submission: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    """Whatever the client of a cloud raises: a client of ours repeats a 503, and not a 500."""
    job = client.post("/v1/jobs", json=order(submission)).json()["id"]
    data, path = (submission / NAME).read_bytes(), f"/v1/jobs/{job}/files/{NAME}"

    def gone(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("verix_anon.service.blobs.Blobs.put", gone)
        patch.setattr("verix_anon.service.blobs.Blobs.delete", gone)
        sent = client.patch(path, content=data, headers=PIECE | {"Upload-Offset": "0"})
        for answer in (sent, client.delete(f"/v1/jobs/{job}")):
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert int(answer.headers["retry-after"]) >= 1
    assert client.head(path, headers=TUS).status_code == 200
    assert client.delete(f"/v1/jobs/{job}").status_code == 204
    assert client.get(f"/v1/jobs/{job}").status_code == 404


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


def test_a_large_body_counts_as_many_requests(context: Context, client: TestClient) -> None:
    limit = context.settings.limits.requests_per_minute
    body = b" " * (limit // 2 * COST_BYTES)
    assert client.post("/v1/jobs", content=body).status_code == 422
    assert client.post("/v1/jobs", content=b" " * (100 * COST_BYTES)).status_code == 422
    assert client.post("/v1/jobs", content=b" " * (limit // 2 * COST_BYTES)).status_code == 429


def test_few_large_bodies_of_a_token_come_at_once(context: Context) -> None:
    for _ in range(MOST_AT_ONCE // LARGE_WEIGHT):
        context.rates.enter("one", LARGE_WEIGHT)
    with pytest.raises(Problem):
        context.rates.enter("one")
    context.rates.leave("one", LARGE_WEIGHT)
    context.rates.enter("one")


def test_files_of_a_job_come_in_pages(client: TestClient, submission: Path) -> None:
    asked = order(submission)
    named = [file for file in asked["files"] if file["name"] != "records.parquet"]
    parts = [f"records.parquet/part-{i:05}.parquet" for i in range(2 * PAGE + 1)]
    asked["files"] = named + [{"name": name, "size": 1, "sha256": "0" * 64} for name in parts]
    made = client.post("/v1/jobs", json=asked).json()
    found, after = list(made["files"]), made["next_file"]
    assert (len(found), made["next_delivered"]) == (PAGE, None)
    assert client.get(f"/v1/jobs/{made['id']}").json()["files"] == found
    while after is not None:
        page = client.get(f"/v1/jobs/{made['id']}/files", params={"after": after}).json()
        assert 0 < len(page["files"]) <= PAGE
        found, after = found + page["files"], page["next"]
    assert [file["name"] for file in found] == sorted(file["name"] for file in asked["files"])
    assert {file["offset"] for file in found} == {0}
    empty: dict[str, Any] = {"files": [], "next": None}
    assert client.get(f"/v1/jobs/{made['id']}/delivery").json() == empty
    assert client.get(f"/v1/jobs/{made['id']}/files", params={"after": "\0"}).status_code == 422


def test_answers_are_not_kept_by_caches(client: TestClient) -> None:
    for path in ("/v1", "/v1/jobs", "/healthz", "/openapi.json"):
        found = client.get(path).headers
        assert (found["cache-control"], found["x-content-type-options"]) == ("no-store", "nosniff")


def test_what_can_be_read_in_two_ways_is_refused(client: TestClient, submission: Path) -> None:
    job = client.post("/v1/jobs", json=order(submission)).json()["id"]
    path = f"/v1/jobs/{job}/files/{NAME}"
    for offset in ("0_0", "+0", " 0 0", "-0"):
        answer = client.patch(path, content=b"x", headers=PIECE | {"Upload-Offset": offset})
        assert answer.status_code == 422
    both = {"Content-Length": "5", "Transfer-Encoding": "chunked"}
    answer = client.post("/v1/jobs", content=b"{}", headers=both)
    assert (answer.status_code, answer.headers["connection"]) == (422, "close")
    assert client.head(f"{path}%0a", headers=TUS).status_code == 404
    assert client.head(path, headers=TUS).status_code == 200


def test_a_token_that_is_revoked_meanwhile_completes_nothing(
    context: Context, client: TestClient, submission: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = client.post("/v1/jobs", json=order(submission)).json()["id"]
    append = UploadWriter.append

    def revoked(writer: UploadWriter, data: bytes) -> int:
        (token,) = tokens(context.database)
        revoke(context.database, token.id)
        return append(writer, data)

    monkeypatch.setattr(UploadWriter, "append", revoked)
    data = (submission / NAME).read_bytes()
    headers = PIECE | {"Upload-Offset": "0"}
    assert (
        client.patch(f"/v1/jobs/{job}/files/{NAME}", content=data, headers=headers).status_code
        == 401
    )
    found = jobs.find(context.database, "acme", job)
    assert found is not None
    assert not any(file.is_complete for file in found.files)


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


def test_few_large_bodies_come_at_once_whoever_sends_them(context: Context) -> None:
    """What waits for its turn is not read: memory is bounded for the process, not per token."""
    tokens = [create_token(context.database, f"t{i}", TokenRole.TENANT) for i in range(9)]
    app, reading = make_app(context, idle_seconds=SILENCE), set[str]()

    async def send(message: Any) -> None:
        return None

    async def hold(token: str) -> None:
        async def receive() -> Any:
            reading.add(token)
            await asyncio.sleep(SILENCE)

        size = str(LARGE_BYTES + 1).encode()
        headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-length", size)]
        scope = {"type": "http", "method": "POST", "path": "/v1/jobs", "query_string": b""}
        await app(scope | {"asgi": {"version": "3.0"}, "headers": headers}, receive, send)

    async def all_at_once() -> None:
        tasks = [asyncio.create_task(hold(token)) for token in tokens]
        async with asyncio.timeout(SILENCE):
            while LARGE_BODIES.statistics().tasks_waiting < 5:
                await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(all_at_once())
    assert len(reading) == LARGE_BODIES.total_tokens == 4


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
    assert first.count("<code>") == SHOWN
    link = re.search(r'href="(\?after=[^"]+)"', first)
    assert link is not None
    second = operator.get(f"/operator{link[1]}").text
    assert second.count("<code>") == 1
    assert "Older jobs" not in second


def create_job(context: Context) -> None:
    new = jobs.NewJob(tenant="acme", rows=1, columns=1, min_leaf=2, files=())
    jobs.create(context.database, new, engine="verix-local", most=10_000, retention_seconds=60.0)
