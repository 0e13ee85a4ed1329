"""Joining against a slow and obvious implementation, on random trees, people and columns."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verix_anon.client.release import join as joining
from verix_anon.client.release.join import Demand, Genuine, Joined, join
from verix_anon.client.release.privacy import Attribute
from verix_anon.errors import NotAcceptedError
from verix_anon.protocol.tree import Tree

Rows = tuple[int, ...]
Shape = int | tuple["Shape", "Shape"]
"""A leaf, or the two parts of a node."""
Shares = np.ndarray[Any, Any]


class Never(np.random.Generator):
    """Chance that draws no node."""

    def random(self, size: int) -> Shares:  # type: ignore[override]
        return np.ones(size)


NEVER = Never(np.random.PCG64())


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A random small tree in canonical preorder."""
    column: list[int] = []
    right: dict[int, int] = {}

    def grow(n_leaves: int) -> None:
        node = len(column)
        column.append(-1 if n_leaves == 1 else 0)
        if n_leaves > 1:
            n_left = draw(st.integers(1, n_leaves - 1))
            grow(n_left)
            right[node] = len(column)
            grow(n_leaves - n_left)

    grow(draw(st.integers(1, 7)))
    inner = np.array(column, np.int32) >= 0
    return Tree(
        column=np.array(column, np.int32),
        threshold=np.zeros(len(column)),
        left=np.where(inner, np.arange(len(column)) + 1, -1).astype(np.int32),
        right=np.array([right.get(i, -1) for i in range(len(column))], np.int32),
        leaf=np.where(inner, -1, np.cumsum(~inner) - 1).astype(np.int32),
    )


class Slowly:
    """The words of the specification, record by record."""

    def __init__(self, genuine: Genuine, k: int, demands: Sequence[Demand]) -> None:
        self.genuine, self.k, self.demands = genuine, k, demands
        self.n_rows = genuine.leaf_of_row.size
        people = genuine.person_of_row
        self.people = list(range(self.n_rows)) if people is None else people.tolist()

    def groups(self, rows: Sequence[int], by_person: bool) -> list[list[int]]:
        """The rows of each person; or each row alone."""
        if not by_person:
            return [[row] for row in rows]
        people = {self.people[row] for row in rows}
        return [[row for row in rows if self.people[row] == person] for person in people]

    def shares(
        self, rows: Sequence[int], column: Attribute, by_person: bool
    ) -> tuple[Shares, float]:
        """Each group spread evenly over its distinct values; and the share of groups with one."""
        n_values = int(column.codes.max()) + 1
        weight, has = np.zeros(n_values), np.zeros(n_values)
        groups = self.groups(rows, by_person)
        for group in groups:
            values = list({int(column.codes[row]) for row in group})
            weight[values] += 1 / len(values)
            has[values] += 1
        return weight / len(groups), float(has.max() / len(groups))

    def is_valid(self, rows: Rows) -> bool:
        if len({self.people[row] for row in rows}) < self.k:
            return False
        for demand, by_person in itertools.product(self.demands, (False, True)):
            p, share = self.shares(rows, demand.column, by_person)
            q, _ = self.shares(range(self.n_rows), demand.column, by_person)
            if (
                np.count_nonzero(p) < demand.least_values
                or share > demand.cap
                or self.distance(p, q, demand.column) > demand.closeness + 1e-9
            ):
                return False
        return True

    def distance(self, p: Shares, q: Shares, column: Attribute) -> float:
        if column.is_ordered:
            return float(np.abs(np.cumsum(p - q)).sum() / max(len(p) - 1, 1))
        return float(np.abs(p - q).sum() / 2)

    def loss(self, rows: Rows) -> float:
        total = 0.0
        for values, is_category in zip(
            self.genuine.values(), self.genuine.is_category, strict=True
        ):
            mine = values[list(rows)]
            if is_category:
                total += (len(set(mine)) - 1) / max(len(set(values)) - 1, 1)
            else:
                total += (mine.max() / 2 - mine.min() / 2) / (
                    (values.max() / 2 - values.min() / 2) or 1.0
                )
        return total

    def leaf(self, leaf: int) -> Rows:
        return tuple(np.flatnonzero(self.genuine.leaf_of_row == leaf).tolist())

    def shape(self, tree: Tree, node: int) -> Shape:
        """The subtree of a node as nested pairs of leaves."""
        if tree.leaf[node] >= 0:
            return int(tree.leaf[node])
        return self.shape(tree, int(tree.left[node])), self.shape(tree, int(tree.right[node]))

    def leaves(self, shape: Shape) -> list[int]:
        return (
            [shape] if isinstance(shape, int) else [*self.leaves(shape[0]), *self.leaves(shape[1])]
        )

    def rows(self, shape: Shape) -> Rows:
        return tuple(row for leaf in self.leaves(shape) for row in self.leaf(leaf))

    def balanced(self, shape: Shape) -> Shape:
        """The larger part first, and a small one beside another of its size."""
        if isinstance(shape, int):
            return shape
        first, second = map(self.balanced, shape)
        if len(self.rows(first)) < len(self.rows(second)):
            first, second = second, first
        return self.moved(first, second)

    def moved(self, large: Shape, small: Shape) -> Shape:
        if isinstance(large, int) or len(self.rows(large)) <= 2 * len(self.rows(small)):
            return large, small
        left, right = large
        if self.widened(left, small) <= self.widened(right, small):
            return self.moved(left, small), right
        return left, self.moved(right, small)

    def widened(self, shape: Shape, part: Shape) -> float:
        rows, both = self.rows(shape), self.rows(shape) + self.rows(part)
        return len(both) * self.span(both) - len(rows) * self.span(rows)

    def span(self, rows: Rows) -> float:
        """The ranges of all columns, categories by their positions."""
        total = 0.0
        for values in self.genuine.values():
            mine, scale = values[list(rows)], values.max() / 2 - values.min() / 2
            if rows:
                total += float((mine.max() / 2 - mine.min() / 2) / (scale or 1.0))
        return total

    def under(self, shape: Shape, small: int, drawn: Iterator[bool]) -> tuple[list[Rows], Rows]:
        """The classes under a node, or the residue that all of it is; nodes are in preorder."""
        is_drawn = next(drawn)
        if isinstance(shape, int):
            rows = self.leaf(shape)
            return ([rows], ()) if rows and self.is_valid(rows) else ([], rows)
        is_small = len(self.leaves(shape)) <= small
        sides = [self.under(part, small, drawn) for part in shape]
        classes = sides[0][0] + sides[1][0]
        residues = [residue for _, residue in sides if residue]
        everything = self.rows(shape)
        if not residues:
            is_one = is_small and is_drawn and classes and self.is_valid(everything)
            return ([everything], ()) if is_one else (classes, ())
        if len(residues) == 1 and not is_small:
            valid = [c for c in classes if self.is_valid(c + residues[0])]
            if valid:
                best = min(valid, key=lambda c: self.added(c, residues[0]))
                place = classes.index(best)
                return [*classes[:place], best + residues[0], *classes[place + 1 :]], ()
        return ([everything], ()) if self.is_valid(everything) else ([], everything)

    def added(self, rows: Rows, residue: Rows) -> float:
        both = rows + residue
        return len(both) * self.loss(both) - len(rows) * self.loss(rows)


