"""What tests of several folders are run with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from client.table.tables import MAKERS, Make
from files.samples import delivered
from verix_anon.client import models
from verix_anon.files.deliveries import write_delivery


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    """Make a table of named columns, in each of the libraries."""
    return MAKERS[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An honest delivery, to be spoiled."""
    write_delivery(delivered(), tmp_path / "delivery")
    return tmp_path / "delivery"


@pytest.fixture(scope="module")
def quick_models() -> Iterator[None]:
    """For tests in which fingerprint and utility only inform: a model of two trees costs less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "ROUNDS", 2)
        yield
