"""Intervals and ROC curves against worked examples."""

import math

import pytest
import scipy

from experiments.core.stats import auc, roc, wilson, youden


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (1, 10), (5, 10), (10, 10), (81, 263), (0, 200)])
def test_wilson_is_scipys(hits: int, n: int) -> None:
    expected = scipy.stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_as_published() -> None:
    # Newcombe 1998, table I: 81 of 263 and 0 of 20.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_none_of_two_hundred_proves_little() -> None:
    assert wilson(0, 200)[1] == pytest.approx(0.0188, abs=1e-4)


def test_nothing_tried_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_auc_by_hand() -> None:
    # Of the nine pairs seven are in order, one is a tie, and 3 stands above 2.
    assert auc([1, 2, 3], [2, 4, 5]) == pytest.approx(7.5 / 9)
    assert auc([0, 1], [2, 3]) == 1.0
    assert auc([2, 3], [0, 1]) == 0.0
    assert auc([1, 1], [1, 1]) == 0.5


def test_auc_is_the_rank_sum() -> None:
    a, b = [0.1, 0.4, 0.35, 0.8, 0.4], [0.4, 0.9, 0.7, 0.35]
    statistic = scipy.stats.mannwhitneyu(b, a).statistic
    assert auc(a, b) == pytest.approx(statistic / (len(a) * len(b)))


def test_roc_runs_from_corner_to_corner() -> None:
    points = roc([0.1, 0.2, 0.3], [0.25, 0.4])
    assert points[0] == (math.inf, 0.0, 0.0)
    assert points[-1] == (-math.inf, 1.0, 1.0)
    assert all(a[1] <= b[1] and a[2] <= b[2] for a, b in zip(points, points[1:], strict=False))


def test_youden_by_hand() -> None:
    # Above 0.3: no false alarm, one of two caught; above 0.2: one of three, both caught.
    assert youden([0.1, 0.2, 0.3], [0.25, 0.4]) == 0.2
    assert youden([0.1, 0.2], [0.3, 0.4]) == 0.2
