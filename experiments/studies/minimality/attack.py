"""The minimality attack: which labels agree with the classes that were published.

The intruder knows every quasi-identifier, the tree, the method, and how many records of each
published class have which label. The labels of one class are dealt out again at random, the classes
of the smallest subtree that holds it are formed again, and the world counts if this class comes out
again. Other classes keep their labels. What all worlds that count agree on is certain.

`form` is a twin of `verix_anon.client.release.join` for two labels, l = 2 and a person for each
record, fast enough for millions of worlds. A test holds it to the original.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from verix_anon.protocol.tree import Tree

__all__ = ["TRIES", "Believed", "Leaves", "Rule", "attack", "form", "ncp"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

ENOUGH = 150
"""With fewer worlds nothing is said of a class."""
WANTED = 200
TRIES = 30_000


class Rule(NamedTuple):
    """How leaves are joined."""

    k: int
    small: int
    """Nodes of at most so many leaves become one class if a child falls short; 0: none do."""
    chance: float
    """The chance that they do so though neither falls short."""


class Leaves(NamedTuple):
    """A tree in preorder, and what its leaves hold; columns are scaled to ranges of 1."""

    left: Ints
    right: Ints
    end: Ints
    """The node after each node's subtree."""
    first: Ints
    """The first leaf under each node; `first[end]` is the one after its last."""
    size: Ints
    """Records of each leaf."""
    low: Floats
    """(n_leaves, numbers)"""
    high: Floats
    sets: Words
    """(n_leaves, categories): which ones occur, as bits."""
    step: Floats
    """What one more category adds to the width, for each such column."""

    @classmethod
    def of(
        cls, tree: Tree, leaf: Ints, values: Sequence[Floats], is_category: Sequence[bool]
    ) -> "Leaves":
        """What the leaves hold of these records."""
        n = tree.n_leaves
        low, high, sets, step = list[Floats](), list[Floats](), list[Words](), list[float]()
        for of_row, is_set in zip(values, is_category, strict=True):
            there = ~np.isnan(of_row)
            if is_set:
                known, code = np.unique(of_row[there], return_inverse=True)
                words = np.zeros(n, np.uint64)
                bits = np.left_shift(np.uint64(1), code.astype(np.uint64))
                np.bitwise_or.at(words, leaf[there], bits)
                sets.append(words)
                step.append(1 / max(known.size - 1, 1))
                continue
            least, most = np.nanmin(of_row), np.nanmax(of_row)
            scaled = (of_row - least) / ((most - least) or 1.0)
            low.append(np.full(n, np.inf))
            high.append(np.full(n, -np.inf))
            np.minimum.at(low[-1], leaf[there], scaled[there])
            np.maximum.at(high[-1], leaf[there], scaled[there])
        return cls(
            left=tree.left.astype(np.int64),
            right=tree.right.astype(np.int64),
            end=tree.ends(),
            first=np.concatenate([[0], np.cumsum(tree.column < 0)]),
            size=np.bincount(leaf, minlength=n),
            low=np.ascontiguousarray(np.reshape(low, (-1, n)).T),
            high=np.ascontiguousarray(np.reshape(high, (-1, n)).T),
            sets=np.ascontiguousarray(np.array(sets, np.uint64).reshape(-1, n).T),
            step=np.array(step, np.float64),
        )


@nb.njit(cache=True)
def _width(leaves: Leaves, low: Floats, high: Floats, sets: Words, a: int, b: int) -> float:
    total = 0.0
    for j in range(low.shape[1]):
        total += max(max(high[a, j], high[b, j]) - min(low[a, j], low[b, j]), 0.0)
    for j in range(sets.shape[1]):
        word, n = sets[a, j] | sets[b, j], 0
        while word:
            word &= word - np.uint64(1)
            n += 1
        total += max(n - 1, 0) * leaves.step[j]
    return total


@nb.njit(cache=True)
def _take_up(
    size: Ints, positive: Ints, low: Floats, high: Floats, sets: Words, into: int, part: int
) -> None:
    size[into] += size[part]
    positive[into] += positive[part]
    size[part] = 0
    for j in range(low.shape[1]):
        low[into, j] = min(low[into, j], low[part, j])
        high[into, j] = max(high[into, j], high[part, j])
    for j in range(sets.shape[1]):
        sets[into, j] |= sets[part, j]


@nb.njit(cache=True)
def form(leaves: Leaves, positive: Ints, top: int, rule: Rule, is_drawn: Flags) -> Ints:
    """The class of each leaf under a node, named by one of its leaves; -1 if it is empty.

    `positive` are the records of each leaf with the second label. `is_drawn` says for each node of
    the tree whether chance makes it one class, if it is small.
    """
    begin, stop = leaves.first[top], leaves.first[leaves.end[top]]
    home = np.arange(begin, stop)
    size, pos = leaves.size[begin:stop].copy(), positive[begin:stop].copy()
    low, high = leaves.low[begin:stop].copy(), leaves.high[begin:stop].copy()
    sets = leaves.sets[begin:stop].copy()
    home[size == 0] = -1
    is_class = np.zeros(stop - begin, np.bool_)
    residue = np.full(leaves.end[top] - top, -1)
    for node in range(leaves.end[top] - 1, top - 1, -1):
        a, z = leaves.first[node] - begin, leaves.first[leaves.end[node]] - begin
        into, best = a, -1
        if leaves.left[node] >= 0:
            left = residue[leaves.left[node] - top]
            right = residue[leaves.right[node] - top]
            is_small = z - a <= rule.small
            if left < 0 and right < 0 and not (is_small and is_drawn[node]):
                continue
            mine, least = max(left, right), np.inf
            if (left < 0) != (right < 0) and not is_small:
                for c in range(a, z):
                    if is_class[c]:
                        union = _width(leaves, low, high, sets, mine, c)
                        own = _width(leaves, low, high, sets, c, c)
                        added = (size[mine] + size[c]) * union - size[c] * own
                        if added < least:
                            best, least = c, added
            if best >= 0:
                _take_up(size, pos, low, high, sets, best, mine)
                home[a:z][home[a:z] == begin + mine] = begin + best
                continue
            while into < z and size[into] == 0:
                into += 1
            for c in range(into + 1, z):
                if size[c]:
                    _take_up(size, pos, low, high, sets, into, c)
                    is_class[c] = False
            home[a:z][home[a:z] >= 0] = begin + into
        if into < z and size[into]:
            is_class[into] = size[into] >= rule.k and 0 < pos[into] < size[into]
            residue[node - top] = -1 if is_class[into] else into
    return home


