"""The privacy sheet against values worked out by hand and by slow definitions."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verix_anon.arrays import Floats, Ints
from verix_anon.client.privacy_sheet import ColumnLoss, Conditions, Joining, Sheet
from verix_anon.client.release import privacy
from verix_anon.client.release.privacy import (
    Attribute,
    ClassMembers,
    attribute,
)
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Digest


def codes(*values: int) -> Ints:
    return np.array(values, np.int64)


def distribution(members: ClassMembers, values: Ints) -> privacy.Distribution:
    """By people, or by records if each is a person."""
    shares = privacy.overall(values, members.person_of_row)
    return [*privacy.distributions(members, values, shares)][-1]


def column(name: str, role: str, values: Any) -> Attribute:
    return attribute(name, role, pa.array(values))


# Li, Li and Venkatasubramanian, "t-Closeness", ICDE 2007, table 3 and section 4: nine salaries
# of 3k to 11k; the class {3k, 4k, 5k} has distance 0.375 and {6k, 8k, 11k} has 0.167.
SALARY = [3, 4, 5, 6, 11, 8, 7, 10, 9]
DISEASE = ["ulcer", "gastritis", "cancer", "gastritis", "flu", "bronchitis"]
DISEASE += ["bronchitis", "pneumonia", "cancer"]
THREE = ClassMembers(codes(0, 0, 0, 1, 1, 1, 2, 2, 2), 3)


def test_ordered_distance_is_the_paper_s() -> None:
    found = distribution(THREE, column("salary", "sensitive", SALARY).codes)
    assert found.ordered_distance()[:2] == pytest.approx([0.375, 1 / 6])
    assert privacy.diversity(THREE, column("salary", "sensitive", SALARY)).distance == "ordered"


def test_equal_distance_of_a_class() -> None:
    measured = privacy.diversity(THREE, column("disease", "sensitive", DISEASE))
    # Class 0 holds ulcer (1/9 of all), gastritis and cancer (2/9 each), each a third of it.
    assert distribution(THREE, attribute("d", "", pa.array(DISEASE)).codes).equal_distance()[
        0
    ] == pytest.approx(1 - 5 / 9)
    assert measured.distance == "equal"
    assert measured.distinct_l == 3
    assert measured.entropy_l == pytest.approx(3)


def test_l_diversity_is_that_of_the_worst_class() -> None:
    members = ClassMembers(codes(0, 0, 0, 0, 1, 1, 1), 2)
    found = distribution(members, codes(0, 0, 1, 2, 1, 1, 1))
    assert found.distinct().tolist() == [3, 1]
    # Shares 1/2, 1/4, 1/4: entropy 1.5 bits.
    assert found.entropy() == pytest.approx([2**1.5, 1.0])


def test_a_single_value_is_no_distance() -> None:
    found = distribution(ClassMembers(codes(0, 0, 1, 1), 2), codes(0, 0, 0, 0))
    assert found.ordered_distance().tolist() == [0.0, 0.0]
    assert found.equal_distance().tolist() == [0.0, 0.0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=40))
def test_distances_are_those_of_the_definitions(rows: list[tuple[int, int]]) -> None:
    classes = privacy.dense(codes(*(c for c, _ in rows)))
    values = codes(*np.unique([v for _, v in rows], return_inverse=True)[1].tolist())
    members = ClassMembers(classes, int(classes.max()) + 1)
    found = distribution(members, values)
    n_values = found.n_values
    q = np.bincount(values, minlength=n_values) / values.size
    for number in range(members.n_classes):
        mine = values[classes == number]
        p = np.bincount(mine, minlength=n_values) / mine.size
        steps = np.abs(np.cumsum(p - q))[:-1].sum()
        ordered = steps / (n_values - 1) if n_values > 1 else 0.0
        assert found.ordered_distance()[number] == pytest.approx(ordered, abs=1e-12)
        assert found.equal_distance()[number] == pytest.approx(np.abs(p - q).sum() / 2, abs=1e-12)


def test_people_are_counted_once_in_a_class() -> None:
    # Person 0 has three records in class 0 and one in class 1.
    members = ClassMembers(codes(0, 0, 0, 0, 1, 1), 2, codes(0, 0, 0, 1, 0, 2))
    assert members.sizes().tolist() == [2, 2]
    found = distribution(members, codes(5, 5, 6, 6, 5, 5))
    # In class 0 value 5 counts once (person 0), value 6 twice (persons 0 and 1).
    assert found.count.tolist() == [1, 2, 2]
    assert found.greatest_share().tolist() == [1, 1]
    # Person 0 is spread over both values: half of it and all of person 1 have value 6.
    assert found.share == pytest.approx([1 / 4, 3 / 4, 1])
    # Over the table, where person 2 has value 5, too.
    assert found.overall[5:] == pytest.approx([1 / 2, 1 / 2])
    assert found.class_of_pair.tolist() == [0, 0, 1]


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=40))
def test_a_value_counts_once_for_each_person_of_a_class(rows: list[tuple[int, int, int]]) -> None:
    classes, values, people = (codes(*column) for column in zip(*rows, strict=True))
    classes = privacy.dense(classes)
    found = distribution(ClassMembers(classes, int(classes.max()) + 1, people), values)
    expected = Counter((c, v) for c, v, _ in {*zip(classes, values, people, strict=True)})
    pairs = zip(found.class_of_pair.tolist(), found.value_of_pair.tolist(), strict=True)
    assert list(zip(pairs, found.count.tolist(), strict=True)) == sorted(expected.items())


def test_attributes_are_ordered_if_they_have_an_order() -> None:
    numbers = column("x", "sensitive", [30, 10, None, 20, 10])
    assert numbers.is_ordered
    assert numbers.codes.tolist() == [2, 0, 3, 1, 0]
    assert not column("x", "kept", ["b", "a"]).is_ordered
    assert not column("x", "kept", [True, False]).is_ordered
    assert not attribute("x", "kept", pa.array([1, 2]).dictionary_encode()).is_ordered
    assert column("x", "kept", [math.nan, -0.0, 0.0]).codes.tolist() == [1, 0, 0]
    assert column("x", "kept", [None, None]).codes.tolist() == [0, 0]


def test_singled_out_within_the_class() -> None:
    members = ClassMembers(codes(0, 0, 0, 1, 1, 1), 2)
    a, b = Attribute("a", "kept", codes(0, 0, 1, 0, 0, 0), False), codes(0, 1, 0, 0, 0, 0)
    assert privacy.singled_out(members, [a]) == pytest.approx(1 / 6)
    both = [a, Attribute("b", "sensitive", b, False)]
    assert privacy.singled_out(members, both) == pytest.approx(3 / 6)
    # All three of class 0 are one person: nobody else has these values, so all are singled out.
    visits = ClassMembers(codes(0, 0, 0, 1, 1, 1), 2, codes(0, 0, 0, 1, 2, 3))
    assert privacy.singled_out(visits, [a]) == pytest.approx(3 / 6)


def test_classes_that_look_alike_are_one() -> None:
    members = ClassMembers.alike(codes(0, 1, 2, 2), [codes(0, 0, 0), codes(0, 1, 0)], None)
    assert members.n_classes == 2
    assert members.class_of_row.tolist() == [0, 1, 0, 0]


def test_ncp_weighs_widths_by_records() -> None:
    def ncp(low: Floats, high: Floats, domain: tuple[Floats, Floats], count: Ints) -> float:
        return privacy.weighted(privacy.widths(low, high, domain).mean(axis=1), count)

    # Two columns over [0, 10] and [0, 4], the second constant in both classes.
    low, high = np.array([[0.0, 1.0], [5.0, 2.0]]), np.array([[5.0, 1.0], [15.0, 2.0]])
    domain = np.array([0.0, 0.0]), np.array([10.0, 4.0])
    # Class 0: (5/10 + 0)/2, three records; class 1, cut off at 10: the same, one record.
    assert ncp(low, high, domain, codes(3, 1)) == pytest.approx(0.25)
    point, one = np.array([[1.0]]), np.array([1.0])
    assert ncp(point, point, (one, one), codes(2)) == 0.0
    least, most = np.array([-1.7e308]), np.array([1.7e308])
    assert ncp(least[None], most[None], (least, most), codes(2)) == 1.0


@pytest.fixture
def sheet() -> Sheet:
    members = ClassMembers(codes(0, 0, 0, 1, 1), 2)
    attributes = [
        column("y", "target", ["a", "a", "a", "a", "b"]),
        column("illness", "sensitive", ["flu", "cold", "flu", "flu", "flu"]),
        column("note", "kept", [1, 1, 1, 1, 1]),
    ]
    conditions = Conditions(
        k_agreed=2,
        enforced={"illness": {"l": 1}},
        counted_by="record",
        released_before=1,
        missing={"age": 3},
        missing_as="impute",
    )
    joined = Joining(records=3, largest_class=3, ncp_before=0.25)
    age = ColumnLoss(
        column="age",
        exact=0.0,
        median_width=9.0,
        unit="years",
        n_categories=0,
        ncp=0.5,
        bars=("<1960", "1960.."),
        before=(0.4, 0.6),
        after=(0.45, 0.55),
    )
    return privacy.measure(members, attributes, conditions, joined, [age])


def test_the_sheet_by_hand(sheet: Sheet) -> None:
    assert (sheet.k, sheet.n_classes, sheet.n_records, sheet.largest_class) == (2, 2, 5, 3)
    assert sheet.average_class_size == 2.5
    assert sheet.prosecutor_max == sheet.journalist_max == 0.5
    assert sheet.prosecutor_mean == sheet.journalist_mean == 2 / 5
    assert sheet.discernibility == 9 + 4
    assert sheet.ncp == 0.5
    assert sheet.same_target == 3 / 5
    assert sheet.singled_out == 1 / 5
    assert sheet.singled_out_by == {"illness": 1 / 5, "note": 0.0}
    target, illness = sheet.diversity
    assert (target.column, illness.column) == ("y", "illness")
    assert target.distinct_l == illness.distinct_l == 1
    assert (target.given_away, illness.given_away) == (3 / 5, 2 / 5)
    assert target.greatest_share == illness.greatest_share == 1.0
    # The target: 4/5 a in all; class 0 has only a (distance 1/5), class 1 half (3/10).
    assert target.closeness_t == pytest.approx(0.3)
    # Illness: 4/5 flu in all; class 0 has 2/3 (distance 2/15), class 1 only flu (1/5).
    assert illness.closeness_t == pytest.approx(0.2)


def test_warnings_name_the_measured_share(sheet: Sheet) -> None:
    again, same, ill, alone, imputed = sheet.warnings
    assert "imputing 3 missing values" in imputed
    assert same.startswith("60.0% of the records")
    assert "one single value of the target" in same
    assert "release with --l 2." in same
    assert ill.startswith("40.0% of the records")
    assert "release with --l illness=2." in ill
    assert sheet.giveaways == (same, ill)
    named = [replace(each, column="Diagnose (ICD-10)") for each in sheet.diversity]
    pasted = replace(sheet, diversity=tuple(named)).giveaways[1]
    assert "--l 'Diagnose (ICD-10)=2'." in pasted
    assert alone.startswith("20.0% of the records")
    assert "'illness'" in alone
    assert "released 1 time before" in again


def test_the_sheet_is_json(sheet: Sheet) -> None:
    fields = json.loads(sheet.to_json())
    assert fields["k"] == 2
    assert fields["diversity"][1]["column"] == "illness"
    assert fields["population"].startswith("the table itself")
    assert len(fields["warnings"]) == 5
    assert fields["enforced"] == {"illness": {"l": 1}}
    assert fields["joined"]["ncp_before"] == 0.25


def test_a_sheet_reads_what_it_writes(sheet: Sheet, tmp_path: Path) -> None:
    released = replace(sheet, root=Digest(bytes(range(32))), overridden=("it did not pass",))
    both = replace(sheet.diversity[0], greatest_share_of_persons=0.5, closeness_t_of_persons=0.25)
    people = replace(sheet, diversity=(both,))
    for each in (sheet, released, people, replace(sheet, released_before=None, class_sizes=None)):
        (tmp_path / "sheet.json").write_text(each.to_json(), encoding="utf-8")
        assert Sheet.read(tmp_path / "sheet.json") == each
    with pytest.raises(TableError, match=r"none\.json cannot be read"):
        Sheet.read(tmp_path / "none.json")
    # As it was written before people and losses were measured, and NCP before joining so.
    before = json.loads(sheet.to_json())
    del before["losses"]
    before["joined"]["ncp_after"] = 0.3
    sheet = replace(sheet, losses=(), joined=replace(sheet.joined, ncp_before=None))
    for each in before["diversity"]:
        del each["greatest_share_of_persons"], each["closeness_t_of_persons"]
    assert Sheet.from_json(json.dumps(before)) == sheet


def test_a_damaged_sheet_is_refused_in_a_sentence(sheet: Sheet) -> None:
    """Whatever is taken out of it, or put in the place of anything."""
    whole = json.loads(sheet.to_json())
    wrongs: list[object] = [None, True, [{}], {"": {"": []}}]
    optional = {
        "losses",
        "bins",
        "linked",
        "suppressed",
        "class_sizes",
        "released_before",
        "root",
        "bound_owners",
        "bound_owners_exact",
        "told_by_joining",
        "over_time",
    }
    for name in optional:
        for wrong in wrongs[1:]:
            with pytest.raises(TableError, match="privacy sheet"):
                Sheet.from_json(json.dumps(whole | {name: wrong}))
    for name in whole.keys() - optional:
        with pytest.raises(TableError, match="privacy sheet"):
            Sheet.from_json(json.dumps({key: value for key, value in whole.items() if key != name}))
        for wrong in wrongs:
            with pytest.raises(TableError, match="privacy sheet"):
                Sheet.from_json(json.dumps(whole | {name: wrong}))
    within: dict[str, object] = {"diversity": [{}], "joined": {}, "losses": [{}]}
    within["enforced"] = {"y": {"m": 1}}
    for name, inner in within.items():
        with pytest.raises(TableError, match=name):
            Sheet.from_json(json.dumps(whole | {name: inner}))
    empty = {"releases": [], "least_by": {"y": 2}, "changing": {}, "returning": 0, "withheld": 0}
    with pytest.raises(TableError, match="over_time"):
        Sheet.from_json(json.dumps(whole | {"over_time": empty}))
    for root in ("", "0" * 63, "F" * 64, 5):
        with pytest.raises(TableError, match="root"):
            Sheet.from_json(json.dumps(whole | {"root": root}))


def test_a_sheet_without_a_target(sheet: Sheet) -> None:
    members = ClassMembers(codes(0, 0, 0, 1, 1), 2)
    attributes = [column("note", "kept", [1, 1, 1, 1, 1])]
    made = privacy.measure(members, attributes, sheet, sheet.joined, sheet.losses)
    assert made.diversity == ()
    assert made.same_target == 0.0
    assert made.giveaways == ()


def test_what_does_not_hold_of_the_published_table_is_named(sheet: Sheet) -> None:
    asked = {"y": {"l": 2, "cap": 0.5, "t": 0.3}, "illness": {"l": 1, "cap": 1.0, "t": 0.1}}
    assert sheet.unmet == ()
    assert replace(sheet, enforced=asked).unmet == (
        "l of column 'y' is 1, not 2",
        "cap of column 'y' is 1, not 0.5",
        "t of column 'illness' is 0.2, not 0.1",
    )
