"""Word of long work: how far a stage is, and that kernels are compiled, before that begins."""

from collections.abc import Callable
from time import perf_counter

Progress = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and how much there is."""


def ignore(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""


class Compiling:
    """What this process compiles for its machine; numba has one thread at a time do so."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.tell: Callable[[], None] | None = None
        """Called before the first kernel is compiled."""
        self._depth, self._since = 0, 0.0

    def begin(self) -> None:
        """A kernel is about to be compiled, maybe for another one."""
        if self._depth == 0:
            if self.tell is not None and not self.seconds:
                self.tell()
            self._since = perf_counter()
        self._depth += 1

    def end(self) -> None:
        """It is."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += perf_counter() - self._since


compiling = Compiling()
"""Of this process."""
