"""Intervals, tests and effect sizes of the studies."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Z95", "Floats", "auc", "roc", "wilson", "youden"]

Floats = npt.NDArray[np.float64]
Z95 = 1.959963984540054


def wilson(hits: int, n: int, z: float = Z95) -> tuple[float, float]:
    """The Wilson score interval of a share; (0, 1) where nothing was tried."""
    if n == 0:
        return 0.0, 1.0
    share, z2 = hits / n, z * z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # At 0 and n hits the interval ends there exactly; rounding must not say otherwise.
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == n else min(1.0, middle + half)
    return low, high


def auc(negative: Sequence[float], positive: Sequence[float]) -> float:
    """The chance that a positive exceeds a negative, ties counting half."""
    a, b = np.sort(np.asarray(negative, float)), np.asarray(positive, float)
    below, upto = np.searchsorted(a, b, "left"), np.searchsorted(a, b, "right")
    return float((below + upto).sum() / (2 * a.size * b.size))


def roc(negative: Sequence[float], positive: Sequence[float]) -> list[tuple[float, float, float]]:
    """(threshold, false alarms, detections) where a value above the threshold is flagged."""
    a, b = np.asarray(negative, float), np.asarray(positive, float)
    cuts = [math.inf, *np.unique(np.concatenate([a, b]))[::-1].tolist(), -math.inf]
    return [(cut, float((a > cut).mean()), float((b > cut).mean())) for cut in cuts]


def youden(negative: Sequence[float], positive: Sequence[float]) -> float:
    """The threshold with the greatest detections less false alarms, the highest among equals."""
    return max(roc(negative, positive), key=lambda point: (point[2] - point[1], point[0]))[0]
