"""Remedies for kept and sensitive columns: rounding, caps, bins, and leaving a column out."""

import json
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from client.release.releases import Job, job
from verix_anon.client.manifest import read_manifest
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.prepare import prepare
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.release import Released, ReleaseOptions, release
from verix_anon.client.table.roles import Declared
from verix_anon.errors import TableError
from verix_anon.provider.local import LocalProvider

N = 90
DECLARED = Declared(
    target="back",
    quasi=["age", "zip"],
    kept=["cost", "seen"],
    sensitive=["ill", "dose"],
    identifier=["name"],
)


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    cost = rng.gamma(2, 900, N).round(2).tolist()
    cost[4] = None
    return {
        "name": [f"p{i}" for i in range(N)],
        "age": rng.integers(18, 90, N).tolist(),
        "zip": rng.choice(["A", "B", "C"], N).tolist(),
        "cost": cost,
        "seen": [date(2024, 1 + i % 12, 1 + i % 28) for i in range(N)],
        "ill": rng.choice(["I21.0", "I21.4", "J18.9", "J"], N).tolist(),
        "dose": rng.integers(0, 100, N).tolist(),
        "back": (rng.random(N) < 0.4).tolist(),
    }


@pytest.fixture(scope="module")
def clinic() -> Job:
    return job(pa.table(columns()), DECLARED)


def values(released: Released[Any], name: str) -> list[Any]:
    found: list[Any] = released.table[name].to_pylist()
    return found


def test_numbers_go_to_the_nearest_multiple(clinic: Job) -> None:
    released = clinic.release(round_to={"cost": 500, "dose": 10})
    raw = columns()
    for before, after in zip(raw["cost"], values(released, "cost"), strict=True):
        assert (before is None) == (after is None)
        assert before is None or (after % 500 == 0 and abs(before - after) <= 250)
    assert released.table.schema.field("dose").type == pa.int64()
    assert {v % 10 for v in values(released, "dose")} == {0}


