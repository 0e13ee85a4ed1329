"""Jobs over HTTP: what is taken, what is refused with which code, and who sees what."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx2
import pytest

from service.running import SECONDS, Service, create, order, running
from service.test_uploads import TRICKS

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def asked(submission: Path) -> dict[str, Any]:
    return deepcopy(order(submission))


def code(answer: httpx2.Response, status: int) -> str:
    """The code of a problem that is told as all problems are."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body.keys() == {"type", "title", "status", "detail", "code"}
    assert body["status"] == status
    assert body["type"] == f"urn:verix:problem:{body['code']}"
    return str(body["code"])


def test_a_new_job_waits_for_its_files(client: httpx2.Client, asked: dict[str, Any]) -> None:
    job = create(client, asked)
    assert job["state"] == "uploading"
    assert job["rows"] == 300
    assert [file["offset"] for file in job["files"]] == [0, 0, 0]
    assert sorted(file["name"] for file in job["files"]) == sorted(
        file["name"] for file in asked["files"]
    )
    assert job["created"] < job["expires"]
    shown = client.get(f"/v1/jobs/{job['id']}")
    assert shown.json() == job
    assert int(shown.headers["retry-after"]) >= 1


def test_other_tenants_see_nothing(service: Service, asked: dict[str, Any]) -> None:
    with service.client(service.token("one")) as one, service.client(service.token("two")) as two:
        job = create(one, asked)["id"]
        for path in (
            f"/v1/jobs/{job}",
            f"/v1/jobs/{job}/delivery/delivery.json",
            f"/v1/jobs/{job}/files/contract.json",
        ):
            for method in ("GET", "HEAD", "PATCH", "DELETE", "OPTIONS"):
                headers = {"Tus-Resumable": "1.0.0", "Upload-Offset": "0"}
                theirs = two.request(method, path, headers=headers)
                nobodys = two.request(method, path.replace(job, "0" * 32), headers=headers)
                assert theirs.status_code == nobodys.status_code
                assert theirs.status_code in (404, 405)
                assert theirs.content == nobodys.content
        assert two.get("/v1/jobs").json() == {"jobs": [], "next": None}
        assert one.get(f"/v1/jobs/{job}").status_code == 200


def test_pages_of_jobs(service: Service, asked: dict[str, Any]) -> None:
    with service.client(service.token("pages")) as client:
        made = [create(client, asked)["id"] for _ in range(5)]
        seen: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = client.get("/v1/jobs", params={"limit": 2, **after}).json()
            seen += [job["id"] for job in page["jobs"]]
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        assert seen == made[::-1]


def test_a_deleted_job_is_gone(client: httpx2.Client, asked: dict[str, Any]) -> None:
    job = create(client, asked)["id"]
    assert client.delete(f"/v1/jobs/{job}").status_code == 204
    assert code(client.get(f"/v1/jobs/{job}"), 404) == "not-found"
    assert code(client.delete(f"/v1/jobs/{job}"), 404) == "not-found"


def without(name: str) -> Change:
    return lambda asked: asked.pop(name)


def with_file(**changed: Any) -> Change:
    return lambda asked: asked["files"][0].update(changed)


INVALID: dict[str, Change] = {
    "no contract": without("contract"),
    "no rows": without("rows"),
    "no files": without("files"),
    "negative rows": lambda asked: asked.update(rows=-1),
    "rows as text": lambda asked: asked.update(rows="300"),
    "rows beyond int64": lambda asked: asked.update(rows=2**63),
    "unknown field": lambda asked: asked.update(marker="x"),
    "a file twice": lambda asked: asked["files"].append(asked["files"][0]),
    "a file less": lambda asked: asked["files"].pop(),
    "file and folder": lambda asked: asked["files"].append(
        asked["files"][0] | {"name": "records.parquet/a.parquet"}
    ),
    "empty file": with_file(size=0),
    "digest in capitals": with_file(sha256="A" * 64),
}


@pytest.mark.parametrize("change", INVALID.values(), ids=INVALID)
def test_what_is_no_order(client: httpx2.Client, asked: dict[str, Any], change: Change) -> None:
    change(asked)
    assert code(client.post("/v1/jobs", json=asked), 422) == "invalid-request"


@pytest.mark.parametrize("name", TRICKS, ids=ascii)
def test_tricks_in_names(client: httpx2.Client, asked: dict[str, Any], name: str) -> None:
    asked["files"][2]["name"] = name
    answer = client.post("/v1/jobs", json=asked)
    assert code(answer, 422) == "invalid-request"
    assert len(name) < 5 or name not in answer.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"rows":' + b"9" * 10_000 + b"}",
        b'{"rows":1,"rows":1}',
        b'{"rows":NaN}',
    ],
    ids=lambda body: body[:10],
)
def test_bodies_that_are_no_json(client: httpx2.Client, body: bytes) -> None:
    assert code(client.post("/v1/jobs", content=body), 422) == "invalid-request"


