"""Importing this has numba begin: its first kernel takes ten times as long as all the others."""

import numpy as np

from verix_anon.arrays import Ids
from verix_anon.kernels import trees

__all__ = ["leaf"]

# Read-only, as those of deliveries are: else it would be compiled for both.
leaf: Ids = np.zeros(1, np.int32)
leaf.setflags(write=False)
trees.group_rows(leaf, 1)
