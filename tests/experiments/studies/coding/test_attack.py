"""The attack finds what order and counts give away, and no more."""

import numpy as np

from experiments.studies.coding.attack import Known, Seen, align, name_columns, place_values


def seen(*count: float) -> Seen:
    return Seen(count=np.array(count, np.float64))


def known(values: list[float], count: list[float], *, is_category: bool = False) -> Known:
    return Known(values=np.array(values), count=np.array(count), is_category=is_category)


def test_known_values_go_where_their_counts_are_likely() -> None:
    share = np.array([0.5, 0.05, 0.3, 0.15])
    worth, place = align(np.array([50.0, 31.0, 14.0]), share)
    assert place.tolist() == [0, 2, 3]
    assert worth == 50 * np.log(0.5) + 31 * np.log(0.3) + 14 * np.log(0.15)


def test_what_lies_between_is_interpolated_for_numbers_alone() -> None:
    counts = seen(500, 50, 300, 150)
    assert place_values(known([17, 21, 22], [50, 31, 14]), counts).tolist() == [17, 19, 21, 22]
    found = place_values(known([0, 2, 3], [50, 31, 14], is_category=True), counts)
    assert np.isnan(found).tolist() == [False, True, False, False]
    halves = place_values(known([0.5, 1.5], [60, 40]), seen(600, 1, 400))
    assert halves.tolist() == [0.5, 1.0, 1.5]


def test_a_place_of_several_values_is_taken_for_the_most_frequent() -> None:
    found = place_values(known([1, 2, 3, 4], [10, 40, 35, 15]), seen(500, 500))
    assert found.tolist() == [2, 3]


def test_columns_are_named_by_counts_and_by_correlations() -> None:
    rng = np.random.default_rng(5)
    base = rng.normal(size=(4_000, 1))
    # Three columns of equal counts, two of them correlated, and one that its counts give away.
    values = np.hstack([base, base + rng.normal(size=(4_000, 1)), rng.normal(size=(4_000, 1))])
    rare = (rng.random(4_000) < 0.1).astype(np.float64)
    records = np.column_stack([values.argsort(axis=0).argsort(axis=0) // 40, rare])
    coded, others = records[:3_500], records[3_500:]
    names = ["first", "second", "alone", "rare"]
    knows = {
        name: known(*(found.tolist() for found in np.unique(column, return_counts=True)))
        for name, column in zip(names, others.T, strict=True)
    }
    order = [3, 2, 0, 1]
    sees = [Seen(count=np.bincount(coded[:, j].astype(int)).astype(float)) for j in order]
    named = name_columns(knows, sees, others, coded[:, order])
    assert named[:2] == ["rare", "alone"]
    assert {*named[2:]} == {"first", "second"}
