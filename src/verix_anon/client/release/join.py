"""Join leaves into classes: a leaf that falls short goes to a neighbour in the tree (spec §12).

Proves: every class holds k people, and meets what the owner asks for the target and each
sensitive column; classes are disjoint and cover all genuine records.
Does not prove: that no other grouping loses less; each residue takes the best there is for it.
Hides: which part of a small node fell short of l, cap or t. Either may have, or chance joined both.

What a class loses of a quasi-identifier is its width, from 0, exact, to 1. The width of numbers
and dates is the range of the class over that of the column. The width of categories is the number
that occur in the class less one, over the number that occur in the table less one. Missing values,
NaN, are not measured.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from verix_anon.arrays import Flags, Floats, Ids, Ints, Words
from verix_anon.client.privacy_sheet import SLACK
from verix_anon.client.release.grouping import Grouped, Slots, expand
from verix_anon.client.release.privacy import (
    Attribute,
    ClassMembers,
    Distribution,
    distinct,
    distributions,
    overall,
)
from verix_anon.errors import NotAcceptedError
from verix_anon.protocol.tree import Tree

SMALL = 18
"""Nodes of at most so many leaves become one class if a child falls short."""
CHANCE = 0.02
"""How likely they do so though neither child falls short."""
MOST_BITS = 64
"""Categories that are kept as the bits of one word."""
MOST_ROWS = 1 << 22
"""Records that are tried or measured together, to bound the memory."""
NOT_THERE = -1
"""The code of a category that is missing."""
BITS_OF_BYTE = np.array([byte.bit_count() for byte in range(256)], np.uint8)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Demand:
    """What every class must hide of one column; the defaults ask for nothing."""

    column: Attribute
    least_values: int = 1
    """l: how many distinct values."""
    cap: float = 1.0
    """The greatest share of records, and of people, with the same value."""
    closeness: float = 1.0
    """t: the greatest distance to the whole table, by records and by people."""

    @property
    def bounds_shares(self) -> bool:
        """Whether it may hold of two classes and not of both as one."""
        return self.cap < 1 or self.closeness < 1

    def meets(self, found: Distribution) -> Flags:
        """For each class whether its shares are as asked for."""
        is_met = found.greatest_share() <= self.cap
        if self.closeness < 1:
            distance = found.distance(is_ordered=self.column.is_ordered)
            is_met &= distance <= self.closeness + SLACK
        return is_met


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Genuine:
    """The owner's records: where each one lies, and what it tells."""

    leaf_of_row: Ids
    person_of_row: Ints | None
    values: Callable[[], Iterable[Floats]]
    """Reads those of each quasi-identifier, one after the other."""
    is_category: Flags
    """(n_quasi,)"""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Joined:
    """Classes from left to right."""

    class_of_leaf: Ints
    """-1 for a leaf without a genuine record"""
    is_joined: Flags
    """For each class whether it was made of several leaves."""
    is_told: Flags
    """For each leaf whether its class tells that this part of it fell short."""

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.is_joined.size)


def join(
    tree: Tree, genuine: Genuine, k: int, demands: Sequence[Demand], chance: np.random.Generator
) -> Joined:
    """Valid classes, bottom up; `chance` is the owner's secret and decides what else is joined.

    Raises:
        NotAcceptedError: Not even all records together meet what is asked for.
    """
    demands = [demand for demand in demands if demand.least_values > 1 or demand.bounds_shares]
    place = np.arange(tree.n_leaves)
    if demands:
        tree, place = balanced(tree, genuine)
        genuine = replace(genuine, leaf_of_row=place[genuine.leaf_of_row].astype(np.int32))
    joining = _Joining(tree, genuine, k, demands)
    if demands:
        joining.is_small[:] = np.diff(tree.leaf_spans())[:, 0] <= SMALL
        joining.is_drawn[:] = joining.is_small & (chance.random(tree.n_nodes) < CHANCE)
    for nodes in reversed([*tree.levels()]):
        joining.rise(nodes[tree.column[nodes] >= 0])
    if joining.residue[0] >= 0 or not genuine.leaf_of_row.size:
        n_rows, people = genuine.leaf_of_row.size, genuine.person_of_row
        problem = too_much(n_rows, people, k, demands, is_tried=True)
        assert problem is not None, "all records together are the table, at no distance from it"
        raise NotAcceptedError(problem)
    slots = joining.slots
    number = np.cumsum(slots.count > 0) - 1
    n_leaves = np.bincount(slots.home[slots.grouped.count > 0], minlength=number.size)
    return Joined(
        class_of_leaf=np.where(slots.grouped.count > 0, number[slots.home], -1)[place],
        is_joined=n_leaves[slots.filled()] > 1,
        is_told=joining.is_told[place] & bool(demands),
    )


