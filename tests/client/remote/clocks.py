"""A clock that tests turn: waiting takes no time, and is remembered."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from verix_anon.client.remote import connection


class Clock:
    """Seconds since it was made, and what was waited."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds


@contextmanager
def turned() -> Iterator[Clock]:
    """The remote client waits by this clock until the block ends."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "now", clock.now)
        patch.setattr(connection, "sleep", clock.sleep)
        yield clock
