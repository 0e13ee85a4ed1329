"""l, cap and t: what is asked for holds of the published table, by a recount of its own."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from client.release.releases import DECLARED, Job, columns, job
from experiments.data import describe, load
from verix_anon.client.manifest import read_manifest
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.release import Released, join
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.roles_file import roles_text
from verix_anon.client.table.task import Task
from verix_anon.datasets import census
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.protocol.contract import Kind

QUASI = ("age", "city", "weight", "born")


@pytest.fixture(scope="module")
def case() -> Job:
    """Leaves of k records to begin with, so that traps leave many short."""
    return job(pa.table(columns(400)), k=3, min_leaf=3, traps=80)


def recounted(released: Released[Any], source: Any, quasi: Any, column: str) -> dict[str, float]:
    """The measures of a column by pandas, from what anybody sees of the table."""
    frame = released.table.to_pandas()
    values = source[column].to_pandas()
    overall = values.value_counts(normalize=True)
    groups = values.groupby([frame[name] for name in quasi])
    shares = groups.value_counts(normalize=True)
    distance = max(
        (group.value_counts(normalize=True).reindex(overall.index, fill_value=0) - overall)
        .abs()
        .sum()
        / 2
        for _, group in groups
    )
    same = groups.transform("nunique") == 1
    return {
        "k": groups.size().min(),
        "l": groups.nunique().min(),
        "cap": shares.max(),
        "t": distance,
        "same": same.mean(),
    }


def check(released: Released[Any], table: Any, quasi: Any, k: int) -> None:
    """Recount every column the sheet measures, and hold it to what was enforced."""
    for measured in released.sheet.diversity:
        found = recounted(released, table, quasi, measured.column)
        assert found["k"] == released.sheet.k >= k
        assert found["l"] == measured.distinct_l
        assert found["cap"] == pytest.approx(measured.greatest_share)
        assert found["t"] == pytest.approx(measured.closeness_t)
        assert found["same"] == pytest.approx(measured.given_away)
        asked = released.sheet.enforced.get(measured.column, {})
        assert found["l"] >= asked.get("l", 1)
        assert found["cap"] <= asked.get("cap", 1.0)
        assert found["t"] <= asked.get("t", 1.0) + 1e-9
    before = released.sheet.joined.ncp_before
    assert before is not None
    assert before <= released.sheet.ncp + 1e-9


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"l": 2},
        {"l": {"illness": 3}},
        {"cap": 0.8},
        {"cap": {"illness": 0.6, "rich": 0.9}},
        {"t": 0.4},
        {"l": 2, "cap": {"illness": 0.7}, "t": {"illness": 0.4}},
    ],
)
def test_what_is_asked_for_holds(case: Job, asked: dict[str, Any]) -> None:
    released = case.release(**asked, representation="set")
    check(released, case.table, QUASI, 3)
    assert released.sheet.joined.records > 0
    given = {
        measure: value if isinstance(value, Mapping) else {"rich": value}
        for measure, value in asked.items()
    }
    found = released.sheet.enforced
    assert {m: {c: found[c][m] for c in found if m in found[c]} for m in given} == given


def test_asking_for_more_costs_more(case: Job) -> None:
    plain, diverse = case.release().sheet, case.release(l=2).sheet
    assert plain.same_target > 0
    assert diverse.same_target == 0
    assert not any("share the target" in warning for warning in diverse.warnings)
    # The same figure; a sum of floats may end otherwise on another processor.
    assert plain.joined.ncp_before == pytest.approx(diverse.joined.ncp_before, rel=1e-12)
    assert plain.ncp < diverse.ncp
    assert plain.joined.records < diverse.joined.records


def test_the_salt_decides_what_else_is_joined(case: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "CHANCE", 0.5)
    other = replace(case, manifest=replace(case.manifest, salt=bytes(range(32))))
    first, again, others = (of.release(l=2).table for of in (case, case, other))
    assert first.equals(again)
    assert not first.equals(others)
    assert others.num_rows == first.num_rows
    # k has nothing to hide.
    assert case.release().table.equals(other.release().table)


def test_the_sheet_bounds_what_joining_tells(case: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    assert case.release().sheet.told_by_joining == 0
    assert "revealed by joining" not in case.release().sheet.facts()
    assert case.release(l=2).sheet.told_by_joining == 0
    # No node is small, so that every residue is known for what it is.
    monkeypatch.setattr(join, "SMALL", 0)
    sheet = case.release(l=2).sheet
    assert sheet.told_by_joining is not None
    assert 0.05 < sheet.told_by_joining < sheet.joined.records / sheet.n_records
    said = f"at most {sheet.told_by_joining:.2%} of the records are certain"
    assert said in sheet.facts()["revealed by joining"]
    assert Sheet.from_json(sheet.to_json()) == sheet
    older = json.loads(sheet.to_json())
    del older["told_by_joining"]
    assert "revealed by joining" not in Sheet.from_json(json.dumps(older)).facts()


def test_what_is_given_wins_over_the_manifest(case: Job) -> None:
    kept = replace(case.manifest, diversity={"rich": {"l": 2, "cap": 0.9}, "illness": {"l": 2}})
    held = replace(case, manifest=kept)
    assert held.release().sheet.enforced == kept.diversity
    found = held.release(cap=1.0, l={"illness": 3}).sheet
    assert found.enforced == {"rich": {"l": 2, "cap": 1.0}, "illness": {"l": 3}}
    assert "illness: l 3" in found.facts()["enforced"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"l": 1.5}, "l of column 'rich' must be a whole number"),
        ({"l": 0}, "1 or more"),
        ({"cap": 0}, "a share above 0"),
        ({"cap": {"illness": 1.1}}, "cap of column 'illness'"),
        ({"t": -0.1}, "a distance from 0 to 1"),
        ({"l": {"note": 2}}, "column 'note' is declared as kept"),
        ({"l": {"age": 2}}, "column 'age' is declared as quasi"),
        ({"l": {"agee": 2}}, "no column 'agee'"),
    ],
)
def test_what_cannot_be_asked_for(case: Job, asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TableError, match=sentence):
        case.release(**asked)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"l": 3}, "column 'rich' has 2 values in the whole table"),
        ({"cap": 0.4}, "ask for a greater cap"),
    ],
)
def test_more_than_the_table_has_is_refused(
    case: Job, asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(NotAcceptedError, match=sentence):
        case.release(**asked, force=True)


def test_classes_that_look_alike_are_checked_again() -> None:
    # {p1: x, p2: y} and {p3: x, p2: y} keep to one half; as one, x has two of three.
    table = pa.table(
        {
            "age": [10, 11, 20, 21],
            "person": ["p1", "p2", "p3", "p2"],
            "illness": ["x", "y", "x", "y"],
            "rich": [False, False, True, True],
        }
    )
    declared = Declared(target="rich", quasi=["age"], identifier="person", sensitive="illness")
    visits = job(table, declared, k=2, min_leaf=2, traps=0)
    asked: dict[str, Any] = {"person": "person", "cap": {"illness": 0.5}}
    assert visits.release(**asked).n_classes == 2
    with pytest.raises(NotAcceptedError, match=r"cap of column 'illness' is 0\.667, not 0\.5"):
        visits.release(**asked, round_to={"age": 100})


def test_roles_that_ask_what_cannot_be() -> None:
    declared = replace(DECLARED, diversity={"note": {"l": 2}})
    with pytest.raises(TableError, match="declared as kept"):
        job(pa.table(columns()), declared)
    declared = replace(DECLARED, diversity={"rich": {"k": 2}})
    with pytest.raises(TableError, match="asked for 'k', not l, cap or t"):
        job(pa.table(columns()), declared)


def test_the_roles_file_asks_and_the_manifest_keeps_it(tmp_path: Path) -> None:
    table, roles, kept = census(200), tmp_path / "roles.toml", tmp_path / "manifest.verix"
    roles.write_text(roles_text(table, "census") + '"income" = { l = 2, cap = 0.9 }\n')
    options = PrepareOptions(witnesses=0, traps="none", threads=1)
    write_manifest(prepare(table, roles=roles, options=options).manifest, kept)
    assert read_manifest(kept).diversity == {"income": {"l": 2, "cap": 0.9}}
    roles.write_text(roles_text(table, "census") + '"income" = { l = "two" }\n')
    with pytest.raises(TableError, match="l must be a finite number"):
        prepare(table, roles=roles, options=options)


def test_a_quantity_is_measured_over_ranks() -> None:
    pay = [float(i) for i in range(60)]
    case = job(pa.table(columns() | {"pay": pay}), replace(DECLARED, kept=["note", "pay"]))
    held = replace(
        case,
        manifest=replace(
            case.manifest,
            roles={**case.manifest.roles, "rich": "kept", "pay": "target"},
            task=Task.QUANTITY,
        ),
    )
    sheet = held.release(t=0.3).sheet
    assert [(d.column, d.distance) for d in sheet.diversity] == [
        ("illness", "equal"),
        ("pay", "ordered"),
    ]
    assert sheet.diversity[1].closeness_t <= 0.3 + 1e-9


def test_without_a_target() -> None:
    case = job(pa.table(columns()))
    roles = {**case.manifest.roles, "rich": "kept"}
    held = replace(case, manifest=replace(case.manifest, roles=roles, task=Task.NONE))
    assert [d.column for d in held.release(l={"illness": 2}).sheet.diversity] == ["illness"]
    with pytest.raises(TableError, match="there is no target; l needs the column"):
        held.release(l=2)


def test_the_census() -> None:
    table = census(3_000, seed=4)
    declared = Declared(target="income", quasi="all", sensitive=["marital_status"])
    people = job(table, declared, k=5, min_leaf=5, traps=300)
    quasi = [n for n in table.column_names if n not in ("income", "marital_status")]
    released = people.release(l={"income": 2, "marital_status": 2}, representation="set")
    check(released, table, quasi, 5)
    assert released.sheet.same_target == 0
    assert people.release().sheet.same_target > 0.2


@pytest.mark.long
def test_adult() -> None:
    try:
        table = load("adult", fetch=_from_nowhere).slice(0, 8_000).combine_chunks()
    except TableError as error:
        pytest.skip(f"the public table is not at hand: {error}")
    kinds = dict.fromkeys(describe("adult").nominal, Kind.CATEGORICAL)
    declared = Declared(target="target", quasi="all", kinds=kinds)
    quasi = [name for name in table.column_names if name != "target"]
    made = job(table, declared, k=5, min_leaf=5, traps=400)
    for asked in ({}, {"l": 2}, {"cap": 0.9}):
        check(made.release(**asked, representation="set"), table, quasi, 5)
    assert made.release(l=2).sheet.same_target == 0


def _from_nowhere(url: str) -> bytes:
    raise TableError(f"no network for {url}")
