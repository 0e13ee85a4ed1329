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
