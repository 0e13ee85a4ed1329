"""What a result was measured on: commit, versions, machine, and its memory bandwidth."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from experiments.core import provenance
from tools.bench.tables import SEED, best_of


def facts() -> dict[str, object]:
    """Everything a reader needs to judge or repeat a figure."""
    return {
        "seed": SEED,
        **provenance.facts(),
        "copy_gb_per_second": copy_bandwidth() / 1e9,
    }


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