@st.composite
def tables(draw: st.DrawFn, n_leaves: int, n_columns: int = 2) -> tuple[Genuine, list[Attribute]]:
    n_rows = draw(st.integers(1, 24))

    def numbers(most: int) -> Any:
        drawn = draw(st.lists(st.integers(0, most), min_size=n_rows, max_size=n_rows))
        return np.array(drawn, np.int64)

    columns = []
    for i in range(n_columns):
        codes = np.unique(numbers(3), return_inverse=True)[1].astype(np.int64)
        columns.append(Attribute(f"c{i}", "sensitive", codes, is_ordered=draw(st.booleans())))
    values = np.array([numbers(9), numbers(4), numbers(9)], np.float64)
    genuine = Genuine(
        leaf_of_row=numbers(n_leaves - 1).astype(np.int32),
        person_of_row=numbers(8) if draw(st.booleans()) else None,
        values=lambda: values,
        is_category=np.array([False, True, True]),
    )
    return genuine, columns


demands = st.fixed_dictionaries(
    {
        "least_values": st.integers(1, 3),
        "cap": st.sampled_from([1.0, 0.75, 2 / 3, 0.5]),
        "closeness": st.sampled_from([1.0, 0.6, 0.4, 0.25]),
    }
)


def classes_of(joined: Joined, genuine: Genuine) -> list[Rows]:
    of_row = joined.class_of_leaf[genuine.leaf_of_row]
    return [tuple(np.flatnonzero(of_row == c).tolist()) for c in range(joined.n_classes)]


