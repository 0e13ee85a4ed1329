"""A submission on its way to a scripted service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from client.remote import clocks
from client.remote.journeys import Client
from client.remote.scripted import Scripted, files_of, running
from files import samples
from verix_anon import write_delivery, write_submission


@pytest.fixture(scope="session")
def remote_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission and its honest delivery; not to be changed."""
    folder = tmp_path_factory.mktemp("remote")
    write_submission(samples.sent(), folder / "submission")
    write_delivery(samples.delivered(), folder / "delivery")
    return folder


@pytest.fixture
def service(remote_folders: Path) -> Iterator[Scripted]:
    with running(Scripted(files_of(remote_folders / "delivery"))) as script:
        yield script


@pytest.fixture
def clock() -> Iterator[clocks.Clock]:
    with clocks.turned() as clock:
        yield clock


@pytest.fixture
def client(service: Scripted, remote_folders: Path, clock: clocks.Clock, tmp_path: Path) -> Client:
    (tmp_path / "here").mkdir()
    return Client(service, remote_folders, tmp_path / "here" / "delivery")
