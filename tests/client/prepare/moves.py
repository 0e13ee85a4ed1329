"""Records moved as sentinels are."""

from collections.abc import Sequence

import numpy as np

from verix_anon.arrays import Floats, Ints
from verix_anon.client.prepare.traps import moved, snapped
from verix_anon.protocol.contract import Column


def perturb(
    values: Floats, columns: Sequence[Column], rows: Ints, rng: np.random.Generator
) -> Floats:
    """Some records moved a little, to values that occur."""
    found = zip(moved(values, columns, rows, rng), values, strict=True)
    return np.array([snapped(own, np.unique(occurring)) for own, occurring in found])
