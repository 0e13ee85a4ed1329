"""Several records per person: risk, cap and t are what somebody who counts the table finds."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from client.release.releases import Job, job
from verix_anon.client.release import Released
from verix_anon.client.table.roles import Declared
from verix_anon.errors import NotAcceptedError

DECLARED = Declared(
    target="rich", quasi=["age", "city"], identifier="person", sensitive=["illness", "pay"]
)
VALUES = {"illness": False, "pay": True, "rich": False}
"""Whether the values have an order."""


def visits(rng: np.random.Generator, most: int) -> pa.Table:
    """Random people with 1 to `most` records; what a person has depends on the person."""
    person = np.repeat(np.arange(60), rng.integers(1, most + 1, 60))
    n_rows, ill = person.size, rng.random((60, 4)) ** 3
    illness = [int(rng.choice(4, p=ill[p] / ill[p].sum())) for p in person]
    return pa.table(
        {
            "person": [f"p{p}" for p in person],
            "age": (person % 30 + rng.integers(0, 20, n_rows)).tolist(),
            "city": rng.choice(["Bern", "Genf", "Chur"], n_rows).tolist(),
            "illness": [("flu", "cold", "gout", None)[i] for i in illness],
            "pay": (person % 5 + rng.integers(0, 3, n_rows)).tolist(),
            "rich": (rng.random(n_rows) < 0.4).tolist(),
        }
    )


def spread(groups: Sequence[Sequence[Hashable]]) -> dict[Hashable, float]:
    """Each group, spread evenly over its distinct values."""
    found: dict[Hashable, float] = defaultdict(float)
    for group in groups:
        for value in set(group):
            found[value] += 1 / len(set(group)) / len(groups)
    return found


def distance(mine: dict[Hashable, float], all_: dict[Hashable, float], is_ordered: bool) -> float:
    if not is_ordered:
        return sum(abs(mine.get(value, 0) - share) for value, share in all_.items()) / 2
    moved, carried = 0.0, 0.0
    for value in sorted(all_, key=lambda v: (v is None, v)):
        carried += mine.get(value, 0) - all_[value]
        moved += abs(carried)
    return moved / max(len(all_) - 1, 1)


class Recount:
    """The published table, counted class by class and person by person."""

    def __init__(self, released: Released[Any], source: pa.Table) -> None:
        shown = released.table.select(["age", "city"]).to_pylist()
        self.source = source
        self.classes: dict[Hashable, list[int]] = defaultdict(list)
        for row, cells in enumerate(shown):
            self.classes[tuple(cells.values())].append(row)
        self.person = source["person"].to_pylist()

    def by_person(self, rows: Sequence[int], values: Sequence[Any]) -> list[list[Any]]:
        found = defaultdict(list)
        for row in rows:
            found[self.person[row]].append(values[row])
        return list(found.values())

    def risks(self) -> list[tuple[int, float]]:
        """Of each class the people, and the greatest share of its records that one has."""
        counts = [Counter(self.person[row] for row in rows) for rows in self.classes.values()]
        return [(len(each), max(each.values()) / each.total()) for each in counts]

    def column(self, name: str) -> dict[str, float]:
        """The worst of all classes: the shares and the distances."""
        values = self.source[name].to_pylist()
        worst: dict[str, float] = defaultdict(float)
        everything = range(len(values))
        for rows in self.classes.values():
            for what, groups, whole in (
                ("records", [[values[r]] for r in rows], [[value] for value in values]),
                ("people", self.by_person(rows, values), self.by_person(everything, values)),
            ):
                has = Counter(value for group in groups for value in set(group))
                share = max(has.values()) / len(groups)
                far = distance(spread(groups), spread(whole), VALUES[name])
                worst[f"share of {what}"] = max(worst[f"share of {what}"], share)
                worst[f"distance of {what}"] = max(worst[f"distance of {what}"], far)
        return worst


def check(released: Released[Any], source: pa.Table, asked: dict[str, Any]) -> None:
    sheet, found = released.sheet, Recount(released, source)
    risks = found.risks()
    assert sheet.k == min(people for people, _ in risks)
    assert sheet.prosecutor_max == sheet.journalist_max == max(risk for _, risk in risks)
    mean = sum(people * risk for people, risk in risks) / sum(people for people, _ in risks)
    assert sheet.prosecutor_mean == sheet.journalist_mean == pytest.approx(mean)
    for measured in sheet.diversity:
        worst = found.column(measured.column)
        assert measured.greatest_share == worst["share of records"]
        assert measured.greatest_share_of_persons == worst["share of people"]
        assert measured.closeness_t == pytest.approx(worst["distance of records"])
        assert measured.closeness_t_of_persons == pytest.approx(worst["distance of people"])
        cap = asked.get("cap", {}).get(measured.column, 1.0)
        assert max(worst["share of records"], worst["share of people"]) <= cap
        t = asked.get("t", {}).get(measured.column, 1.0)
        assert max(worst["distance of records"], worst["distance of people"]) <= t + 1e-9


ASKED: list[dict[str, Any]] = [
    {},
    {"cap": {"illness": 0.8}},
    {"t": {"pay": 0.25}},
    {"t": {"illness": 0.3, "rich": 0.4}},
    {"cap": {"illness": 0.85, "pay": 0.7}, "t": {"illness": 0.5}},
]


@pytest.mark.parametrize("most", [1, 2, 6])
@pytest.mark.parametrize("seed", range(4))
def test_every_class_is_as_asked_for_by_records_and_by_people(most: int, seed: int) -> None:
    table = visits(np.random.default_rng(seed), most)
    made = job(table, DECLARED, k=3, min_leaf=3, traps=20)
    for asked in ASKED:
        check(made.release(**asked, person="person", representation="set"), table, asked)


def test_people_of_one_record_are_records() -> None:
    table = visits(np.random.default_rng(5), 1)
    made = job(table, DECLARED, k=3, min_leaf=3, traps=20)
    for asked in ASKED:
        by_person = made.release(**asked, person="person")
        by_record = made.release(**asked, person="record")
        assert by_person.table == by_record.table
        as_records = replace(
            by_person.sheet,
            counted_by="record",
            diversity=tuple(
                replace(d, greatest_share_of_persons=None, closeness_t_of_persons=None)
                for d in by_person.sheet.diversity
            ),
        )
        assert as_records == by_record.sheet
        for d in by_person.sheet.diversity:
            assert d.greatest_share_of_persons == d.greatest_share
            assert d.closeness_t_of_persons == d.closeness_t


def one_of_many() -> Job:
    """A class of 133 records of 38 people; one of them has 96."""
    person = ["p0"] * 96 + [f"p{i}" for i in range(1, 38)] + [f"q{i}" for i in range(133)]
    table = pa.table(
        {
            "person": person,
            "age": [30] * 133 + [60] * 133,
            "city": ["Bern"] * 266,
            "illness": ["flu"] * 96 + ["cold", "gout"] * 85,
            "pay": [1] * 266,
            "rich": [False] * 133 + [True] * 133,
        }
    )
    return job(table, DECLARED, k=31, min_leaf=31, traps=0)


def test_the_risk_is_the_greatest_share_of_one_person() -> None:
    made = one_of_many()
    sheet = made.release(person="person").sheet
    assert (sheet.k, sheet.n_classes) == (38, 2)
    assert sheet.prosecutor_max == sheet.journalist_max == 96 / 133
    assert sheet.prosecutor_mean == pytest.approx((38 * 96 / 133 + 1) / (38 + 133))
    assert any("One person has 72.2% of the records of a class" in w for w in sheet.warnings)
    # By records she is 96 people, and nobody has more than one.
    assert made.release(person="record").sheet.prosecutor_max == 1 / 133


def test_records_and_people_differ_and_both_are_stated() -> None:
    sheet = one_of_many().release(person="person").sheet
    illness = sheet.diversity[0]
    # The class has flu in 96 of 133 records, of 1 of 38 people.
    assert illness.greatest_share == 96 / 133
    assert illness.greatest_share_of_persons == 67 / 133
    assert "72.2% of the records and 50.4% of the people" in sheet.facts()["illness (sensitive)"]


@pytest.mark.parametrize(
    ("illness", "who"),
    [
        # Everybody has flu once, and one person has everything else.
        (["flu"] * 8 + ["cold"] * 12, "people"),
        # One person has flu twelve times.
        (["cold", "gout"] * 4 + ["flu"] * 12, "records"),
    ],
)
def test_a_cap_holds_for_both(illness: list[str], who: str) -> None:
    table = pa.table(
        {
            "person": [f"p{i}" for i in range(8)] + ["p0"] * 12,
            "age": [30] * 20,
            "city": ["Bern"] * 20,
            "illness": illness,
            "pay": [1] * 20,
            "rich": [True, False] * 10,
        }
    )
    made = job(table, DECLARED, k=2, min_leaf=2, traps=0)
    share = {"people": "100.0%", "records": "60.0%"}[who]
    with pytest.raises(NotAcceptedError, match=f"{share} of the {who} of the whole table"):
        made.release(person="person", cap={"illness": 0.55})
    assert made.release(person="person", cap={"illness": 1.0}).n_classes == 1
