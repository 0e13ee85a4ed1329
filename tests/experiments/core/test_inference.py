"""The tests of paired comparisons, held to worked examples: the paper's own, and textbooks'."""

import numpy as np
import pytest
import scipy

from experiments.core import inference
from experiments.studies.utility import published

SWEEP = published.K_SWEEP.values()
F1_GAPS = [row.f1 - row.blind_f1 for row in SWEEP]
DISTANCE_GAPS = [row.blind_distance - row.distance for row in SWEEP]


@pytest.mark.parametrize(("gaps", "name"), [(F1_GAPS, "f1"), (DISTANCE_GAPS, "distance")])
def test_the_papers_adult_sweep(gaps: list[float], name: str) -> None:
    paper = published.STATS[name]
    w, p = inference.wilcoxon(gaps)
    assert (w, round(p, 6)) == (paper.w, paper.p)
    # The paper takes Cohen's d of the distances the other way round.
    assert inference.cohens_d(gaps)[0] == pytest.approx(abs(paper.d), abs=1e-3)
    assert np.mean(gaps) == pytest.approx(paper.gap, abs=1e-4)
    low, high = inference.bootstrap_mean(gaps)
    assert (low, high) == pytest.approx((paper.gap_low, paper.gap_high), abs=4e-3)


def test_cohens_d_has_the_papers_interval() -> None:
    paper = published.UTILITY["adult"]
    assert inference.cohens_d(F1_GAPS) == pytest.approx(
        (paper.d, paper.d_low, paper.d_high), abs=9e-3
    )


def test_cohens_d_by_hand() -> None:
    # Mean 2, standard deviation 1; SE = sqrt(1/3 + 4/6) = 1.
    d, low, high = inference.cohens_d([1.0, 2.0, 3.0])
    assert (d, low, high) == pytest.approx((2.0, 2 - 1.959964, 2 + 1.959964))
    assert inference.cohens_d([0.0, 0.0]) == (0.0, 0.0, 0.0)


def test_wilcoxon_leaves_ties_with_zero_out() -> None:
    # Five of one sign: the least that can be reached is 2/2^5.
    assert inference.wilcoxon([0, 0, 1, 2, 3, 4, 5]) == (0.0, 0.0625)
    assert inference.wilcoxon([0.0, 0.0]) == (0.0, 1.0)


def test_wilcoxon_by_hand() -> None:
    # Ranks of -1, 2, 3, 4: W = 1; of 16 signs those with a sum of at most 1 are two, doubled.
    assert inference.wilcoxon([-1, 2, 3, 4]) == (1.0, 0.25)


BENJAMINI_HOCHBERG = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459,
                      0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]  # fmt: skip


def test_the_example_of_benjamini_and_hochberg() -> None:
    adjusted = inference.benjamini_hochberg(BENJAMINI_HOCHBERG)
    # Their paper of 1995 (§3.2): at 0.05 the four smallest are rejected.
    assert [p <= 0.05 for p in adjusted] == [True] * 4 + [False] * 11
    expected = scipy.stats.false_discovery_control(BENJAMINI_HOCHBERG)
    assert adjusted == pytest.approx(expected.tolist())
    shuffled = BENJAMINI_HOCHBERG[::-1]
    assert inference.benjamini_hochberg(shuffled) == pytest.approx(expected[::-1].tolist())


def test_the_papers_adjusted_p() -> None:
    p = [row.p for row in published.UTILITY.values()]
    adjusted = inference.benjamini_hochberg(p)
    assert sorted(adjusted)[:6] == pytest.approx([0.0011] * 6, abs=5e-5)


def test_the_example_of_shrout_and_fleiss() -> None:
    # Six targets, four judges (1979, table 2): ICC(1,1) = 0.17.
    ratings = np.array(
        [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float
    )
    assert inference.intraclass(ratings) == pytest.approx(0.17, abs=0.005)


def test_bootstrap_covers_a_known_mean() -> None:
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        low, high = inference.bootstrap_mean(rng.normal(1.0, 1.0, 40).tolist(), samples=1_000)
        inside += low <= 1.0 <= high
    assert 180 <= inside <= 198


def test_clustered_is_the_t_test_of_the_seeds() -> None:
    rng = np.random.default_rng(2)
    gaps = rng.normal(0.1, 0.2, (10, 1)) + rng.normal(0, 0.01, (10, 11))
    found = inference.clustered(gaps)
    expected = scipy.stats.ttest_1samp(gaps.mean(axis=1), 0.0)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    # Nearly all variance lies between seeds: eleven values of k tell hardly more than one.
    assert found.icc > 0.98
    assert found.worth == pytest.approx(1.0, abs=0.1)


def test_values_that_do_not_share_anything_are_worth_their_number() -> None:
    gaps = np.random.default_rng(3).normal(0, 1, (400, 11))
    assert inference.clustered(gaps).worth == pytest.approx(11, rel=0.25)


def test_seeds_as_the_unit_keep_their_level_where_the_papers_test_does_not() -> None:
    """No difference at all, but values of k that share a seed: how often is p below 0.05?"""
    rng = np.random.default_rng(4)
    naive = honest = 0
    for _ in range(300):
        gaps = rng.normal(0, 0.1, (10, 1)) + rng.normal(0, 0.03, (10, 11))
        naive += inference.wilcoxon(gaps[0].tolist())[1] < 0.05
        honest += inference.clustered(gaps).p < 0.05
    assert naive / 300 > 0.5
    assert honest / 300 < 0.09
