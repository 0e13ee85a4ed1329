"""Regret is that of the specification (§13.6)."""

import numpy as np
import pytest

from experiments.studies.thresholds.study import regret
from verix_anon.protocol.tree import Tree


def stump(column: int, threshold: float) -> Tree:
    return Tree(
        column=np.array([column, -1, -1], np.int32),
        threshold=np.array([threshold, 0.0, 0.0]),
        left=np.array([1, -1, -1], np.int32),
        right=np.array([2, -1, -1], np.int32),
        leaf=np.array([-1, 0, 1], np.int32),
    )


def test_regret_by_hand() -> None:
    # Column 0 tells the classes apart (chi-square = n = 80), column 1 says nothing (0).
    target = np.repeat(np.array([0, 1], np.uint8), 40)
    values = np.vstack([np.arange(80.0), np.tile([0.0, 1.0], 40)])
    assert regret(stump(0, 39.0), values, target) == 0.0
    assert regret(stump(1, 0.0), values, target) == pytest.approx(80.0)


def test_regret_needs_enough_records() -> None:
    target = np.repeat(np.array([0, 1], np.uint8), 20)
    values = np.vstack([np.arange(40.0), np.tile([0.0, 1.0], 20)])
    assert regret(stump(1, 0.0), values, target) == 0.0
