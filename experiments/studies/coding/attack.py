"""A provider that puts names to coded columns and values to positions, from what else it knows.

Coding keeps the order of values, how often each occurs, and the joint distribution. So whoever
knows a sample of the population knows what to look for: the known values, in order, are put to
positions so that what is known is most likely, and columns are named by how likely that is and
by their rank correlations with the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import scipy

__all__ = ["Known", "Seen", "align", "name_columns", "place_values"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_PLACES = 512
"""Positions that are told apart where columns are only named: it is quick, and enough."""


NEARNESS = 5.0
"""What a quantile counts, by a record's variance; neighbours err alike, so it is less than n."""
STARTS = 30


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Known:
    """What the provider knows of one column by its name."""

    values: Floats
    """Those that occur, ascending."""
    count: Floats
    """How often each occurs."""
    is_category: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Seen:
    """What it sees of one coded column: how often every position occurs."""

    count: Floats

    @property
    def share(self) -> Floats:
        """That of every position, with half a record more at each: nothing is impossible."""
        more = self.count + 0.5
        share: Floats = more / more.sum()
        return share


def align(known: Floats, share: Floats, *, nearness: float = 0.0) -> tuple[float, Ints]:
    """The positions of known values, in order, under which their counts are most likely.

    `share` is that of every position, of which there are at least as many as values. Returns the
    logarithm of the likelihood and the position of each value. Where values occur once each the
    counts say little; `nearness` is what it is worth that a value lies near its quantile.
    """
    best = np.full(known.size + 1, -np.inf)
    best[0] = 0.0
    takes = np.empty((share.size, known.size), bool)
    n, has, below = known.sum(), np.log(share), np.cumsum(share) - share / 2
    quantile = (np.cumsum(known) - known / 2) / n
    near = nearness * known / (quantile * (1 - quantile))
    for i, log_share in enumerate(has):
        taken = best[:-1] + known * log_share - near * (quantile - below[i]) ** 2
        takes[i] = taken > best[1:]
        best[1:] = np.where(takes[i], taken, best[1:])
    place, j = np.empty(known.size, np.int64), known.size - 1
    for i in range(share.size - 1, -1, -1):
        if j >= 0 and takes[i, j]:
            place[j], j = i, j - 1
    return float(best[-1]), place


def _groups(count: Floats, most: int) -> Ints:
    """The group of each value where there may be only so many: by quantiles, as `--places` does."""
    if count.size <= most:
        return np.arange(count.size)
    below = np.cumsum(count) - count
    return np.unique(np.floor(most * below / count.sum()), return_inverse=True)[1]


def _likelihood(known: Known, seen: Seen) -> float:
    """How likely the known records are if this is their column, as a logarithm."""
    place = _groups(seen.count, MOST_PLACES)
    # A value has one of the positions that are taken together here.
    share = np.bincount(place, weights=seen.share) / np.bincount(place)
    group = _groups(known.count, share.size)
    count = np.bincount(group, weights=known.count).astype(np.float64)
    within = float(known.count @ np.log(known.count / count[group]))
    return align(count, share)[0] + within


def place_values(known: Known, seen: Seen) -> Floats:
    """The value that each position most likely stands for; NaN for categories nobody knows of."""
    group = _groups(known.count, seen.count.size)
    count = np.bincount(group, weights=known.count).astype(np.float64)
    place = align(count, seen.share, nearness=NEARNESS)[1]
    # Of the values of a group the most frequent is the best guess.
    order = np.lexsort((-known.count, group))
    value = known.values[order[np.searchsorted(group[order], np.arange(count.size))]]
    found = np.full(seen.count.size, np.nan)
    found[place] = value
    if not known.is_category:
        found = np.interp(np.arange(found.size), place, value)
        if np.array_equal(known.values, np.round(known.values)):
            found = np.round(found)
    return found


def name_columns(
    known: Mapping[str, Known], seen: Sequence[Seen], knows: Floats, sees: Floats
) -> list[str]:
    """The likeliest name of every coded column; `knows` and `sees` are records, a row each."""
    names = list(known)
    fits = np.array([[_likelihood(known[name], column) for name in names] for column in seen])
    ours, theirs = _correlations(sees), _correlations(knows)
    # A correlation of n records is off by about 1/sqrt(n).
    n = min(len(knows), len(sees))

    def worth(order: Ints) -> float:
        apart = ((ours - theirs[np.ix_(order, order)]) ** 2).sum() / 2
        return float(fits[np.arange(len(order)), order].sum() - n / 2 * apart)

    # Whatever their order, a column's correlations with the others are like those of its name.
    alike = scipy.spatial.distance.cdist(
        np.sort(ours, axis=1), np.sort(theirs, axis=1), "sqeuclidean"
    )
    starts = [scipy.optimize.linear_sum_assignment(n / 2 * alike - fits)[1]]
    rng = np.random.default_rng(0)
    starts += [rng.permutation(len(names)) for _ in range(STARTS)]
    chosen = max((_climb(start, worth) for start in starts), key=worth)
    return [names[j] for j in chosen]


def _climb(chosen: Ints, worth: Callable[[Ints], float]) -> Ints:
    """Exchange two names as long as that is better."""
    best, is_better = worth(chosen), True
    while is_better:
        is_better = False
        for a, b in combinations(range(len(chosen)), 2):
            other = chosen.copy()
            other[[a, b]] = chosen[[b, a]]
            if (now := worth(other)) > best:
                chosen, best, is_better = other, now, True
    return chosen


def _correlations(records: Floats) -> Floats:
    """Spearman's, 0 where a column is constant."""
    ranks = scipy.stats.rankdata(records, axis=0)
    ranks -= ranks.mean(axis=0)
    norm = np.linalg.norm(ranks, axis=0)
    found: Floats = ranks.T @ ranks / np.maximum(np.outer(norm, norm), 1e-12)
    return found
