"""Twins: exact duplicates that a deterministic tree must keep together (paper §5.1.2)."""

import numpy as np

from verix_anon.arrays import Ints

__all__ = ["choose_twins", "n_twins"]


def n_twins(n_rows: int) -> int:
    """How many records get a twin: 5 %, rounded up."""
    return -(-n_rows // 20)


def choose_twins(n_rows: int, rng: np.random.Generator) -> Ints:
    """The genuine records to duplicate, each at most once."""
    return np.sort(rng.choice(n_rows, n_twins(n_rows), replace=False)).astype(np.int64)
