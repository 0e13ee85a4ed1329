"""Deduce what several releases tell an intruder: which values of a person are still possible.

The intruder knows in which class of each release every person lies, and that a person keeps one
value of a column. Each class publishes its values, one for each record, so a value is excluded for
a person if no complete assignment of the class's values to its records gives it to that person.
What is excluded in one class is excluded in all classes of that person; this is repeated until
nothing changes (spec §15).

Within a class the answer is exact, if each person has one record there. The true values are one
complete assignment. Any other one moves values along cycles, from the true value of a record to a
value that is still possible for it. So a value is possible if it lies on a cycle with the true one:
in the same strongly connected component of a graph whose nodes are the values of the class.

Does not find: all that follows from a person's records having one value; and what follows only from
several classes considered together. No method that is known finds that for large tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Flags, Ints
from verix_anon.client.release.grouping import expand
from verix_anon.client.release.privacy import dense, distinct
from verix_anon.errors import NotAcceptedError
from verix_anon.machine import check_memory

EDGE_BYTES = 60
"""Memory for one value that is possible for one record, as measurement has it."""


@dataclass(frozen=True, slots=True, eq=False)
class SeenRecords:
    """The records of all releases as the intruder sees them, and their true values."""

    person: Ints
    of_class: Ints
    """Classes of different releases have different numbers."""
    release: Ints
    """Counts from 0."""
    values: Mapping[str, Ints]
    """The codes of each column that is chained; a value has one code in all releases."""

    @classmethod
    def of(cls, releases: Sequence["SeenRecords"]) -> "SeenRecords":
        """Several releases as one, whose classes are numbered from 0 in each."""
        n_classes = [int(each.of_class.max(initial=-1)) + 1 for each in releases]
        begin = np.cumsum([0, *n_classes])
        return cls(
            person=np.concatenate([each.person for each in releases]),
            of_class=np.concatenate(
                [e.of_class + b for e, b in zip(releases, begin, strict=False)]
            ),
            release=np.repeat(np.arange(len(releases)), [e.person.size for e in releases]),
            values={
                name: np.concatenate([each.values[name] for each in releases])
                for name in releases[0].values
            },
        )

    def left(self, column: str, *, is_quick: bool = False) -> Ints:
        """For each record how many values of a column are possible for its person.

        If it `is_quick`, only pairs with the last release are looked at, and more may be left.
        """
        units, values = self._units(self.values[column]), self.values[column]
        return possible(units, self.of_class, self.release, values, is_quick=is_quick)[units]

    def n_changing(self, column: str) -> int:
        """How many people have several values of a column; their records are not chained."""
        pairs = distinct(self.person * self._width(column) + self.values[column])
        return int((np.bincount(pairs // self._width(column)) > 1).sum())

    def _width(self, column: str) -> int:
        return int(self.values[column].max(initial=0)) + 1

    def _units(self, values: Ints) -> Ints:
        """A number for each record's person, or for the record if the person's value changes."""
        size = int(self.person.max(initial=0)) + 1
        low, high = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        np.minimum.at(low, self.person, values)
        np.maximum.at(high, self.person, values)
        own = size + np.arange(self.person.size)
        return dense(np.where((low == high)[self.person], self.person, own))


def possible(
    unit: Ints, of_class: Ints, release: Ints, value: Ints, *, is_quick: bool = False
) -> Ints:
    """How many values are possible for each unit, a person with one value.

    Args:
        unit: The unit of each record, from 0 without gaps.
        of_class: The class of each record; a class is in one release.
        release: The release of each record, from 0.
        value: The true value of each record; all records of a unit have the same one.
        is_quick: Look only at pairs with the last release.

    Raises:
        NotAcceptedError: There is not the memory for it.
    """
    if not unit.size:
        return np.empty(0, np.int64)
    edges = _Edges.of(unit, of_class, value)
    pairs = _Pairs(edges, unit, of_class, release, value)
    is_done = False
    while not is_done:
        while edges.exclude():
            pass
        is_done = not pairs.exclude(is_quick=is_quick)
    return edges.n_possible()


class _Edges:
    """Values that are possible for units (pairs), and where each occurs in the unit's classes."""

    def __init__(self, unit: Ints, value: Ints, n_classes: int) -> None:
        self.unit, self.value = unit, value
        self.is_possible = np.ones(unit.size, np.bool_)
        self.is_changed = np.zeros(n_classes, np.bool_)
        self.pair, self.node, self.true_node, self.of_class = np.empty((4, 0), np.int64)
        # The classes of each unit.
        self.class_of, self.begin = np.empty((2, 0), np.int64)

    @classmethod
    def of(cls, unit: Ints, of_class: Ints, value: Ints) -> "_Edges":
        """All values that each unit's smallest class has, as far as its other classes have them."""
        width, n_units = int(value.max()) + 1, int(unit.max()) + 1
        # A node is a value of a class, and a membership a unit in a class; both are in order.
        nodes, n_records = np.unique(of_class * width + value, return_counts=True)
        n_values = np.bincount(nodes // width, minlength=int(of_class.max()) + 1)
        first_node = np.cumsum(n_values) - n_values
        members, n_own = np.unique(unit * n_values.size + of_class, return_counts=True)
        unit_of, class_of = np.divmod(members, n_values.size)
        true_value = np.empty(n_units, np.int64)
        true_value[unit] = value
        begin = np.searchsorted(unit_of, np.arange(n_units + 1))
        smallest = np.lexsort((n_values[class_of], unit_of))[begin[:-1]]
        from_class = class_of[smallest]
        n_edges = int((n_values[from_class] * np.diff(begin)).sum())
        check_memory(n_edges * EDGE_BYTES, "the deduction over all releases", NotAcceptedError)
        owner, at = expand(first_node[from_class], first_node[from_class] + n_values[from_class])
        found = cls(owner, nodes[at] % width, n_values.size)
        found.pair, member = expand(begin[owner], begin[owner + 1])
        wanted = class_of[member] * width + found.value[found.pair]
        node = np.minimum(np.searchsorted(nodes, wanted), nodes.size - 1)
        # A person with several records in a class needs as many of a value.
        is_there = (nodes[node] == wanted) & (n_records[node] >= n_own[member])
        found.is_possible[found.pair[~is_there]] = False
        found.class_of, found.begin = class_of, begin
        is_left = found.is_possible[found.pair]
        found.pair, found.node, member = found.pair[is_left], node[is_left], member[is_left]
        found.of_class = class_of[member]
        true = found.of_class * width + true_value[owner[found.pair]]
        found.true_node = np.searchsorted(nodes, true)
        # Where everything is still possible for everybody, nothing can be excluded.
        n_left = found.n_possible()
        found.is_changed[class_of[n_left[unit_of] < n_values[class_of]]] = True
        return found

    def n_possible(self) -> Ints:
        """How many values are possible for each unit."""
        return np.bincount(self.unit[self.is_possible], minlength=self.begin.size - 1)

    def exclude(self) -> bool:
        """Exclude what the classes that changed exclude; whether there was anything."""
        asked = np.flatnonzero(self.is_changed[self.of_class] & self.is_possible[self.pair])
        excluded = self.pair[asked[_apart(self.true_node[asked], self.node[asked])]]
        self.is_changed[:] = False
        self.drop(excluded)
        return bool(excluded.size)

    def drop(self, pairs: Ints) -> None:
        """Exclude these pairs, and look at the classes of their units again."""
        self.is_possible[pairs] = False
        units = distinct(self.unit[pairs])
        _, member = expand(self.begin[units], self.begin[units + 1])
        self.is_changed[self.class_of[member]] = True


class _Pairs:
    """Every two releases side by side: what the difference of their classes tells.

    For one value and two releases, a person is an edge from the class in the first to that in the
    second; who is not in one of them ends at a node where all is free. In another world some people
    lose the value and others get it, as many in each class. With edges of those who have it in one
    direction and of those who may get it in the other, such a change is made of directed cycles.
    """

    def __init__(
        self, edges: _Edges, unit: Ints, of_class: Ints, release: Ints, value: Ints
    ) -> None:
        self.edges = edges
        self.n_possible = np.full(edges.begin.size - 1, -1)
        """When they were last looked at."""
        # Of each candidate pair its value, and whether it is the true one.
        true = np.empty(edges.begin.size - 1, np.int64)
        true[unit] = value
        self.is_true = edges.value == true[edges.unit]
        self.first = np.searchsorted(edges.unit, np.arange(edges.begin.size))
        # The records of a unit in a release are numbered, and each is an edge.
        self.of_release = []
        for number in range(int(release.max()) + 1):
            rows = np.flatnonzero(release == number)
            rows = rows[np.argsort(unit[rows], kind="stable")]
            is_first = np.diff(unit[rows], prepend=-1) > 0
            rank = np.arange(rows.size) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
            begin = int(of_class[rows].min(initial=0)) if rows.size else 0
            self.of_release.append((unit[rows], rank, of_class[rows] - begin))

    def exclude(self, *, is_quick: bool) -> bool:
        """Exclude what two releases exclude, one of them the last if it `is_quick`.

        Returns whether there was anything.
        """
        now = self.edges.n_possible()
        changed, self.n_possible = now != self.n_possible, now
        is_changed = [bool(changed[unit].any()) for unit, _, _ in self.of_release]
        found = False
        n = len(is_changed)
        for i in range(n - 1 if is_quick else 0, n):
            for j in range(i):
                if is_changed[i] or is_changed[j]:
                    found |= self._exclude(self.of_release[i], self.of_release[j])
        return found

    def _exclude(self, one: tuple[Ints, Ints, Ints], two: tuple[Ints, Ints, Ints]) -> bool:
        edges, left = self.edges, self.edges.n_possible()
        # A record of both releases is one edge; of one alone it ends at the free node.
        width = 1 + max(int(one[1].max(initial=0)), int(two[1].max(initial=0)))
        keys, place = np.unique(
            np.concatenate([one[0] * width + one[1], two[0] * width + two[1]]), return_inverse=True
        )
        n_one, n_two = (int(of[2].max(initial=-1)) + 1 for of in (one, two))
        free = n_one + n_two
        ends = np.full((2, keys.size), free)
        ends[0, place[: one[0].size]] = one[2]
        ends[1, place[one[0].size :]] = n_one + two[2]
        unit = keys // width
        record, pair = expand(self.first[unit], self.first[unit + 1])
        is_left = edges.is_possible[pair] & (left[unit[record]] > 1)
        record, pair = record[is_left], pair[is_left]
        begin, end = ends[:, record] + edges.value[pair] * (free + 1)
        is_true = self.is_true[pair]
        fails = _apart(np.where(is_true, begin, end), np.where(is_true, end, begin))
        # Who cannot lose the value has it for certain.
        certain = np.zeros(left.size, np.bool_)
        certain[edges.unit[pair[fails & is_true]]] = True
        excluded = edges.is_possible & certain[edges.unit] & ~self.is_true
        excluded[pair[fails & ~is_true]] = True
        excluded = np.flatnonzero(excluded)
        edges.drop(excluded)
        return bool(excluded.size)


def _apart(begin: Ints, end: Ints) -> Flags:
    """Whether the ends of each arc lie in different strongly connected components."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes, place = np.unique(np.concatenate([begin, end]), return_inverse=True)
    first, second = place[: begin.size], place[begin.size :]
    ones = np.ones(begin.size, np.int8)
    arcs = coo_array((ones, (first, second)), shape=(nodes.size, nodes.size))
    component = connected_components(arcs, connection="strong")[1]
    return np.asarray(component[first] != component[second])