def test_what_is_rounded_up_need_not_fit_its_type() -> None:
    table = pa.table(columns() | {"dose": pa.array([250, 120, 90] * (N // 3), pa.uint8())})
    case = job(table, DECLARED)
    assert set(values(case.release(round_to={"dose": 100}), "dose")) == {300, 100}
    fitting = case.release(round_to={"dose": 50}).table["dose"]
    assert (set(fitting.to_pylist()), fitting.type) == ({250, 100}, pa.uint8())


def test_bins_are_for_all_columns_or_by_column(clinic: Job, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="bins are auto, or a width for each column, not '5y'"):
        clinic.release(bins="5y")
    # Of a kept column `auto` says nothing.
    clinic.release(bins="auto", round_to={"dose": 10}, out=tmp_path / "out.csv")
    said = json.loads((tmp_path / "out.schema.json").read_text())["fields"]
    found = {each["name"]: each["verix"] for each in said}
    assert "bins" in found["age"]
    assert found["dose"] == {"role": "sensitive", "round": 10}


def test_dates_go_to_the_first_day_of_their_period(clinic: Job) -> None:
    found = values(clinic.release(round_to={"seen": "quarter"}), "seen")
    wanted = [date(2024, 3 * ((d.month - 1) // 3) + 1, 1) for d in columns()["seen"]]
    assert found == wanted


def test_what_lies_beyond_a_cap_is_the_cap(clinic: Job) -> None:
    found = values(clinic.release(top_code={"dose": (10, 80)}), "dose")
    assert found == [min(max(v, 10), 80) for v in columns()["dose"]]


def test_bins_are_ranges_and_leading_characters(clinic: Job, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    released = clinic.release(out=out, bins={"dose": 25, "ill": 3, "seen": "6m", "cost": 1000})
    assert set(values(released, "dose")) == {"0..24", "25..49", "50..74", "75..99"}
    assert set(values(released, "ill")) == {"I21*", "J18*", "J"}
    assert set(values(released, "seen")) == {"2024-Q1..2024-Q2", "2024-Q3..2024-Q4"}
    assert values(released, "cost")[4] is None
    fields = json.loads((tmp_path / "out.schema.json").read_text())["fields"]
    told = {each["name"]: (each["type"], each["verix"].get("bins")) for each in fields}
    assert told["dose"] == ("string", 25)
    assert told["ill"] == ("string", 3)


def test_bins_of_a_sensitive_column_keep_its_order(clinic: Job) -> None:
    plain, binned = clinic.release(), clinic.release(bins={"dose": 25})
    for sheet in (plain.sheet, binned.sheet):
        assert next(d for d in sheet.diversity if d.column == "dose").distance == "ordered"
    assert next(d for d in binned.sheet.diversity if d.column == "dose").n_values == 4


def test_bins_that_read_differently_are_measured_apart(clinic: Job) -> None:
    released = clinic.release(bins={"dose": 1}, top_code={"dose": (10, 80)})
    texts = {*values(released, "dose")}
    assert {"80", ">=80"} <= texts
    measured = next(d for d in released.sheet.diversity if d.column == "dose")
    assert (measured.n_values, measured.distance) == (len(texts), "ordered")


def test_what_is_published_is_what_is_measured(clinic: Job) -> None:
    """What is asked of a sensitive column holds of the values that readers see."""
    released = clinic.release(bins={"ill": 1}, l={"ill": 2})
    groups = released.table.to_pandas().groupby(["age", "zip"])["ill"]
    assert groups.nunique().min() >= 2
    plain, rounded = clinic.release(), clinic.release(round_to={"cost": 2000})
    assert plain.sheet.singled_out_by["cost"] > 0.9
    assert rounded.sheet.singled_out_by["cost"] < plain.sheet.singled_out_by["cost"] / 2


def test_the_order_of_a_dropped_column_is_not_laid_over_its_cells() -> None:
    table = columns()
    table["age"] = sorted(table["age"])
    case = job(pa.table(table), DECLARED)
    for drop in ([], ["age"]):
        warnings = case.release(keep_order=True, drop=drop).warnings
        assert any("sorted by 'age'" in each for each in warnings) is not bool(drop)


def test_a_dropped_column_is_gone_and_nothing_is_asked_of_it(clinic: Job) -> None:
    released = clinic.release(drop=["cost", "ill", "age"])
    assert released.table.column_names == ["zip", "seen", "dose", "back"]
    assert "cost" not in released.sheet.singled_out_by
    assert [d.column for d in released.sheet.diversity] == ["dose", "back"]
    # Nothing of the age is left, so the classes are those of the postcode.
    assert released.sheet.n_classes == released.table["zip"].to_pandas().nunique()
    assert [loss.column for loss in released.sheet.losses] == ["zip"]
    assert released.sheet.ncp == pytest.approx((1 + released.sheet.losses[0].ncp) / 2)
    assert released.sheet.bound_owners_exact == 0
    assert not any("column 'age'" in warning for warning in released.warnings)
    with pytest.raises(TableError, match="ask nothing of it"):
        clinic.release(drop=["ill"], l={"ill": 2})
    with pytest.raises(TableError, match="a dropped column cannot be rounded"):
        clinic.release(drop=["cost"], round_to={"cost": 5})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"round_to": {"kost": 5}}, "did you mean 'cost'"),
        ({"drop": ["back"]}, "declared as target"),
        ({"bins": {"name": 2}}, "declared as identifier"),
        ({"round_to": {"ill": 5}}, "categorical; only numbers and dates can be rounded"),
        ({"round_to": {"cost": 0}}, "greater than 0"),
        ({"bins": {"seen": 3}}, "such as 5y"),
        ({"top_code": {"dose": (5, 5)}}, "below the upper"),
    ],
)
def test_remedies_that_do_not_fit(clinic: Job, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        clinic.release(**options)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_every_library_gets_the_same(clinic: Job, library: Any) -> None:
    table = library(columns())
    if library is pd.DataFrame:
        table.index = range(100, 100 + N)
    options: dict[str, Any] = {"round_to": {"dose": 10}, "bins": {"ill": 1}, "drop": ["cost"]}
    found = job(table, DECLARED).release(**options).table
    wanted = clinic.release(**options).table
    assert list(found.columns) == wanted.column_names
    for name in ("dose", "ill", "back"):
        assert found[name].to_numpy().tolist() == wanted[name].to_pylist()


def test_times_are_rounded_by_days() -> None:
    table = columns() | {"seen": [datetime(2024, 1, 1 + i % 28, i % 24, 30) for i in range(N)]}
    found = job(pa.table(table), DECLARED).release(round_to={"seen": "month"}).table["seen"]
    assert set(found.to_pylist()) == {datetime(2024, 1, 1)}


def test_the_worst_warning_comes_first_with_its_remedy(clinic: Job) -> None:
    sheet = clinic.release().sheet
    first = sheet.warnings[0]
    assert first.startswith("100.0% of the records are singled out")
    assert "release with --bins cost=auto, which makes it coarser, or" in first
    assert "with --drop cost, which leaves it out." in first
    for name in ("cost", "dose", "seen"):
        coarse = clinic.release(bins={name: "auto"}).sheet
        assert coarse.singled_out_by[name] <= sheet.singled_out_by[name] / 2
        assert Sheet.from_json(coarse.to_json()) == coarse


def test_a_remedy_can_be_pasted() -> None:
    table = columns()
    table["the cost (EUR)"] = table.pop("cost")
    declared = Declared(
        target="back",
        quasi=["age", "zip"],
        kept="the cost (EUR)",
        identifier=["name", "seen"],
        sensitive=["ill", "dose"],
        person="record",
    )
    warnings = job(pa.table(table), declared).release(person="record").warnings
    assert "--drop 'the cost (EUR)', which leaves it out" in warnings[0]


def test_a_little_is_not_nothing() -> None:
    sheet = clinic_sheet(given_away=0.0001, singled_out=0.0002)
    assert sheet.measured_warnings[0].startswith("under 0.1% of the records are singled out")
    said = "under 0.1% of the records are in classes with one single value of the target"
    assert sheet.measured_warnings[1].startswith(said)
    assert clinic_sheet(given_away=0.4, singled_out=0.2).measured_warnings[0].startswith("40.0%")


def clinic_sheet(*, given_away: float, singled_out: float) -> Sheet:
    sheet = job(pa.table(columns()), DECLARED).release().sheet
    diversity = tuple(
        replace(d, given_away=given_away if d.is_target else 0.0) for d in sheet.diversity
    )
    return replace(sheet, diversity=diversity, singled_out=singled_out)


SAID = {
    "round": {"cost": 500},
    "top_code": {"dose": "10:80", "seen": "2024-03-01:"},
    "bins": {"age": 20},
    "drop": ["ill"],
    "suppress": 0.05,
}


def test_the_roles_file_says_what_release_does(clinic: Job) -> None:
    said = replace(clinic, manifest=replace(clinic.manifest, release=SAID))
    released, sheet = said.release(), said.release().sheet
    assert "ill" not in released.table.column_names
    assert {v % 500 for v in values(released, "cost") if v is not None} == {0}
    assert (min(values(released, "dose")), max(values(released, "dose"))) == (10, 80)
    assert min(values(released, "seen")) == date(2024, 3, 1)
    assert sheet.bins["age"].width == "20"
    assert sheet.suppressed is not None
    # What is given wins.
    given = said.release(bins={"cost": 1000, "age": 10}, suppress=0.01)
    assert "0..1000" in values(given, "cost")
    assert given.sheet.bins["age"].width == "10"


@pytest.mark.parametrize("said", [{"bins": 5}, {"suppress": 2}, {"drop": ["x"]}, {"ro": 1}])
def test_what_no_release_can_do_is_found_when_preparing(said: dict[str, Any]) -> None:
    with pytest.raises(TableError):
        prepare(pa.table(columns()), roles=replace(DECLARED, release=said, person="record"), k=3)


def test_a_roles_file_is_kept_in_the_manifest(tmp_path: Path) -> None:
    text = """target = "back"
k = 3
[columns]
age = "quasi"
zip = "quasi"
cost = "kept"
seen = "kept"
ill = "sensitive"
dose = "sensitive"
name = "identifier"
[release]
bins = "auto"
round = { cost = 500 }
"""
    (tmp_path / "roles.toml").write_text(text)
    made = prepare(pa.table(columns()), roles=tmp_path / "roles.toml")
    write_manifest(made.manifest, tmp_path / "m")
    assert read_manifest(tmp_path / "m").release == {"bins": "auto", "round": {"cost": 500}}
    delivery = LocalProvider(threads=1).anonymize(made.submission)
    options = ReleaseOptions(force=True)
    table = pa.table(columns())
    released = release(delivery, made.manifest, None, table=table, options=options)
    assert "age" in released.sheet.bins
