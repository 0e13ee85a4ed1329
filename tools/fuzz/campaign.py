"""Many cases in processes of their own, so that one that hangs or dies is told by its number."""

import os
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Case = Callable[[int, int, Path], str]
"""Seed, number and a folder to work in: what became of it; raises if it may not."""

CHUNK = 10_000
"""Cases of one process; after them a new one begins with the memory of a new one."""
ROOM = 3 << 30
"""Bytes of address space beyond what a process has when it begins."""
PATIENCE = 90
"""Seconds until a process is ended that does not even heed its own alarm."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that ended as it may not."""

    number: int
    reason: str


@dataclass(slots=True)
class Tally:
    """What became of the cases so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, 0)
    """Seconds, and the number of the case."""

    @property
    def n_done(self) -> int:
        return self.outcomes.total() + len(self.failures)

    def add(self, outcome: str | Failure, took: tuple[float, int]) -> None:
        if isinstance(outcome, Failure):
            self.failures.append(outcome)
        else:
            self.outcomes[outcome] += 1
        self.slowest = max(self.slowest, took)


class _Chunk:
    """A process at work on some cases."""

    def __init__(self, case: Case, seed: int, numbers: range, core: int) -> None:
        context = get_context("spawn")
        self.numbers, self.core = numbers, core
        self.told, telling = context.Pipe(duplex=False)
        # Before the first: what is imported and compiled at the beginning may take minutes.
        self.at: Any = context.Value("q", numbers.start - 1, lock=False)
        self.process = context.Process(
            target=_work, args=(case, seed, numbers, core, (telling, self.at)), daemon=True
        )
        self.process.start()
        telling.close()
        self.seen, self.since = numbers.start - 1, time.monotonic()

    def take(self, tally: Tally) -> range | None:
        """Add what the process has told; the cases that are left if it is over, else None."""
        try:
            while self.told.poll():
                tally.add(*self.told.recv())
        except EOFError:
            return self._ended(tally)
        at, now = self.at.value, time.monotonic()
        if at != self.seen:
            self.seen, self.since = at, now
        elif at in self.numbers and now - self.since > PATIENCE:
            self.process.kill()
        return None

    def _ended(self, tally: Tally) -> range:
        self.process.join()
        at = max(self.at.value, self.numbers.start)
        if at == self.numbers.stop:
            return range(0)
        tally.failures.append(Failure(at, f"its process ended with {self.process.exitcode}"))
        return range(at + 1, self.numbers.stop)


def _work(case: Case, seed: int, numbers: range, core: int, tell: tuple[Connection, Any]) -> None:
    """Run the cases one by one, and tell what came of each."""
    told, at = tell
    # Whoever interrupts the run ends it from the top.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    with tempfile.TemporaryDirectory(dir=_scratch()) as scratch:
        # What every process makes first is no part of the time or memory of its first case.
        with suppress(Exception):
            case(seed, numbers.start, Path(scratch) / "case")
        _bound_memory()
        for number in numbers:
            at.value, began = number, time.perf_counter()
            outcome: str | Failure
            try:
                outcome = case(seed, number, Path(scratch) / "case")
            except Exception:
                outcome = Failure(number, traceback.format_exc(limit=-6))
            told.send((outcome, (time.perf_counter() - began, number)))
    at.value = numbers.stop


def _scratch() -> str | None:
    """A folder in memory if there is one: a million cases would wear out a disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _bound_memory() -> None:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return
    pages = int(statm.read_text().split()[0])
    limit = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def run(case: Case, seed: int, numbers: range) -> Iterator[Tally]:
    """Run cases on all cores; the tally again and again, the last one of all of them."""
    left = [
        range(at, min(at + CHUNK, numbers.stop)) for at in range(numbers.start, numbers.stop, CHUNK)
    ][::-1]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 1]
    tally, busy = Tally(), list[_Chunk]()
    try:
        while left or busy:
            free = [core for core in cores if core not in {chunk.core for chunk in busy}]
            while left and free:
                busy.append(_Chunk(case, seed, left.pop(), free.pop()))
            time.sleep(0.2)
            for chunk in tuple(busy):
                rest = chunk.take(tally)
                if rest is not None:
                    busy.remove(chunk)
                    left += [rest] if rest else []
            yield tally
    finally:
        for chunk in busy:
            chunk.process.kill()