@pytest.mark.parametrize("few_bits", [False, True])
@settings(deadline=None, max_examples=120)
@given(
    tree=trees(),
    data=st.data(),
    k=st.integers(1, 4),
    asked=st.lists(demands, max_size=2),
    small=st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_joining_is_what_the_specification_says(
    few_bits: bool,
    tree: Tree,
    data: st.DataObject,
    k: int,
    asked: list[dict[str, Any]],
    small: int,
    seed: int,
) -> None:
    tree.check(n_quasi=1, max_depth=50)
    genuine, columns = data.draw(tables(tree.n_leaves))
    wanted = [Demand(column=c, **each) for c, each in zip(columns, asked, strict=False)]
    slow = Slowly(genuine, k, wanted)
    shape = slow.shape(tree, 0)
    drawn = iter((np.random.default_rng(seed).random(tree.n_nodes) < 0.4).tolist())
    if all(d.least_values == d.cap == d.closeness == 1 for d in wanted):
        # Only k is asked for, which has nothing to hide.
        expected, residue = slow.under(shape, 0, drawn)
    else:
        expected, residue = slow.under(slow.balanced(shape), small, drawn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "SMALL", small)
        patch.setattr(joining, "CHANCE", 0.4)
        if few_bits:
            # Sets too large for a word, and batches that end after every pair.
            patch.setattr(joining, "MOST_BITS", 0)
            patch.setattr(joining, "MOST_ROWS", 1)
        if residue:
            with pytest.raises(NotAcceptedError, match=r"fewer than k|a smaller l|a greater cap"):
                join(tree, genuine, k, wanted, np.random.default_rng(seed))
            return
        joined = join(tree, genuine, k, wanted, np.random.default_rng(seed))
    found = classes_of(joined, genuine)
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
    n_leaves = [len(set(genuine.leaf_of_row[list(rows)])) for rows in found]
    assert joined.is_joined.tolist() == [n > 1 for n in n_leaves]
    empty = set(range(tree.n_leaves)) - set(genuine.leaf_of_row.tolist())
    assert set(np.flatnonzero(joined.class_of_leaf < 0).tolist()) == empty


def stump() -> Tree:
    """Two leaves."""
    return Tree(
        column=np.array([0, -1, -1], np.int32),
        threshold=np.zeros(3),
        left=np.array([1, -1, -1], np.int32),
        right=np.array([2, -1, -1], np.int32),
        leaf=np.array([-1, 0, 1], np.int32),
    )


def three_leaves() -> Tree:
    """Two leaves under the root's left child, and one on its right."""
    return Tree(
        column=np.array([0, 0, -1, -1, -1], np.int32),
        threshold=np.zeros(5),
        left=np.array([1, 2, -1, -1, -1], np.int32),
        right=np.array([4, 3, -1, -1, -1], np.int32),
        leaf=np.array([-1, -1, 0, 1, 2], np.int32),
    )


def check_hopeful(genuine: Genuine, column: Attribute) -> None:
    """Ask for the cap and the t that leaves 0 and 1 as one class just meet; leaf 2 is the rest."""
    slow = Slowly(genuine, 1, [])
    both = slow.leaf(0) + slow.leaf(1)
    found = [slow.shares(both, column, by_person) for by_person in (False, True)]
    whole = [slow.shares(range(slow.n_rows), column, by) for by in (False, True)]
    far = [slow.distance(p, q, column) for (p, _), (q, _) in zip(found, whole, strict=True)]
    cap = max(share for _, share in found)
    demand = Demand(column=column, cap=cap, closeness=min(max(far), 1 - 1e-6))
    state = joining._Joining(three_leaves(), genuine, 1, [demand])
    zero, one = np.array([0]), np.array([1])
    assert state._meets(np.array([0, 0]), np.array([0, 1])).all()
    assert state._is_hopeful(zero, zero, one).all()


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_no_valid_union_is_ruled_out_untried(data: st.DataObject) -> None:
    genuine, columns = data.draw(tables(3, n_columns=1))
    if {0, 1} <= {*genuine.leaf_of_row.tolist()}:
        check_hopeful(genuine, columns[0])


def test_a_class_may_change_people_of_the_residue() -> None:
    # p: x and {p: y, q: y} as one class: a quarter is left of x.
    genuine = Genuine(
        leaf_of_row=np.array([0, 1, 1], np.int32),
        person_of_row=np.array([0, 0, 1]),
        values=lambda: np.zeros((1, 3)),
        is_category=np.array([False]),
    )
    check_hopeful(genuine, Attribute("c", "sensitive", np.array([0, 1, 1]), is_ordered=False))


def test_two_valid_classes_need_not_be_one() -> None:
    # {p1: x, p2: y} and {p3: x, p2: y} at cap 1/2: as one, x has two of three.
    genuine = Genuine(
        leaf_of_row=np.array([0, 0, 1, 1], np.int32),
        person_of_row=np.array([1, 2, 3, 2]),
        values=lambda: np.zeros((1, 4)),
        is_category=np.array([False]),
    )
    column = Attribute("c", "sensitive", np.array([0, 1, 0, 1]), is_ordered=False)
    demand = Demand(column=column, cap=0.5)
    assert join(stump(), genuine, 2, [demand], NEVER).n_classes == 2
    with pytest.raises(NotAcceptedError, match=r"66\.7% of the people of the whole table"):
        join(stump(), genuine, 3, [demand], NEVER)


def test_a_residue_goes_where_it_adds_least() -> None:
    # Record 9 is nearer to the right class of the sibling; its leaf holds one record.
    genuine = Genuine(
        leaf_of_row=np.array([0, 0, 1, 1, 2], np.int32),
        person_of_row=None,
        values=lambda: np.array([[0.0, 1.0, 7.0, 8.0, 9.0]]),
        is_category=np.array([False]),
    )
    joined = join(three_leaves(), genuine, 2, [], NEVER)
    assert joined.class_of_leaf.tolist() == [0, 1, 1]
    assert joined.is_joined.tolist() == [False, True]
