"""What a result was measured on: commit, versions, machine, and its memory bandwidth."""

import os
import platform
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

from bench.tables import SEED, best_of

PACKAGES = ("numpy", "numba", "pyarrow", "pandas", "scikit-learn")


def facts() -> dict[str, object]:
    """Everything a reader needs to judge or repeat a figure."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return {
        "seed": SEED,
        "commit": commit.stdout.strip() or "unknown",
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "copy_gb_per_second": copy_bandwidth() / 1e9,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")


def copy_bandwidth() -> float:
    """Bytes read and written per second by all cores copying arrays larger than any cache."""
    n_threads = os.cpu_count() or 1
    source = np.ones((n_threads, 32_000_000))
    target = np.zeros_like(source)

    def copy(i: int) -> None:
        np.copyto(target[i], source[i])

    with ThreadPoolExecutor(n_threads) as pool:
        seconds = best_of(5, lambda: list(pool.map(copy, range(n_threads))))
    return 2 * source.nbytes / seconds
