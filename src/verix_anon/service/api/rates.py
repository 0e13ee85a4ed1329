"""How many requests a token may make in a minute, counted by each HTTP process for itself."""

import math
import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from verix_anon.service.api.problems import Problem

__all__ = ["Rates"]


class Rates:
    """Requests per minute and token."""

    def __init__(self, per_minute: int) -> None:
        self.item = RateLimitItemPerMinute(per_minute)
        self.limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

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
