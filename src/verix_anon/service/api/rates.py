"""How many requests a token may make, in a minute and at once, counted by each HTTP process."""

import math
import time
from collections import Counter

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from verix_anon.service.api.problems import Problem

__all__ = ["Rates"]

MOST_AT_ONCE = 32


class Rates:
    """Requests per minute and token."""

    def __init__(self, per_minute: int) -> None:
        self.item = RateLimitItemPerMinute(per_minute)
        self.limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._in_flight = Counter[str]()

    def check(self, token: str) -> None:
        """Count a request; one too many is a problem that says when to come again."""
        if self.limiter.hit(self.item, token):
            return
        reset = self.limiter.get_window_stats(self.item, token).reset_time
        wait = min(60, max(1, math.ceil(reset - time.time())))
        raise Problem(
            "rate-limited",
            f"At most {self.item.amount} requests a minute are answered for a token.",
            {"Retry-After": str(wait)},
        )

    def enter(self, token: str) -> None:
        """Count a request that is being answered, until `leave`; one too many is a problem."""
        if self._in_flight[token] >= MOST_AT_ONCE:
            raise Problem(
                "rate-limited",
                f"At most {MOST_AT_ONCE} requests of a token are answered at once.",
                {"Retry-After": "1"},
            )
        self._in_flight[token] += 1

    def leave(self, token: str) -> None:
        """One request less."""
        self._in_flight[token] -= 1
        if not self._in_flight[token]:
            del self._in_flight[token]
