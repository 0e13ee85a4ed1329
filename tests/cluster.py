"""The PostgreSQL of the tests; without one they are skipped."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tools import postgres
from tools.postgres import PASSWORD, restart, url

__all__ = ["PASSWORD", "restart", "running", "url"]


@contextmanager
def running() -> Iterator[Path]:
    """The folder of a server that runs until the block ends."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(postgres.running())
        except postgres.NoPostgresError as error:
            pytest.skip(str(error))
        yield folder
