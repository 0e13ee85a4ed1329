"""One service for the tests of a module, and a submission to send to it."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from files.samples import sent
from service.running import Service, running
from verix_anon.files.folder_writer import write_submission


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that nobody ends before the module does."""
    folder = tmp_path_factory.mktemp("service") / "folder"
    with running(folder, "--rate", "100000", "--max-jobs", "10000") as started:
        yield started


@pytest.fixture
def client(service: Service) -> Iterator[httpx2.Client]:
    """A client of a tenant."""
    with service.client() as made:
        yield made


@pytest.fixture(scope="session")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small submission."""
    folder = tmp_path_factory.mktemp("submission") / "submission"
    write_submission(sent(), folder)
    return folder
