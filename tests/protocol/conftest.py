"""What several tests of this folder are run with."""

import pytest

from protocol.tables import MAKERS, Make


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    """Make a table of named columns, in each of the libraries."""
    return MAKERS[request.param]
