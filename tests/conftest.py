"""What tests of several folders are run with."""

from pathlib import Path

import pytest

from client.table.tables import MAKERS, Make
from files.samples import delivered
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
