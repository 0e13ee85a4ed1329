"""What several tests of this folder are run with."""

from pathlib import Path

import pytest

from files.samples import delivered
from verix_anon.files.deliveries import write_delivery


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An honest delivery, to be spoiled."""
    write_delivery(delivered(), tmp_path / "delivery")
    return tmp_path / "delivery"
