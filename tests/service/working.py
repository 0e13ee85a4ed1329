"""What a worker is given in tests, and what became of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from files.samples import N_ROWS, sent
from service import made
from verix_anon.files.deliveries import read_delivery
from verix_anon.protocol.messages import Header
from verix_anon.protocol.providers import JobState
from verix_anon.provider.local import LocalProvider
from verix_anon.service import blobs, engines, jobs, leases
from verix_anon.service.database import JobRow
from verix_anon.service.leases import LeasedJob
from verix_anon.service.settings import ServiceSettings
from verix_anon.service.worker import Worker


def taken(worker: Worker) -> LeasedJob:
    claim = leases.claim(worker.database, worker.name, lease_seconds=30)
    assert claim is not None
    return claim


def result(worker: Worker, job: JobRow) -> JobRow:
    found = jobs.find(worker.database, made.TENANT, job.id)
    assert found is not None
    return found


def check_done(worker: Worker, job: JobRow, *, fence: int = 1, folder: Path) -> None:
    """The delivery is there, and is what the local engine makes."""
    done = result(worker, job)
    assert (done.state, done.fence, done.reason) == (JobState.DONE, fence, None)
    assert done.delivery is not None
    for file in done.delivery:
        worker.blobs.get(blobs.attempt(job.id, fence, file.name), folder / file.name)
    found = {(file.name, file.size, file.sha256) for file in made.files_of(folder)}
    assert found == {(file.name, file.size, file.sha256) for file in done.delivery}
    expected = LocalProvider(threads=1).anonymize(sent()).header.root
    assert done.root == expected.hex()
    snapshot = read_delivery(folder, sent().contract, n_rows=N_ROWS)
    assert snapshot.delivery.header.root == expected
    assert not snapshot.damaged


def during(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> None:
    """Something happens in the midst of an engine's work."""
    honest = engines.run

    def run(name: str, settings: ServiceSettings, *folders: Path, **options: Any) -> Header:
        happen()
        return honest(name, settings, *folders, **options)

    monkeypatch.setattr(engines, "run", run)


def taken_later(worker: Worker) -> LeasedJob:
    while (claim := leases.claim(worker.database, "one", lease_seconds=30)) is None:
        pass
    return claim
