"""How many cores and how much memory there are.

Work is shared among all cores this process may use. A job too large for memory is refused before
it begins: else it would end hours later, killed by the system without a word.
Estimates are what measurement showed each step to take (docs/limitations.md); a job that needs a
little more than estimated may still be killed, but none that fits is refused for long.
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
    """How many cores this process may use: the number of threads unless another is asked for."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shares(n: int, threads: int) -> list[tuple[int, int]]:
    """0 .. n - 1 as ranges of nearly the same length, one for each thread that gets any."""
    parts = min(n, threads)
    return [(n * i // parts, n * (i + 1) // parts) for i in range(parts)]


def check_memory(needed: float, work: str, fail: type[Error]) -> None:
    """Raise unless so many bytes are to be had; `work` says what for, as a subject."""
    available = available_memory()
    if available is not None and needed > available:
        raise fail(
            f"{work} needs about {_gigabytes(needed)} of memory beyond what is in use, and"
            f" {_gigabytes(available)} are available: free some, or use a larger machine"
        )


def give_back() -> None:
    """Give memory that is free back to the system, between steps that take much of it.

    Allocators keep it for the next array, which often has another size; so what is free and what
    is used add up.
    """
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if TRIM is not None:
        TRIM(0)


def _found_trim() -> Callable[[int], int] | None:
    """The function of the GNU C library, where there is one."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


TRIM = _found_trim()


def lacking(work: str) -> str:
    """The sentence for work that found no memory; `work` says what for, as a subject."""
    available = available_memory()
    left = "" if available is None else f", and {_gigabytes(available)} are available"
    return f"{work} needs more memory than there is{left}: free some, or use a larger machine"


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:,.1f} MB"


def available_memory() -> int | None:
    """Bytes that can be had without pushing others out, swap included; None if unknown."""
    found = [bytes_ for bytes_ in (_of_machine(), _of_container()) if bytes_ is not None]
    return min(found, default=None)


def total_memory() -> int | None:
    """Bytes that the machine has, or a container at most, swap included; None if unknown."""
    found = [_of_machine("MemTotal", "SwapTotal")]
    for limit, _ in LIMITS:
        with suppress(OSError, ValueError):
            # No such file, or `max`: no limit.
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
    """All memory there is: an upper bound where the system does not say how much is free."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _of_container() -> int | None:
    """What a control group still allows, its file cache counted as free."""
    for (limit, use), stat in zip(LIMITS, STATS, strict=True):
        try:
            left = int(limit.read_text()) - int(use.read_text())
            counts = dict(line.split() for line in stat.read_text().splitlines())
            cached = counts.get("inactive_file", counts.get("total_inactive_file", 0))
            return max(0, left + int(cached))
        except (OSError, ValueError):
            # No such file, or `max`: no limit.
            continue
    return None
