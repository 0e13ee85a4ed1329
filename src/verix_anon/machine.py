"""Tells how many cores and how much memory this process may use.

Work is shared among all of these cores. A job that is too large for the memory is refused before it
starts. Otherwise the system would kill it hours later, without a message. The estimates are
measured for each step (docs/limitations.md). The system may still kill a job that needs a little
more than estimated.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from verix_anon.errors import Error

MEMINFO = Path("/proc/meminfo")
# A container's own limit and use: version 2 of control groups, then version 1.
LIMITS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)
STATS = (Path("/sys/fs/cgroup/memory.stat"), Path("/sys/fs/cgroup/memory/memory.stat"))


def available_cores() -> int:
    """Return how many cores this process may use, which is the default number of threads."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shares(n: int, threads: int) -> list[tuple[int, int]]:
    """Divide 0 .. n - 1 into ranges of nearly the same length, at most one for each thread."""
    parts = min(n, threads)
    return [(n * i // parts, n * (i + 1) // parts) for i in range(parts)]


def check_memory(needed: float, work: str, fail: type[Error]) -> None:
    """Raise `fail` if fewer bytes are available. `work` is the subject of its sentence."""
    available = available_memory()
    if available is not None and needed > available:
        raise fail(
            f"{work} needs about {_gigabytes(needed)} of memory beyond what is in use, and"
            f" {_gigabytes(available)} are available: free some, or use a larger machine"
        )


def give_back() -> None:
    """Give free memory back to the system, between steps that need a lot of it.

    Allocators keep freed memory for the next array. That array often has another size, so without
    this call the kept memory and the used memory add up.
    """
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if TRIM is not None:
        TRIM(0)


def _found_trim() -> Callable[[int], int] | None:
    """Return `malloc_trim` of the GNU C library, or None if there is no such function."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


TRIM = _found_trim()


def lacking(work: str) -> str:
    """Return the sentence for work that ran out of memory. `work` is its subject."""
    available = available_memory()
    left = "" if available is None else f", and {_gigabytes(available)} are available"
    return f"{work} needs more memory than there is{left}: free some, or use a larger machine"


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:,.1f} MB"


def available_memory() -> int | None:
    """Return how many bytes are available, swap included, or None if unknown."""
    found = [bytes_ for bytes_ in (_of_machine(), _of_container()) if bytes_ is not None]
    return min(found, default=None)


def total_memory() -> int | None:
    """Return how many bytes the machine or the container has, with swap; None if unknown."""
    found = [_of_machine("MemTotal", "SwapTotal")]
    for limit, _ in LIMITS:
        with suppress(OSError, ValueError):
            # The file is missing, or it says `max`: there is no limit.
            found.append(int(limit.read_text()))
    return min((bytes_ for bytes_ in found if bytes_ is not None), default=None)


def _of_machine(memory: str = "MemAvailable", swap: str = "SwapFree") -> int | None:
    try:
        lines = [line for line in MEMINFO.read_text(encoding="ascii").splitlines() if ":" in line]
        pairs = [line.split(":", 1) for line in lines]
        kilobytes = {name: int(rest.split()[0]) for name, rest in pairs}
        return 1024 * (kilobytes[memory] + kilobytes.get(swap, 0))
    except (OSError, ValueError, LookupError):
        return _installed()


def _installed() -> int | None:
    """Return all installed memory: an upper bound if the system does not say what is free."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _of_container() -> int | None:
    """Return what a control group still allows. Its file cache counts as free."""
    for (limit, use), stat in zip(LIMITS, STATS, strict=True):
        try:
            left = int(limit.read_text()) - int(use.read_text())
            counts = dict(line.split() for line in stat.read_text().splitlines())
            cached = counts.get("inactive_file", counts.get("total_inactive_file", 0))
            return max(0, left + int(cached))
        except (OSError, ValueError):
            # The file is missing, or it says `max`: there is no limit.
            continue
    return None
