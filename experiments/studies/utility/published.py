"""The paper's own figures on utility (§6.6 and §6.7), cell by cell."""

from typing import NamedTuple

__all__ = [
    "DISTANCES",
    "K_SWEEP",
    "PAIRS",
    "STATS",
    "UTILITY",
    "Pairs",
    "Stat",
    "Sweep",
    "Utility",
]


class Sweep(NamedTuple):
    """One row of Table tab:k_sweep: Adult, target-driven and blind."""

    f1: float
    blind_f1: float
    distance: float
    blind_distance: float


K_SWEEP = {
    2: Sweep(0.6383, 0.5034, 0.1718, 0.3444),
    3: Sweep(0.6597, 0.5092, 0.2221, 0.2772),
    4: Sweep(0.6263, 0.5128, 0.2928, 0.2699),
    5: Sweep(0.6420, 0.4929, 0.2962, 0.3686),
    7: Sweep(0.5978, 0.5139, 0.2164, 0.3670),
    10: Sweep(0.5472, 0.4297, 0.2784, 0.3778),
    12: Sweep(0.5407, 0.4461, 0.4299, 0.3707),
    15: Sweep(0.5660, 0.4044, 0.3453, 0.4173),
    20: Sweep(0.5914, 0.4605, 0.2039, 0.4827),
    25: Sweep(0.6085, 0.2370, 0.2347, 0.5250),
    30: Sweep(0.5982, 0.3750, 0.2974, 0.4151),
}


class Utility(NamedTuple):
    """One row of Table tab:utility_summary."""

    f1: float
    blind_f1: float
    gap: float
    gap_low: float
    gap_high: float
    p: float
    d: float
    d_low: float
    d_high: float


UTILITY = {
    "adult": Utility(0.601, 0.444, 0.157, 0.120, 0.208, 0.000977, 1.96, 0.95, 2.97),
    "bank": Utility(0.381, 0.019, 0.362, 0.314, 0.407, 0.000977, 4.34, 2.43, 6.25),
    "diabetes": Utility(0.069, 0.011, 0.058, 0.016, 0.106, 1.000, 0.72, 0.05, 1.38),
    "electricity": Utility(0.773, 0.698, 0.075, 0.063, 0.085, 0.000977, 3.76, 2.08, 5.43),
    "nomao": Utility(0.883, 0.743, 0.140, 0.126, 0.154, 0.000977, 5.64, 3.21, 8.07),
    "credit": Utility(0.549, 0.373, 0.176, 0.147, 0.207, 0.000977, 3.28, 1.79, 4.78),
    "magic": Utility(0.802, 0.621, 0.181, 0.157, 0.206, 0.000977, 4.19, 2.34, 6.04),
}


class Stat(NamedTuple):
    """One row of Table tab:stats_summary: Adult, 11 values of k."""

    w: float
    p: float
    d: float
    gap: float
    gap_low: float
    gap_high: float


STATS = {
    "f1": Stat(0.0, 0.000977, 1.9618, 0.1574, 0.1203, 0.2079),
    "distance": Stat(4.0, 0.006836, -1.0228, 0.1115, 0.0534, 0.1737),
}


class Pairs(NamedTuple):
    """All pairs of a value of k and a data set (§6.7)."""

    better: int
    ties: int
    n: int


PAIRS = Pairs(71, 6, 77)
DISTANCES = 5
"""On how many data sets the gap in the SHAP distance is significant (§6.7)."""
