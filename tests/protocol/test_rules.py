"""The rule of spec §4, worked by hand."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verix_anon.protocol.rules import (
    Leaf,
    Node,
    VarianceReduction,
    best_split,
    bounds,
    flatten,
    grow,
    lower_median,
    score,
)

steady = settings(deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("values", "median"),
    [
        ([7.0], 7.0),
        ([1.0, 2.0], 1.0),
        ([3.0, 1.0, 2.0], 2.0),
        ([4.0, 1.0, 3.0, 2.0], 2.0),
        ([5.0, 4.0, 3.0, 2.0, 1.0], 3.0),
        ([1.0, 1.0, 1.0, 9.0], 1.0),
        ([1.0, 9.0, 9.0, 9.0], 9.0),
        ([-0.0, 0.0], 0.0),
    ],
)
def test_lower_median(values: list[float], median: float) -> None:
    assert lower_median(values) == median


@steady
@given(st.lists(st.integers(0, 5).map(float), min_size=1, max_size=20))
def test_lower_median_by_counting(values: list[float]) -> None:
    median = lower_median(values)
    position = -(-len(values) // 2)
    assert median in values
    assert sum(v < median for v in values) < position <= sum(v <= median for v in values)


def test_score_by_hand() -> None:
    assert score(4, 3, 4, 1) == 2.5
    assert score(2, 0, 6, 3) == 1.5


def test_scores_order_of_evaluation() -> None:
    # The square before the quotient: l * (l / nl) rounds differently.
    assert score(5, 3, 7, 0) == 9.0 / 5.0 != 3.0 * (3.0 / 5.0)
    assert score(7, 0, 5, 3) == 9.0 / 5.0
    # The square is rounded before it is divided, which shows past 2^53.
    l, n = 94906267, 189812533  # noqa: E741
    assert score(n, l, 1, 0) == float(l) * float(l) / float(n) != float(Fraction(l * l, n))


def split(columns: list[list[float]], target: list[int], min_leaf: int) -> tuple[int, float] | None:
    chosen = best_split(columns, VarianceReduction(target), range(len(target)), min_leaf=min_leaf)
    return None if chosen is None else (chosen.column, chosen.threshold)


def test_the_greatest_score_wins() -> None:
    target = [0, 0, 0, 0, 1, 1, 1, 1]
    useless = [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]
    useful = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert split([useless, useful], target, 4) == (1, 4.0)
    assert split([useful, useless], target, 4) == (0, 4.0)


def test_equal_scores_go_to_the_first_column() -> None:
    target = [0, 1, 0, 1]
    rising, falling = [1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]
    assert split([rising, falling], target, 2) == (0, 2.0)
    assert split([falling, rising], target, 2) == (0, 2.0)


def test_rounding_may_break_a_tie() -> None:
    # Six records left, two right: 16/6 + 4/2 = 25/6 + 1/2 exactly, but not in binary64.
    target = [1, 1, 1, 1, 0, 0, 1, 1]
    four = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0]
    five = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 2.0]
    assert Fraction(16, 6) + Fraction(4, 2) == Fraction(25, 6) + Fraction(1, 2)
    assert score(6, 4, 2, 2) < score(6, 5, 2, 1)
    assert split([four, five], target, 2) == (1, 1.0)
    assert split([five, four], target, 2) == (0, 1.0)


def test_ties_make_a_candidate_invalid() -> None:
    target = [0, 1, 0, 1, 0, 1, 0, 1]
    # The lower median is 1, six values are <= 1, so only two go right.
    crowded = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0]
    assert split([crowded], target, 3) is None
    assert split([crowded], target, 2) == (0, 1.0)
    # Nothing can be greater than the greatest value.
    assert split([[9.0] * 8], target, 1) is None
    assert split([[1.0] * 3 + [9.0] * 5], target, 1) is None
    # An invalid candidate does not hide a valid one, even one without gain.
    assert split([crowded, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]], target, 3) == (1, 4.0)


def test_signed_zeros_are_equal() -> None:
    assert split([[-0.0, 0.0, -0.0, 0.0]], [0, 1, 0, 1], 1) is None
    assert split([[-0.0, 0.0, 1.0, 1.0]], [0, 1, 0, 1], 2) == (0, 0.0)


def test_a_split_with_no_gain_is_still_made() -> None:
    columns = [[1.0, 2.0, 3.0, 4.0]]
    assert grow(columns, VarianceReduction([0, 1, 0, 1]), min_leaf=2, max_depth=50) == Node(
        0, 2.0, Leaf((0, 1)), Leaf((2, 3))
    )


@pytest.mark.parametrize("target", [[0, 0, 0, 0], [1, 1, 1, 1]])
def test_purity_stops(target: list[int]) -> None:
    columns = [[1.0, 2.0, 3.0, 4.0]]
    assert grow(columns, VarianceReduction(target), min_leaf=1, max_depth=50) == Leaf((0, 1, 2, 3))


def test_too_few_records_stop() -> None:
    columns = [[1.0, 2.0, 3.0, 4.0]]
    assert isinstance(
        grow(columns, VarianceReduction([0, 1, 0, 1]), min_leaf=3, max_depth=50), Leaf
    )
    # n = 2m is enough; n = 2m - 1 is not.
    assert isinstance(
        grow(columns, VarianceReduction([0, 1, 0, 1]), min_leaf=2, max_depth=50), Node
    )
    assert isinstance(
        grow([[1.0, 2.0, 3.0]], VarianceReduction([0, 1, 0]), min_leaf=2, max_depth=50), Leaf
    )


@pytest.mark.parametrize(("max_depth", "n_leaves"), [(1, 2), (2, 4), (3, 8), (4, 16), (5, 16)])
def test_depth_stops(max_depth: int, n_leaves: int) -> None:
    # Two records with both labels in every part, so that purity never stops first.
    columns = [[float(i) for i in range(32)]]
    top = grow(columns, VarianceReduction([0, 1] * 16), min_leaf=2, max_depth=max_depth)
    nodes, leaves = flatten(top)
    assert (len(leaves), len(nodes)) == (n_leaves, 2 * n_leaves - 1)


def test_a_tree_by_hand() -> None:
    age = [30.0, 20.0, 60.0, 50.0, 40.0, 10.0, 70.0, 80.0]
    town = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    rich = [0, 0, 1, 0, 1, 0, 1, 1]
    # Age <= 40 holds rows 0, 1, 4, 5 with one positive, the rest three: 1/4 + 9/4 = 2.5.
    # Town 0 holds rows 0, 2, 4, 6 with three, town 1 one: 9/4 + 1/4 = 2.5. Age comes first.
    # Left, age: (10, 20 | 30, 40), 0 and 1 positive: 0.5. Town: (0, 4 | 1, 5): 0.5. Age again.
    # Right, rows 2, 3, 6, 7: age (50, 60 | 70, 80): 1/2 + 4/2 = 2.5; town (2, 6 | 3, 7): 2.5.
    top = grow([age, town], VarianceReduction(rich), min_leaf=2, max_depth=50)
    nodes, leaves = flatten(top)
    assert nodes == [
        (0, 40.0, 1, 4, -1),
        (0, 20.0, 2, 3, -1),
        (-1, 0.0, -1, -1, 0),
        (-1, 0.0, -1, -1, 1),
        (0, 60.0, 5, 6, -1),
        (-1, 0.0, -1, -1, 2),
        (-1, 0.0, -1, -1, 3),
    ]
    assert leaves == [(1, 5), (0, 4), (2, 3), (6, 7)]
    # The other way about, town comes first among equals.
    assert flatten(grow([town, age], VarianceReduction(rich), min_leaf=2, max_depth=1))[0][0] == (
        0,
        0.0,
        1,
        2,
        -1,
    )


def test_bounds() -> None:
    assert bounds([[3.0, 1.0, 2.0], [0.0, 5.0, -5.0]], [0, 2]) == [(2.0, 3.0), (-5.0, 0.0)]


@steady
@given(st.integers(1, 400), st.integers(1, 400), st.data())
def test_scores_order_as_variance_reduction_does(nl: int, nr: int, data: st.DataObject) -> None:
    # Of one node, n and s are fixed; sum over sides of s_i^2/n_i is then a constant away.
    n = nl + nr
    l, r = data.draw(st.integers(0, nl)), data.draw(st.integers(0, nr))  # noqa: E741
    s = l + r

    def spread(count: int, positive: int) -> Fraction:
        return positive - Fraction(positive * positive, count)

    reduction = spread(n, s) - spread(nl, l) - spread(nr, r)
    assert score(nl, l, nr, r) == pytest.approx(float(reduction + Fraction(s * s, n)), abs=1e-9)
