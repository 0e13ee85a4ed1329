"""What a model's answers are worth."""

import numpy as np
import pytest

from experiments.studies.utility import study


def test_logloss_by_hand() -> None:
    target, probability = np.array([1, 0], np.uint8), np.array([0.5, 0.25])
    assert study.logloss(target, probability) == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)
    assert np.isfinite(study.logloss(target, np.array([0.0, 1.0])))