def balanced(tree: Tree, genuine: Genuine) -> tuple[Tree, Ints]:
    """The tree with small children moved beside others of their size, and each leaf's new number.

    It follows from the quasi-identifiers alone, so that it tells nothing of other columns.
    """
    shape = _Shape(tree, genuine)
    for nodes in reversed([*tree.levels()]):
        shape.rise(nodes[tree.column[nodes] >= 0])
    return shape.laid_out()


class _Shape:
    """A tree that is rearranged bottom up; `top` stands in the place of each of its nodes."""

    def __init__(self, tree: Tree, genuine: Genuine) -> None:
        self.tree, self.top = tree, np.arange(tree.n_nodes)
        self.leaves = np.flatnonzero(tree.column < 0)
        self.left, self.right = np.full((2, tree.n_nodes), -1)
        self.size, self.n_leaves = np.zeros((2, tree.n_nodes), np.int64)
        grouped = Grouped.by(genuine.leaf_of_row, tree.n_leaves)
        self.size[self.leaves], self.n_leaves[self.leaves] = grouped.count, 1
        # Categories are measured by their positions, as the tree does.
        self.widths: list[_Numbers] = []
        for values in genuine.values():
            found, ends = _Numbers.of(values, grouped), np.full((2, tree.n_nodes), np.nan)
            ends[:, self.leaves] = found.low, found.high
            self.widths.append(_Numbers(ends[0], ends[1], found.scale))

    def rise(self, nodes: Ints) -> None:
        """From the children of these nodes, all of one depth, to the nodes.

        A child that is much smaller goes down the other one, each time to where it adds less. The
        node, which is free then, takes it and what is there.
        """
        pair = self.top[np.array([nodes + 1, self.tree.right[nodes]])]
        large, small = np.where(self.size[pair[0]] >= self.size[pair[1]], pair, pair[::-1])
        moves = self._goes_down(small, large)
        self.top[nodes[moves]] = large[moves]
        at, above, is_left = large.copy(), large.copy(), moves.copy()
        moving = np.flatnonzero(moves)
        while moving.size:
            here, part = at[moving], small[moving]
            self._widen(here, part)
            left, right = self.left[here], self.right[here]
            above[moving] = here
            is_left[moving] = self._added(left, part) <= self._added(right, part)
            at[moving] = np.where(is_left[moving], left, right)
            moving = moving[self._goes_down(part, at[moving])]
        self.left[nodes], self.right[nodes] = at, small
        for parts in (at, small):
            self._widen(nodes, parts)
        self.left[above[moves & is_left]] = nodes[moves & is_left]
        self.right[above[moves & ~is_left]] = nodes[moves & ~is_left]

    def _goes_down(self, parts: Ints, nodes: Ints) -> Flags:
        return (self.left[nodes] >= 0) & (2 * self.size[parts] < self.size[nodes])

    def _widen(self, nodes: Ints, parts: Ints) -> None:
        for of in (self.size, self.n_leaves):
            of[nodes] += of[parts]
        for each in self.widths:
            each.take_up(nodes, parts)

    def _added(self, nodes: Ints, parts: Ints) -> Floats:
        size, width = self.size[nodes], _total_width(self.widths, nodes, nodes)
        union = _total_width(self.widths, nodes, parts)
        return (size + self.size[parts]) * union - size * width

    def laid_out(self) -> tuple[Tree, Ints]:
        """The tree in preorder, and each leaf's new number."""
        place, level = np.zeros(self.top.size, np.int64), self.top[:1]
        while level.size:
            level = level[self.left[level] >= 0]
            left, right = self.left[level], self.right[level]
            place[left] = place[level] + 1
            place[right] = place[left] + 2 * self.n_leaves[left] - 1
            level = np.concatenate([left, right])
        node = np.argsort(place)
        is_leaf = self.left[node] < 0
        left, right = (np.where(is_leaf, -1, place[of[node]]) for of in (self.left, self.right))
        number = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32)
        found = Tree(
            column=np.where(is_leaf, np.int32(-1), np.int32(0)),
            threshold=np.zeros(node.size),
            left=left.astype(np.int32),
            right=right.astype(np.int32),
            leaf=number,
        )
        return found, number[place[self.leaves]].astype(np.int64)


