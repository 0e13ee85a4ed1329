"""Who is let in: tokens that are wrong, expired, revoked, or for something else."""

import base64
import time
from pathlib import Path

import httpx2
import pytest

from service.api.test_jobs import code
from service.running import SECONDS, Service
from verix_anon.service.database import Database
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.tenants import find, revoke

PATHS = ("/v1", "/v1/jobs", f"/v1/jobs/{'0' * 32}", "/operator", "/metrics")


def get(service: Service, path: str, authorization: str | bytes | None) -> httpx2.Response:
    sent = authorization.encode() if isinstance(authorization, str) else authorization
    headers = [] if sent is None else [(b"Authorization", sent)]
    return httpx2.get(service.url + path, headers=headers, timeout=SECONDS)


@pytest.mark.parametrize("path", PATHS)
def test_nobody_is_let_in_without_a_token(service: Service, path: str) -> None:
    token = service.token()
    wrong: list[str | bytes | None] = [
        None,
        "",
        "Bearer",
        "Bearer vrx_" + "A" * 43,
        f"Bearer {token}x",
        f"Bearer {token[:-1]}",
        f"Bearer  {token}",
        f"Basic {token}",
        f"Token {token}",
        "Bearer " + "x" * 5_000,
        b"Bearer \xff\xfe",
        b"Basic \xff\xfe",
        "Basic " + base64.b64encode(f"operator:{token}".encode()).decode(),
    ]
    for sent in wrong:
        answer = get(service, path, sent)
        assert code(answer, 401) == "unauthorized"
        assert "www-authenticate" in answer.headers
        assert token not in answer.text


def test_a_token_ends(service: Service) -> None:
    expired = service.token("ends", expires_in=0.0)
    assert code(get(service, "/v1", f"Bearer {expired}"), 401) == "unauthorized"
    token = service.token("ends")
    assert get(service, "/v1", f"Bearer {token}").status_code == 200
    database = Database(ServiceSettings(folder=service.folder).database_url)
    known = find(database, token)
    assert known is not None
    assert revoke(database, known.id)
    database.close()
    assert code(get(service, "/v1", f"Bearer {token}"), 401) == "unauthorized"


def test_tenants_and_operators_are_apart(service: Service) -> None:
    tenant, operator = f"Bearer {service.token()}", f"Bearer {service.token(None)}"
    assert get(service, "/v1", tenant).status_code == 200
    assert get(service, "/v1", operator).status_code == 401
    for path in ("/operator", "/metrics"):
        assert get(service, path, tenant).status_code == 401
        assert get(service, path, operator).status_code == 200


def test_a_browser_gives_the_operators_token_as_a_password(service: Service) -> None:
    token = service.token(None)
    for user, status in (("operator", 200), ("root", 401), ("", 401)):
        answer = httpx2.get(f"{service.url}/operator", auth=(user, token), timeout=SECONDS)
        assert answer.status_code == status


def test_a_body_without_a_token_is_not_read(service: Service) -> None:
    """The answer is there long before a body of a gigabyte could have been sent."""
    began = time.monotonic()
    sent = 0

    def body() -> object:
        nonlocal sent
        for _ in range(1_000):
            sent += 1 << 20
            yield b" " * (1 << 20)

    try:
        answer = httpx2.post(f"{service.url}/v1/jobs", content=body(), timeout=SECONDS)  # type: ignore[arg-type]
        assert code(answer, 401) == "unauthorized"
    except (httpx2.WriteError, httpx2.ReadError):
        pass
    assert sent < 200 << 20
    assert time.monotonic() - began < SECONDS


def test_a_refusal_without_a_body_keeps_the_connection(service: Service) -> None:
    with service.client("vrx_wrong") as client:
        assert "connection" not in client.get("/v1").headers
        answer = client.post("/v1/jobs", content=b"x" * 1_000_000)
        assert code(answer, 401) == "unauthorized"
        assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_token(service: Service, path: str) -> None:
    assert get(service, path, None).json() == {"status": "ok"}


def test_not_ready_without_blobs(service: Service, tmp_path: Path) -> None:
    blobs, away = service.folder / "blobs", tmp_path / "away"
    blobs.rename(away)
    blobs.write_text("no folder")
    try:
        answer = asked_until(service, 503)
        assert code(answer, 503) == "unavailable"
        assert "retry-after" in answer.headers
    finally:
        blobs.unlink()
        away.rename(blobs)
    asked_until(service, 200)


def asked_until(service: Service, status: int) -> httpx2.Response:
    """An answer counts for a moment: ask until it is another one."""
    until = time.monotonic() + SECONDS
    while (answer := get(service, "/readyz", None)).status_code != status:
        assert time.monotonic() < until
        time.sleep(0.1)
    return answer
