"""Progress of long work, and of the compiling of kernels before it."""

from collections.abc import Callable
from time import perf_counter

Progress = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and how much there is."""


def ignore(stage: str, done: int, total: int) -> None:
    """Do not report progress."""


class Compiling:
    """How long this process has compiled kernels. numba compiles in one thread at a time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.tell: Callable[[], None] | None = None
        """Called before the first kernel is compiled."""
        self._depth, self._since = 0, 0.0

    def begin(self) -> None:
        """Note that a kernel is about to be compiled. Calls may be nested."""
        if self._depth == 0:
            if self.tell is not None and not self.seconds:
                self.tell()
            self._since = perf_counter()
        self._depth += 1

    def end(self) -> None:
        """Note that this kernel is compiled."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += perf_counter() - self._since


compiling = Compiling()
"""The one of this process."""
