"""The small kit, made once."""

import pytest

from verix_anon.conform.kit import Kit, Size, write_kit
from verix_anon.conform.recipes import for_providers


@pytest.fixture(scope="session")
def small_kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """Not to be changed."""
    return write_kit(tmp_path_factory.mktemp("kit") / "kit", for_providers(), Size.SMALL)
