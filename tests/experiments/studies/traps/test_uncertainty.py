"""What sentinels tell about a target that is not sent: who is suspected, and beside whom."""

import numpy as np
import pytest

from experiments.studies.traps import uncertainty


def points() -> uncertainty.Floats:
    """People on a line with growing gaps; 20 has a close neighbour, and 30 a duplicate."""
    people = np.arange(40.0) ** 1.2
    return np.append(people, [people[20] + 0.01, people[30]])[:, None]


def test_pairs_that_lie_apart_from_others_are_suspected_first_and_duplicates_last() -> None:
    order = uncertainty.suspicious(points())
    assert {*order[:2]} == {20, 40}
    assert {*order[-2:]} == {30, 41}


def test_controls_are_other_people_who_are_as_close() -> None:
    people = points()[:40]
    origins, distance = np.array([5, 6]), np.array([people[39, 0] - people[38, 0], 1.0])
    assert {*uncertainty.matched(people, origins, distance)} in ({39, 0}, {39, 1})


def test_certainty_is_that_of_a_model_of_other_people() -> None:
    rng = np.random.default_rng(0)
    people = rng.normal(size=(800, 2))
    toss = rng.integers(0, 2, 800)
    known = uncertainty.certainty(people, (people[:, 0] > 0).astype(np.int64))
    assert known.mean() > 0.45
    # A model that had seen the labels of these very people would be sure of them.
    assert uncertainty.certainty(people, toss).mean() < known.mean() - 0.15


def test_what_lies_below_its_control_is_told_with_an_interval() -> None:
    names = ("sentinels_planted", "found", *uncertainty.GROUPS)
    one = dict.fromkeys(names, 0.3)
    group = [one | {"unplanted": 0.4}, one | {"unplanted": 0.42}, one | {"unplanted": 0.38}]
    row = uncertainty.summarize("adult", group)
    assert row["suspects_less"] == pytest.approx(0.1)
    assert row["suspects_less_low"] < 0.1 < row["suspects_less_high"]
    assert row["sentinels_less"] == 0
