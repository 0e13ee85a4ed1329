"""A service as a provider: what counts as its refusal, and that no job stays there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from client.remote import clocks
from client.remote.scripted import TOKEN, Handler, Scripted, files_of, running
from files import samples
from verix_anon import write_delivery, write_submission
from verix_anon.client.remote.connection import RemoteOptions
from verix_anon.conform.trials import Answer, ProviderOutcome, service_provider


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Scripted]:
    write_submission(samples.sent(), tmp_path / "submission")
    write_delivery(samples.delivered(), tmp_path / "made")
    with clocks.turned(), running(Scripted(files_of(tmp_path / "made"))) as script:
        yield script


def answered(service: Scripted, folder: Path) -> Answer:
    options = RemoteOptions(patience=5, wait=5)
    return service_provider(service.url, TOKEN, options)(folder / "submission", folder / "delivery")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(status, ProviderOutcome.REFUSED) for status in (400, 422)]
    + [
        (status, ProviderOutcome.BROKEN) for status in (401, 403, 404, 408, 409, 413, 429, 500, 503)
    ],
)
@pytest.mark.parametrize("request_", ["post", "patch"])
def test_only_a_word_on_the_submission_refuses_it(
    service: Scripted, status: int, outcome: ProviderOutcome, request_: str, tmp_path: Path
) -> None:
    def refuse(handler: Handler) -> None:
        handler.problem(status, "a-code", "why")

    service.faults[request_] = [refuse] * 100
    answer = answered(service, tmp_path)
    assert answer.outcome is outcome
    assert not (tmp_path / "delivery").exists()
    assert service.keys == {}


def test_a_job_that_takes_too_long_is_deleted(service: Scripted, tmp_path: Path) -> None:
    service.states = ["running"] * 1000
    answer = answered(service, tmp_path)
    assert answer.outcome is ProviderOutcome.BROKEN
    assert "is not done after 5 s" in answer.said
    assert service.count("delete") == 1
    assert service.keys == {}


def test_a_job_that_was_delivered_is_deleted_once(service: Scripted, tmp_path: Path) -> None:
    assert answered(service, tmp_path).outcome is ProviderOutcome.DELIVERED
    assert files_of(tmp_path / "delivery") == files_of(tmp_path / "made")
    assert service.count("delete") == 1


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("damaged-submission", ProviderOutcome.REFUSED),
        ("internal", ProviderOutcome.BROKEN),
        ("worker-killed", ProviderOutcome.BROKEN),
        ("job-too-large", ProviderOutcome.BROKEN),
    ],
)
def test_a_job_that_fails(
    service: Scripted, code: str, outcome: ProviderOutcome, tmp_path: Path
) -> None:
    def fail(handler: Handler) -> None:
        reason = {"code": code, "detail": "why"}
        handler.json({**handler.job(), "state": "failed", "reason": reason})

    service.faults["job"] = [fail]
    assert answered(service, tmp_path).outcome is outcome
    assert service.keys == {}