@nb.njit(cache=True)
def ncp(leaves: Leaves, home: Ints) -> float:
    """The mean width of a value, by records."""
    low, high, sets = leaves.low.copy(), leaves.high.copy(), leaves.sets.copy()
    size, none = leaves.size.copy(), np.zeros(home.size, np.int64)
    for i in range(home.size):
        if home[i] >= 0 and home[i] != i:
            _take_up(size, none, low, high, sets, home[i], i)
    total = 0.0
    for i in range(home.size):
        if size[i]:
            total += size[i] * _width(leaves, low, high, sets, i, i)
    return float(total / size.sum() / (low.shape[1] + sets.shape[1]))


@nb.njit(cache=True)
def _holding(leaves: Leaves, mine: Ints) -> int:
    """The lowest node that holds all these leaves, which are in order."""
    top = 0
    while leaves.left[top] >= 0:
        if mine[-1] < leaves.first[leaves.right[top]]:
            top = leaves.left[top]
        elif mine[0] >= leaves.first[leaves.right[top]]:
            top = leaves.right[top]
        else:
            break
    return top


@nb.njit(cache=True)
def _worlds(
    leaves: Leaves, positive: Ints, rule: Rule, is_drawn: Flags, home: Ints, mine: Ints, tries: int
) -> tuple[int, Floats, Floats, Floats]:
    """Worlds in which the class of these leaves comes out again, and each leaf's shares in them.

    The shares are those of the second label: the mean, the least and the greatest.
    """
    top, slot = _holding(leaves, mine), home[mine[0]]
    begin, stop = leaves.first[top], leaves.first[leaves.end[top]]
    world, drawn = positive.copy(), is_drawn.copy()
    labels = np.zeros(leaves.size[mine].sum(), np.int8)
    labels[: positive[mine].sum()] = 1
    # Nobody but the owner knows what chance did within the class.
    is_own = np.zeros(leaves.end[top], np.bool_)
    for node in range(top, leaves.end[top]):
        inside = home[leaves.first[node] : leaves.first[leaves.end[node]]]
        is_own[node] = ((inside == slot) | (inside < 0)).all()
    own = np.flatnonzero(is_own)
    mean, least, most = np.zeros(mine.size), np.ones(mine.size), np.zeros(mine.size)
    n = 0
    for _ in range(tries):
        np.random.shuffle(labels)
        at = 0
        for i in mine:
            world[i] = labels[at : at + leaves.size[i]].sum()
            at += leaves.size[i]
        for inner in own:
            drawn[inner] = np.random.random() < rule.chance
        found = form(leaves, world, top, rule, drawn)
        name, is_same = found[mine[0] - begin], True
        for i in range(begin, stop):
            if home[i] >= 0 and (home[i] == slot) != (found[i - begin] == name):
                is_same = False
                break
        if is_same:
            n += 1
            share = world[mine] / leaves.size[mine]
            mean += share
            least, most = np.minimum(least, share), np.maximum(most, share)
            if n == WANTED:
                break
    return n, mean / max(n, 1), least, most


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """What the intruder concludes of each leaf's records."""

    published: Floats
    """The greater share of a label in the leaf's class."""
    is_certain: Flags
    belief: Floats
    """In the likelier label, of a record of the leaf."""
    is_decided: Flags
    """Whether enough worlds agreed with the class."""


@nb.njit(cache=True)
def _seed(seed: int) -> None:
    np.random.seed(seed)


def attack(
    leaves: Leaves,
    positive: Ints,
    rule: Rule,
    is_drawn: Flags,
    home: Ints,
    *,
    seed: int,
    most: float = 0.95,
    tries: int = TRIES,
) -> Believed:
    """Attack the classes of several leaves in which no label has a greater share than `most`."""
    _seed(seed)
    n = home.size
    published, belief = np.ones(n), np.zeros(n)
    is_certain, is_decided = np.zeros(n, np.bool_), np.ones(n, np.bool_)
    for slot in np.unique(home[home >= 0]):
        mine = np.flatnonzero(home == slot)
        share = positive[mine].sum() / leaves.size[mine].sum()
        published[mine] = belief[mine] = max(share, 1 - share)
        if mine.size == 1 or published[mine[0]] > most:
            continue
        found, mean, low, high = _worlds(leaves, positive, rule, is_drawn, home, mine, tries)
        is_decided[mine] = found >= ENOUGH
        if found >= ENOUGH:
            is_certain[mine] = (high == 0) | (low == 1)
            belief[mine] = np.maximum(mean, 1 - mean)
    return Believed(published, is_certain, belief, is_decided)
