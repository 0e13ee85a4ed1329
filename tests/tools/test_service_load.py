"""The benchmark of the service, on a small scale: no error but 429, and memory that is bounded."""

import pytest

from tools.bench import service

pytestmark = pytest.mark.long

MEGABYTE = 10**6
FINE = {"200", "201", "204", "206", "429"}


def test_a_small_load_is_served_whole() -> None:
    found = service.load(20, 5, ("--max-jobs", "3"))
    assert (found["deliveries"], found["errors"]) == (20, [])
    assert found["statuses"].keys() <= FINE
    # 5 clients of a tenant that may have 3 jobs: some were told to wait.
    assert found["statuses"]["429"] > 0
    assert 0 < found["p50"] <= found["p95"] <= found["p99"] <= found["seconds"]
    assert found["server_peak_bytes"] < 500 * MEGABYTE
    assert found["clients_peak_bytes"] < 300 * MEGABYTE


def test_who_passes_files_on_does_not_hold_them() -> None:
    small, large = service.large(20_000), service.large(300_000)
    more = large["submission_bytes"] + large["delivery_bytes"]
    assert more > 50 * MEGABYTE
    for who in ("client", "server"):
        assert large[f"{who}_peak_bytes"] - small[f"{who}_peak_bytes"] < 20 * MEGABYTE


def test_a_small_crowd_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "TENANTS", 2)
    monkeypatch.setattr(service, "POLL_SECONDS", 1.0)
    found = service.crowd(20, 5.0)
    assert found["other"] == {}
    assert found["answers"] > 10
    assert 0 < found["p50"] <= found["p95"] <= found["slowest"]
    assert "| answers/s | p50 |" in service._crowd_lines(found)[3]


def test_a_tenant_beside_one_at_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PARTS", 300)
    found = service.unfair(2, 40, 2.0)
    for each in found["medians"].values():
        assert each["alone"] > 0
        assert each["beside"] > 0
    assert service._unfair_lines(found)[-2].startswith("| `GET /v1/jobs` | ")