WRONG_CONTRACTS: dict[str, tuple[Change, str]] = {
    "empty": (lambda c: c.clear(), "invalid-contract"),
    "k of 1": (lambda c: c.update(k=1), "invalid-contract"),
    "another k": (lambda c: c.update(k=3, min_leaf=6), "invalid-contract"),
    "lone surrogate": (lambda c: c.update(submission_id="\ud800"), "invalid-contract"),
    "deep": (lambda c: c.update(columns=deep(100)), "invalid-contract"),
    "columns are a number": (lambda c: c.update(columns=7), "invalid-contract"),
    "unknown rule": (lambda c: c.update(rule="marker"), "unknown-rule"),
}


def deep(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(("change", "expected"), WRONG_CONTRACTS.values(), ids=WRONG_CONTRACTS)
def test_what_is_no_contract(
    client: httpx2.Client, asked: dict[str, Any], change: Change, expected: str
) -> None:
    change(asked["contract"])
    answer = client.post("/v1/jobs", content=json.dumps(asked))
    assert code(answer, 422) == expected


def test_keys_give_the_same_job(client: httpx2.Client, asked: dict[str, Any]) -> None:
    first, second = create(client, asked, "key 1"), create(client, asked, "key 1")
    assert first["id"] == second["id"]
    assert create(client, asked, "key 2")["id"] != first["id"]
    other = next(file for file in asked["files"] if file["name"] == "submission.json")
    other["sha256"] = "0" * 64
    answer = client.post("/v1/jobs", json=asked, headers={"Idempotency-Key": "key 1"})
    assert code(answer, 422) == "idempotency-key-reused"


def test_keys_are_a_tenants_own(service: Service, asked: dict[str, Any]) -> None:
    with service.client(service.token("k1")) as one, service.client(service.token("k2")) as two:
        assert create(one, asked, "key")["id"] != create(two, asked, "key")["id"]


@pytest.mark.parametrize("key", ["", "x" * 201, "é".encode(), b"a\tb"], ids=ascii)
def test_what_is_no_key(client: httpx2.Client, asked: dict[str, Any], key: str | bytes) -> None:
    sent = key if isinstance(key, bytes) else key.encode()
    answer = client.post("/v1/jobs", json=asked, headers=[(b"Idempotency-Key", sent)])
    assert code(answer, 422) == "invalid-request"


LIMITS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "rows": (("--max-rows", "299"), 413, "too-many-rows"),
    "columns": (("--max-columns", "3"), 413, "too-many-columns"),
    "upload": (("--max-upload", "1"), 413, "upload-too-large"),
}


@pytest.mark.parametrize(("options", "status", "expected"), LIMITS.values(), ids=LIMITS)
def test_limits(
    tmp_path: Path,
    asked: dict[str, Any],
    options: tuple[str, ...],
    status: int,
    expected: str,
) -> None:
    if expected == "upload-too-large":
        next(f for f in asked["files"] if f["name"] == "records.parquet")["size"] = 10**6
    with running(tmp_path / "folder", *options) as service, service.client() as client:
        assert code(client.post("/v1/jobs", json=asked), status) == expected


def test_open_jobs_and_rates_are_limited(tmp_path: Path, asked: dict[str, Any]) -> None:
    options = ("--max-jobs", "2", "--rate", "20")
    with running(tmp_path / "folder", *options) as service, service.client() as client:
        jobs = [create(client, asked)["id"] for _ in range(2)]
        answer = client.post("/v1/jobs", json=asked)
        assert code(answer, 429) == "too-many-jobs"
        assert int(answer.headers["retry-after"]) >= 1
        client.delete(f"/v1/jobs/{jobs[0]}")
        create(client, asked)
        for _ in range(20):
            answer = client.get("/v1")
            if answer.status_code != 200:
                break
        assert code(answer, 429) == "rate-limited"
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        with service.client(service.token("other")) as other:
            assert other.get("/v1").status_code == 200


def test_a_request_is_cut_whether_or_not_it_says_its_length(service: Service) -> None:
    piece = b" " * (1 << 20)

    def endless() -> Any:
        for _ in range(10_000):
            yield piece

    with service.client() as client:
        for content in (piece * 17, endless()):
            answer = client.post("/v1/jobs", content=content, timeout=SECONDS)
            assert code(answer, 413) == "request-too-large"


def test_what_the_service_can_do(client: httpx2.Client) -> None:
    about = client.get("/v1").json()
    assert about["format"] == "verix/service/1"
    assert about["rules"] == ["variance-reduction", "importance-spread"]
    assert about["engines"] == ["verix-local"]
    assert about["limits"]["requests_per_minute"] == 100_000


def test_methods_are_named(client: httpx2.Client) -> None:
    answer = client.put(f"/v1/jobs/{'0' * 32}/files/contract.json")
    assert code(answer, 405) == "method-not-allowed"
    assert answer.headers["allow"] == "HEAD, OPTIONS, PATCH"
    assert client.post("/v1/jobs/").status_code in (404, 405)
