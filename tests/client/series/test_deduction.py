"""The deduction against an intruder who tries all worlds, on small tables."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from verix_anon.client.series.deduction import SeenRecords
from verix_anon.client.series.withholding import Withholding

Worlds = dict[int, set[int]]


def brute_force(releases: Sequence[SeenRecords]) -> Worlds:
    """The values that each person has in some world that publishes the same classes."""
    people = sorted({p for each in releases for p in each.person.tolist()})
    values = sorted({v for each in releases for v in each.values["x"].tolist()})
    classes = [
        (each.person[each.of_class == c].tolist(), sorted(each.values["x"][each.of_class == c]))
        for each in releases
        for c in np.unique(each.of_class)
    ]
    found: Worlds = {person: set() for person in people}
    for world in product(values, repeat=len(people)):
        of = dict(zip(people, world, strict=True))
        if all(sorted(of[p] for p in members) == held for members, held in classes):
            for person, value in of.items():
                found[person].add(value)
    return found


def release(people: Sequence[int], classes: Sequence[int], values: Sequence[int]) -> SeenRecords:
    held = np.array(values)[list(people)]
    return SeenRecords(np.array(people), np.array(classes), np.zeros(len(people), int), {"x": held})


def drawn(seed: int, n_releases: int, n_people: int = 6) -> list[SeenRecords]:
    """Random releases of random people in random classes."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, n_people)
    found = []
    for _ in range(n_releases):
        people = np.flatnonzero(rng.random(n_people) < 0.8)
        people = people if people.size else np.arange(n_people)
        classes = rng.integers(0, 3, people.size).tolist()
        found.append(release(people.tolist(), classes, values.tolist()))
    return found


def left(releases: Sequence[SeenRecords]) -> dict[int, int]:
    seen = SeenRecords.of(releases)
    return dict(zip(seen.person.tolist(), seen.left("x").tolist(), strict=True))


@pytest.mark.parametrize("n_releases", [1, 2])
def test_one_release_and_two_are_exact(n_releases: int) -> None:
    for seed in range(60):
        releases = drawn(seed, n_releases)
        worlds = brute_force(releases)
        assert left(releases) == {person: len(values) for person, values in worlds.items()}, seed


def test_nothing_possible_is_excluded_and_little_is_missed() -> None:
    missed = 0
    for seed in range(60):
        releases = drawn(seed, 4)
        worlds = brute_force(releases)
        for person, n in left(releases).items():
            assert n >= len(worlds[person]), seed
            missed += n > len(worlds[person])
    # Only what follows from three releases or more together.
    assert missed <= 5


def test_a_person_who_leaves_a_class_is_given_away() -> None:
    values = [0, 1, 2, 0]
    first, second = release([0, 1, 2, 3], [0] * 4, values), release([0, 1, 3], [0] * 3, values)
    assert left([first]) == dict.fromkeys(range(4), 3)
    assert left([first, second])[2] == 1


def test_values_that_change_are_not_chained() -> None:
    first, second = release([0, 1], [0, 0], [0, 1]), release([0, 1], [0, 0], [2, 1])
    seen = SeenRecords.of([first, second])
    assert seen.n_changing("x") == 1
    assert seen.left("x").min() >= 1
    assert left([first]) == {0: 2, 1: 2}


def test_a_person_with_several_records_needs_as_many_values() -> None:
    # Person 0 has two of the three records, so that only the value that occurs twice fits.
    seen = release([0, 0, 1], [0, 0, 0], [0, 1])
    assert SeenRecords.of([seen]).left("x").tolist() == [1, 1, 1]


def test_a_person_with_several_records_waits_in_the_first_release() -> None:
    people, values = np.array([0, 0, 1, 2]), np.array([0, 0, 1, 0])
    asked = Withholding([], people, {"x": values}, {"x": 2})
    assert asked.kept(np.arange(4), np.zeros(4, int)).tolist() == [False, False, True, True]
    assert asked.kept(np.array([2, 3]), np.zeros(2, int)).all()


def test_several_classes_of_one_release_may_tell_more() -> None:
    """The limit that spec §15 and the paper name: three people with records in two classes each."""
    values = [0, 1, 0, 1]
    seen = release([0, 1, 1, 2, 0, 2, 3], [0, 0, 1, 1, 2, 2, 2], values)
    assert brute_force([seen]) == {person: {value} for person, value in enumerate(values)}
    assert left([seen]) == dict.fromkeys(range(4), 2)


def test_several_values_in_two_releases_may_tell_more() -> None:
    """Another limit that spec §15 names: one record of each person in each release."""
    values = [3, 0, 2, 1, 0, 1, 1, 2, 0]
    first = release(range(9), [0, 0, 1, 1, 0, 0, 0, 1, 1], values)
    second = release(range(9), [0, 2, 0, 0, 1, 0, 1, 1, 1], values)
    worlds, deduced = brute_force([first, second]), left([first, second])
    missed = {p for p, n in deduced.items() if n != len(worlds[p])}
    assert missed
    assert all(deduced[p] > len(worlds[p]) for p in missed)


def published(seed: int) -> list[SeenRecords]:
    """Three batches that are published with those withheld who have to wait; k = 2, l = 2."""
    rng = np.random.default_rng(seed)
    values, past = rng.integers(0, 3, 9), list[SeenRecords]()
    for start in (0, 1, 2):
        people = np.arange(start, start + 7)
        asked = Withholding(past, people, {"x": values[people]}, {"x": 2})
        rows, classes = np.arange(7), np.sort(rng.integers(0, 2, 7))
        while rows.size:
            # A class without two values is dissolved.
            of = [np.unique(values[people[rows[classes == c]]]).size > 1 for c in classes]
            is_kept = np.array(of)
            if is_kept.all() and (is_kept := asked.kept(rows, classes)).all():
                past.append(asked.seen(rows, classes))
                break
            rows, classes = rows[is_kept], np.unique(classes[is_kept], return_inverse=True)[1]
    return past


def test_after_withholding_no_intruder_brings_anybody_below_l() -> None:
    n_again = 0
    for seed in range(25):
        past = published(seed)
        worlds = brute_force(past)
        assert min(map(len, worlds.values())) >= 2, seed
        n_again += sum(each.person.size for each in past) - len(worlds)
    assert n_again > 25
