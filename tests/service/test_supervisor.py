"""The supervisor goes on whatever is raised, and says truly whether the service can work."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import structlog
from sqlalchemy import update

from verix_anon.service import supervisor as supervisor_module
from verix_anon.service.api import context as context_module
from verix_anon.service.api.context import Readiness
from verix_anon.service.blobs import Blobs, StorageError
from verix_anon.service.database import Database, ServerRow
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.supervisor import Supervisor


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    """One that looks often, with a worker that is only said to be alive."""
    monkeypatch.setattr(supervisor_module, "PROBE_SECONDS", 0.01)
    monkeypatch.setattr(Supervisor, "pids", (1,))
    monkeypatch.setattr(context_module, "KEPT_SECONDS", 0.0)
    settings = ServiceSettings(folder=tmp_path, workers=0, sweep_seconds=0.01)
    Database.opened(settings.database_url).close()
    with Supervisor(settings) as started:
        yield started


def test_workers_that_may_take_more_than_the_machine_has_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Supervisor, "_started", Mock())
    monkeypatch.setattr(Supervisor, "_bury", Mock())
    monkeypatch.setattr(supervisor_module, "total_memory", lambda: 8 * 10**9)
    for n_workers, n_warnings in ((2, 0), (3, 1)):
        settings = ServiceSettings(folder=tmp_path, workers=n_workers, worker_bytes=4 * 10**9)
        Database.opened(settings.database_url).close()
        with structlog.testing.capture_logs() as logs, Supervisor(settings):
            pass
        said = [each for each in logs if "more memory than there is" in each["event"]]
        assert [each["bytes"] for each in said] == [12 * 10**9] * n_warnings


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "too late"
        time.sleep(0.01)


def test_no_exception_ends_the_sweeps(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def fail(*_: object) -> None:
        tried.append(1)
        raise RuntimeError("as the client of a cloud may")

    monkeypatch.setattr(supervisor_module, "sweep", fail)
    until(lambda: len(tried) > 3)
    assert all(thread.is_alive() for thread in supervisor._threads)


def test_readiness_is_what_was_found(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = Readiness(supervisor.database, supervisor.settings.server)
    assert ready.is_ready()

    def fail(_: Blobs) -> None:
        raise StorageError(5, "away")

    with monkeypatch.context() as patch:
        patch.setattr(Blobs, "check", fail)
        until(lambda: not ready.is_ready())
    until(ready.is_ready)
    with monkeypatch.context() as patch:
        patch.setattr(Supervisor, "pids", ())
        until(lambda: not ready.is_ready())
    until(ready.is_ready)
    assert not Readiness(supervisor.database, "another").is_ready()


def test_a_supervisor_that_is_silent_is_not_ready(supervisor: Supervisor) -> None:
    ready = Readiness(supervisor.database, supervisor.settings.server)
    supervisor._is_over.set()
    for thread in supervisor._threads:
        thread.join()
    assert ready.is_ready()
    with supervisor.database.write() as session:
        late = ServerRow.seen - context_module.SILENT_SECONDS
        session.execute(update(ServerRow).values(seen=late))
    assert not ready.is_ready()


def test_a_full_folder_is_not_ready(supervisor: Supervisor) -> None:
    ready = Readiness(supervisor.database, supervisor.settings.server)
    supervisor.settings = dataclasses.replace(supervisor.settings, folder=Path("/nowhere"))
    until(lambda: not ready.is_ready())


def test_workers_are_told_to_end_before_a_sweep_that_hangs_is_waited_for(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []
    sweeping = supervisor._threads[-1]
    monkeypatch.setattr(sweeping, "join", lambda _: order.append("sweep"))
    process = Mock(poll=lambda: 0, terminate=lambda: order.append("worker"))
    supervisor._workers.append(supervisor_module._Started(process, "one", "none"))
    supervisor.__exit__()
    assert order == ["worker", "sweep"]
    supervisor._workers.clear()
