"""How long to wait before something is tried again: doubling, with jitter, and not for ever."""

import time
from random import Random

__all__ = ["Waiting", "now", "sleep"]

FIRST, MOST = 0.25, 30.0
"""Seconds: what is waited at first and at the most, before jitter."""
MOST_ASKED = 300.0
"""Seconds that a service may ask for at once."""

now, sleep = time.monotonic, time.sleep


class Waiting:
    """The waits between attempts at one thing; what advances begins anew."""

    def __init__(self, patience: float, seed: int | None) -> None:
        self.patience = patience
        # Jitter spreads clients that lost the same service; nobody gains by guessing it.
        self.random = Random(seed)  # noqa: S311
        self.advanced()

    def advanced(self) -> None:
        """Something was achieved: patience and the waits begin again."""
        self.tries, self.since = 0, now()

    def next_delay(self, asked: float | None = None) -> float | None:
        """Seconds to wait now, not fewer than the service asked for; None if it took too long."""
        if now() - self.since > self.patience:
            return None
        if asked is not None:
            # The service knows better when there is room. Jitter comes on top: else all who were
            # told the same come at once.
            return min(max(asked, FIRST), MOST_ASKED) * self.random.uniform(1.0, 1.25)
        most = min(MOST, FIRST * 2.0 ** min(self.tries, 20))
        self.tries += 1
        return self.random.uniform(most / 2, most)