class _Joining:
    """The classes and residues under the nodes that are done; a slot is named by a leaf."""

    def __init__(self, tree: Tree, genuine: Genuine, k: int, demands: Sequence[Demand]) -> None:
        self.tree = tree
        self.is_small, self.is_drawn = np.zeros((2, tree.n_nodes), np.bool_)
        self.people = genuine.person_of_row
        # k and l stay met when a class grows, so that they are counted once, for each node.
        ends = tree.ends()
        self.is_enough = _distinct_below(tree, ends, genuine.leaf_of_row, self.people) >= k
        for demand in demands:
            below = _distinct_below(tree, ends, genuine.leaf_of_row, demand.column.codes)
            self.is_enough &= below >= demand.least_values
        self.shares = [
            (demand, overall(demand.column.codes, self.people))
            for demand in demands
            if demand.bounds_shares
        ]
        grouped = Grouped.by(genuine.leaf_of_row, tree.n_leaves)
        self.slots = Slots(grouped)
        self.widths = _column_widths(genuine.values(), genuine.is_category, grouped, self.slots)
        self.width = np.zeros(tree.n_leaves)
        self._measure(self.slots.filled())
        is_leaf = tree.column < 0
        self.first, self.last = tree.leaf_spans().T
        self.residue = np.full(tree.n_nodes, -1)
        self.is_class, self.is_told = np.zeros((2, tree.n_leaves), np.bool_)
        nodes = np.flatnonzero(is_leaf)[self.slots.filled()]
        self._settle(nodes, self.slots.filled())

    def rise(self, nodes: Ints) -> None:
        """From the children of these nodes, all of one depth, to the nodes."""
        left, right = self.residue[nodes + 1], self.residue[self.tree.right[nodes]]
        residue = np.maximum(left, right)
        self.residue[nodes] = residue
        is_alone = ((left < 0) != (right < 0)) & ~self.is_small[nodes]
        chosen = np.full(nodes.size, -1)
        chosen[is_alone] = self._choose(residue[is_alone], nodes[is_alone])
        joins = chosen >= 0
        self._tell(residue[joins])
        self._take_up(chosen[joins], residue[joins])
        self.residue[nodes[joins]] = -1
        # What is left is small, has no class beside it, or none that would take it: all is one.
        whole = nodes[(residue >= 0) & ~joins]
        self._tell(self._become_one(whole)[~self.is_small[whole]])
        drawn = nodes[(residue < 0) & self.is_drawn[nodes]]
        filled, begin, end = self._filled(drawn)
        drawn, begin, end = drawn[begin < end], begin[begin < end], end[begin < end]
        owner, place = expand(begin, end)
        self._become_one(drawn[self._meets(owner, filled[place])])

    def _filled(self, nodes: Ints) -> tuple[Ints, Ints, Ints]:
        """The slots that hold records, and where those under each node begin and end."""
        filled = self.slots.filled()
        begin, end = (np.searchsorted(filled, of[nodes]) for of in (self.first, self.last))
        return filled, begin, end

    def _tell(self, slots: Ints) -> None:
        is_one = np.zeros(self.slots.home.size, np.bool_)
        is_one[slots] = True
        self.is_told |= is_one[self.slots.home]

    def _become_one(self, nodes: Ints) -> Ints:
        """All under each node is in one slot from here on; these slots."""
        filled, begin, end = self._filled(nodes)
        owner, others = expand(begin + 1, end)
        self.is_class[filled[others]] = False
        self._take_up(filled[begin][owner], filled[others])
        self._settle(nodes, filled[begin])
        return filled[begin]

    def _settle(self, nodes: Ints, slots: Ints) -> None:
        """All under each node is in one slot: a class if that is valid, else a residue."""
        is_valid = self.is_enough[nodes]
        is_valid[is_valid] = self._meets(np.arange(is_valid.sum()), slots[is_valid])
        self.is_class[slots] = is_valid
        self.residue[nodes] = np.where(is_valid, -1, slots)

    def _take_up(self, into: Ints, parts: Ints) -> None:
        self.slots.take_up(into, parts)
        for each in self.widths:
            each.take_up(into, parts)
        self.width[parts] = 0.0
        self._measure(into)

    def _measure(self, slots: Ints) -> None:
        self.width[slots] = _total_width(self.widths, slots, slots)

    def _found(self, owner: Ints, slots: Ints) -> Iterator[tuple[Demand, Distribution]]:
        """How the columns with bounded shares are distributed over each owner's slots.

        Each by records, and by people if they are told apart: what is asked for is of both.
        """
        if not (self.shares and owner.size):
            return
        of_row, rows = self.slots.rows(owner, slots)
        people = None if self.people is None else self.people[rows]
        members = ClassMembers(of_row, int(owner.max()) + 1, people)
        for demand, shares in self.shares:
            for found in distributions(members, demand.column.codes[rows], shares):
                yield demand, found

    def _meets(self, owner: Ints, slots: Ints) -> Flags:
        """Whether each owner's slots, as one class, hold what is asked for; owners count from 0."""
        is_met = np.ones(int(owner.max(initial=-1)) + 1, np.bool_)
        for demand, found in self._found(owner, slots):
            is_met &= demand.meets(found)
        return is_met

    def _choose(self, residues: Ints, nodes: Ints) -> Ints:
        """The class under each node that its residue joins, -1 if no union is valid."""
        classes = np.flatnonzero(self.is_class)
        begin = np.searchsorted(classes, self.first[nodes])
        owner, place = expand(begin, np.searchsorted(classes, self.last[nodes]))
        found, residue = classes[place], residues[owner]
        count, width = self.slots.count, self.width
        union = _total_width(self.widths, residue, found)
        added = (count[residue] + count[found]) * union - count[found] * width[found]
        # Stable: the first among equals.
        order = np.lexsort((added, owner))
        return self._first_valid(residues, owner[order], found[order])

    def _first_valid(self, residues: Ints, owner: Ints, found: Ints) -> Ints:
        """For each residue the first of the classes found for it that may take it, or -1."""
        chosen = np.full(residues.size, -1)
        is_hopeful = self._is_hopeful(residues, owner, found)
        owner, found = owner[is_hopeful], found[is_hopeful]
        most = 1
        while owner.size:
            # One of each, then more and more at once: most often the first will do.
            is_first = np.diff(owner, prepend=-1) > 0
            rank = np.arange(owner.size) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
            tried = np.flatnonzero(rank < most)
            pair = np.arange(tried.size)
            slots = np.concatenate([residues[owner[tried]], found[tried]])
            valid = tried[self._meets(np.concatenate([pair, pair]), slots)]
            # Of several the first is written last.
            chosen[owner[valid[::-1]]] = found[valid[::-1]]
            rest = (rank >= most) & (chosen[owner] < 0)
            n_rows = int(self.slots.count[residues[np.unique(owner[rest])]].sum())
            most = max(1, min(2 * most, MOST_ROWS // max(n_rows, 1)))
            owner, found = owner[rest], found[rest]
        return chosen

    def _is_hopeful(self, residues: Ints, owner: Ints, found: Ints) -> Flags:
        """Whether a class may be large enough to make good what is wrong with the residue.

        A residue of n records, or people, and a class of c records have at most n + c of them. So
        a value's share in both is at least n/(n + c) of that in the residue. The class adds or
        changes at most c of them, so that at most c/n of the residue's distribution moves, and
        nothing moves farther than 1: their distance to the table is at least the residue's, less
        c/n.
        """
        is_hopeful = np.ones(owner.size, np.bool_)
        for demand, now in self._found(np.arange(residues.size), residues):
            n, c = now.size[owner], self.slots.count[found]
            is_hopeful &= n / (n + c) * now.greatest_share()[owner] <= demand.cap + SLACK
            distance = now.distance(is_ordered=demand.column.is_ordered)[owner]
            is_hopeful &= distance - c / n <= demand.closeness + 2 * SLACK
        return is_hopeful


def too_much(
    n_rows: int, people: Ints | None, k: int, demands: Sequence[Demand], *, is_tried: bool = False
) -> str | None:
    """What not even all records together meet, and how much would do; None if they meet it all.

    `people` is the person of each record. None: each record is a person. The share of people with
    a value may be smaller in every class than in the table, because each class has only some of a
    person's records. So it counts only if `is_tried`: no classes were found.
    """
    n_people = n_rows if people is None else distinct(people).size
    if n_people < k:
        return f"the table holds {n_people:,} people, fewer than k = {k:,}; choose a smaller k"
    for demand in demands:
        name, codes = demand.column.name, demand.column.codes
        shares = overall(codes, people)
        if shares[0].size < demand.least_values:
            return (
                f"column {name!r} has {shares[0].size:,} values in the whole table, so that no"
                f" class has {demand.least_values:,}; ask for a smaller l"
            )
        whole = ClassMembers(np.zeros_like(codes), 1, people)
        greatest = [float(d.greatest_share()[0]) for d in distributions(whole, codes, shares)]
        if (share := max(greatest if is_tried else greatest[:1])) > demand.cap:
            who = "records" if share == greatest[0] else "people"
            return (
                f"{share:.1%} of the {who} of the whole table have the same value of column"
                f" {name!r}, and no classes keep to {demand.cap:.1%}; ask for a greater cap"
            )
    return None


def _distinct_below(tree: Tree, end: Ints, leaf_of_row: Ids, names: Ints | None) -> Ints:
    """How many distinct names have a record under each node; None: each has one of its own.

    A name with records in several leaves counts once in each, and once less at every node
    where two neighbouring ones of these leaves meet; sums over subtrees are then distinct counts.
    """
    node_of_leaf = np.flatnonzero(tree.column < 0)
    n_leaves = node_of_leaf.size
    weight = np.zeros(tree.n_nodes, np.int64)
    if names is None:
        weight[node_of_leaf] = np.bincount(leaf_of_row, minlength=n_leaves)
    else:
        name, leaf = np.divmod(distinct(names * n_leaves + leaf_of_row), n_leaves)
        weight[node_of_leaf] = np.bincount(leaf, minlength=n_leaves)
        is_same = name[1:] == name[:-1]
        left, right = node_of_leaf[leaf[:-1][is_same]], node_of_leaf[leaf[1:][is_same]]
        weight -= np.bincount(_meeting_nodes(tree, end, left, right), minlength=tree.n_nodes)
    below: Ints = np.concatenate([[0], np.cumsum(weight)])
    found: Ints = below[end] - below[:-1]
    return found


def _meeting_nodes(tree: Tree, end: Ints, left: Ints, right: Ints) -> Ints:
    """The lowest common ancestor of each pair of nodes, by climbing from the left one."""
    inner = np.flatnonzero(tree.column >= 0)
    parent = np.zeros(tree.n_nodes, np.int64)
    parent[tree.left[inner]] = parent[tree.right[inner]] = inner
    node = left.copy()
    rising = np.flatnonzero(end[node] <= right)
    while rising.size:
        node[rising] = parent[node[rising]]
        rising = rising[end[node[rising]] <= right[rising]]
    return node


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    low: Floats
    high: Floats
    scale: float
    """Half the column's range, for halves do not overflow; 1 if there is none."""

    @classmethod
    def of(cls, values: Floats, grouped: Grouped) -> "_Numbers":
        laid = values[grouped.order]
        low = grouped.reduced(np.fmin, laid, np.nan)
        high = grouped.reduced(np.fmax, laid, np.nan)
        scale = float(np.fmax.reduce(high)) / 2 - float(np.fmin.reduce(low)) / 2
        return cls(low, high, scale or 1.0)

    def together(self, first: Ints, second: Ints) -> Floats:
        high = np.fmax(self.high[first], self.high[second])
        low = np.fmin(self.low[first], self.low[second])
        # NaN where neither has a value.
        width: Floats = np.fmax((high / 2 - low / 2) / self.scale, 0.0)
        return width

    def take_up(self, into: Ints, parts: Ints) -> None:
        np.fmin.at(self.low, into, self.low[parts])
        np.fmax.at(self.high, into, self.high[parts])


@dataclass(frozen=True, slots=True, eq=False)
class _Few:
    """Categories that fit into the bits of a word."""

    words: Words
    size: int

    @classmethod
    def of(cls, codes: Ints, size: int, grouped: Grouped) -> "_Few":
        bits = np.left_shift(np.uint64(1), np.maximum(codes, 0).astype(np.uint64))
        bits[codes == NOT_THERE] = 0
        return cls(grouped.reduced(np.bitwise_or, bits[grouped.order], 0), size)

    def together(self, first: Ints, second: Ints) -> Floats:
        words = self.words[first] | self.words[second]
        n_bits = BITS_OF_BYTE[words.view(np.uint8).reshape(-1, 8)].sum(axis=1, dtype=np.int64)
        return _share(n_bits, self.size)

    def take_up(self, into: Ints, parts: Ints) -> None:
        np.bitwise_or.at(self.words, into, self.words[parts])


@dataclass(frozen=True, slots=True, eq=False)
class _Many:
    """Categories that are counted from the records each time."""

    codes: Ints
    size: int
    slots: Slots

    def together(self, first: Ints, second: Ints) -> Floats:
        counts = np.empty(first.size, np.int64)
        done = np.cumsum(self.slots.count[first] + self.slots.count[second])
        begin = 0
        while begin < first.size:
            before = done[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(done, before + MOST_ROWS)))
            number = np.arange(min(end, first.size) - begin)
            pairs = np.concatenate([first[begin:end], second[begin:end]])
            pair, rows = self.slots.rows(np.concatenate([number, number]), pairs)
            codes = self.codes[rows]
            keys = distinct((pair * self.size + codes)[codes != NOT_THERE])
            counts[begin:end] = np.bincount(keys // self.size, minlength=number.size)
            begin = end
        return _share(counts, self.size)

    def take_up(self, into: Ints, parts: Ints) -> None:
        """The slots know their records."""


Widths = _Numbers | _Few | _Many
"""One quasi-identifier's width of every slot, and of two slots as one class."""


def _column_widths(
    values: Iterable[Floats], is_category: Flags, grouped: Grouped, slots: Slots
) -> list[Widths]:
    """The widths of every quasi-identifier, of slots that are groups of records to begin with."""
    found: list[Widths] = []
    for of_row, is_set in zip(values, is_category, strict=True):
        if not is_set:
            found.append(_Numbers.of(of_row, grouped))
            continue
        is_there = ~np.isnan(of_row)
        positions = of_row[is_there].astype(np.int64)
        occurs = np.bincount(positions) > 0
        codes, size = np.full(of_row.size, NOT_THERE), int(occurs.sum())
        codes[is_there] = (np.cumsum(occurs) - 1)[positions]
        few = size <= MOST_BITS
        found.append(_Few.of(codes, size, grouped) if few else _Many(codes, size, slots))
    return found


def _share(n_categories: Ints, size: int) -> Floats:
    return np.maximum(n_categories - 1, 0) / max(size - 1, 1)


def _total_width(widths: Sequence[Widths], first: Ints, second: Ints) -> Floats:
    """The widths of all quasi-identifiers, added up."""
    found = np.zeros(first.size)
    for each in widths:
        found += each.together(first, second)
    return found
