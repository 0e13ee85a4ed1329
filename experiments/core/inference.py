"""Paired comparisons: rank tests, effect sizes, bootstrap, and runs that share a seed.

The paper tests the 11 values of k of one split as if they were 11 independent experiments. They
share the sample, the split and most of the model, so `clustered` takes a seed as the unit; for
a balanced design that is the test of a mixed model with a random intercept for each seed.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import scipy

from experiments.core.stats import Z95, Floats

__all__ = [
    "Clustered",
    "benjamini_hochberg",
    "bootstrap_mean",
    "clustered",
    "cohens_d",
    "intraclass",
    "paired",
    "wilcoxon",
]


def wilcoxon(differences: Sequence[float]) -> tuple[float, float]:
    """The signed-rank statistic W and its two-sided p; ties with zero are left out.

    Exact up to 50 differences without ties, else by the normal approximation; (0, 1) where
    nothing differs.
    """
    nonzero = [difference for difference in differences if difference != 0]
    if not nonzero:
        return 0.0, 1.0
    found = scipy.stats.wilcoxon(nonzero)
    return float(found.statistic), float(found.pvalue)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted so that those below q have a false discovery rate of at most q."""
    p = np.asarray(p_values, float)
    order = np.argsort(p)
    scaled = p[order] * p.size / np.arange(1, p.size + 1)
    adjusted = np.empty(p.size)
    # Never smaller than that of a smaller p: the running least from the greatest down.
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted.tolist()


def cohens_d(differences: Sequence[float]) -> tuple[float, float, float]:
    """Cohen's d of paired differences, and its interval from the large-sample standard error."""
    x = np.asarray(differences, float)
    spread = x.std(ddof=1)
    if spread == 0:
        return 0.0, 0.0, 0.0
    d = float(x.mean() / spread)
    half = Z95 * np.sqrt(1 / x.size + d * d / (2 * x.size))
    return d, float(d - half), float(d + half)


def bootstrap_mean(
    values: Sequence[float], *, samples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of a mean."""
    x = np.asarray(values, float)
    rng = np.random.default_rng(seed)
    means = x[rng.integers(0, x.size, (samples, x.size))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def paired(differences: Sequence[float]) -> tuple[float, float, float]:
    """The mean of independent differences, two or more, and its 95 % t interval."""
    x = np.asarray(differences, float)
    half = float(scipy.stats.t.ppf(0.975, x.size - 1)) * float(x.std(ddof=1)) / np.sqrt(x.size)
    return float(x.mean()), float(x.mean() - half), float(x.mean() + half)


def intraclass(groups: Floats) -> float:
    """ICC(1): the share of variance that lies between groups, a row each; at least 0."""
    n, m = groups.shape
    between = m * groups.mean(axis=1).var(ddof=1)
    within = groups.var(axis=1, ddof=1).mean()
    total = between + (m - 1) * within
    return max(0.0, float((between - within) / total)) if n > 1 and total > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustered:
    """A mean difference where only seeds are independent."""

    mean: float
    low: float
    high: float
    """The 95 % t interval over the seeds' means."""
    p: float
    """The two-sided t-test over the seeds' means."""
    p_rank: float
    """The signed-rank test over the same."""
    bootstrap_low: float
    bootstrap_high: float
    """10,000 samples of whole seeds."""
    d: float
    positive: int
    """In how many seeds the mean difference is above 0."""
    seeds: int
    icc: float
    worth: float
    """To how many independent values the values of one seed amount."""

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return asdict(self)


def clustered(differences: Floats) -> Clustered:
    """The mean of differences with a row per seed, each seed counting once."""
    n_seeds, n_values = differences.shape
    of_seed = differences.mean(axis=1)
    mean, spread = float(of_seed.mean()), float(of_seed.std(ddof=1))
    half = float(scipy.stats.t.ppf(0.975, n_seeds - 1)) * spread / np.sqrt(n_seeds)
    icc = intraclass(differences)
    low, high = bootstrap_mean(of_seed.tolist())
    return Clustered(
        mean=mean,
        low=mean - half,
        high=mean + half,
        p=float(scipy.stats.ttest_1samp(of_seed, 0.0).pvalue) if spread > 0 else 1.0,
        p_rank=wilcoxon(of_seed.tolist())[1],
        bootstrap_low=low,
        bootstrap_high=high,
        d=cohens_d(of_seed.tolist())[0],
        positive=int((of_seed > 0).sum()),
        seeds=n_seeds,
        icc=icc,
        worth=n_values / (1 + (n_values - 1) * icc),
    )
