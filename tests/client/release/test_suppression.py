"""Suppression: what costs most to keep is left out, and all that is asked for holds of the rest."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from client.release.releases import Job, job
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.release import ReleaseOptions
from verix_anon.client.release.classes import _Units
from verix_anon.client.release.preview import Preview
from verix_anon.client.table.roles import Declared
from verix_anon.errors import TableError

N = 400
DECLARED = Declared(
    target="rich",
    quasi=["age", "gain", "city"],
    sensitive=["ill"],
    kept=["note"],
    identifier=["who"],
    person="record",
)


def columns(seed: int = 1, n_people: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    gain = np.where(rng.random(N) < 0.05, rng.integers(1_000, 100_000, N), rng.integers(0, 50, N))
    return {
        "who": (rng.integers(0, n_people, N) if n_people < N else np.arange(N)).tolist(),
        "age": rng.integers(18, 90, N).tolist(),
        "gain": gain.tolist(),
        "city": rng.choice(["Bern", "Chur", "Genf"], N, p=[0.6, 0.3, 0.1]).tolist(),
        "ill": rng.choice(["flu", "cold", "none"], N).tolist(),
        "note": [f"note {i}" for i in range(N)],
        "rich": (rng.random(N) < 0.3).tolist(),
    }


@pytest.fixture(scope="module")
def people() -> Job:
    return job(pa.table(columns()), DECLARED, traps=40)


QUASI = ["age", "gain", "city"]


@pytest.mark.parametrize("asked", [{}, {"l": 2}, {"cap": 0.8}, {"l": 2, "t": 0.6}])
@pytest.mark.parametrize("share", [0.01, 0.05])
def test_what_is_left_holds_what_is_asked(people: Job, asked: dict[str, Any], share: float) -> None:
    whole = people.release(person="record", **asked)
    released = people.release(person="record", suppress=share, **asked)
    left_out = released.sheet.suppressed
    assert left_out is not None
    assert 0 < left_out.records == left_out.people <= share * N
    assert released.table.num_rows == released.sheet.n_records == N - left_out.records
    groups = released.table.to_pandas().groupby(QUASI)["rich"]
    assert groups.size().min() >= 3
    assert "l" not in asked or groups.nunique().min() >= asked["l"]
    most = groups.agg(lambda rich: rich.value_counts(normalize=True).max()).max()
    assert most <= asked.get("cap", 1.0)
    assert released.sheet.ncp < whole.sheet.ncp


def test_rows_are_those_of_the_owner(people: Job) -> None:
    released = people.release(person="record", suppress=0.05, keep_order=False)
    raw = columns()
    assert len({*released.rows.tolist()}) == released.table.num_rows
    for name in ("note", "ill", "rich"):
        assert [raw[name][row] for row in released.rows] == released.table[name].to_pylist()


def test_outliers_go_first(people: Job) -> None:
    released = people.release(person="record", suppress=0.02)
    gone = sorted({*range(N)} - {*released.rows.tolist()})
    assert np.mean([columns()["gain"][row] for row in gone]) > 10_000


def test_the_sheet_says_what_moved(people: Job) -> None:
    released = people.release(person="record", suppress=0.05)
    sheet = released.sheet
    assert sheet.suppressed is not None
    raw, left = (np.array(t) for t in (columns()["rich"], released.table["rich"].to_pylist()))
    assert sheet.suppressed.moved["rich"] == pytest.approx(abs(raw.mean() - left.mean()))
    assert set(sheet.suppressed.moved) == {*QUASI, "ill", "note", "rich"}
    assert max(sheet.suppressed.moved.values()) <= 0.05 + 1e-9
    assert "records of" in sheet.facts()["suppressed"]
    assert Sheet.from_json(sheet.to_json()) == sheet
    assert people.release(person="record").sheet.suppressed is None


def test_the_share_is_of_people() -> None:
    table = columns(n_people=150)
    found = job(pa.table(table), DECLARED).release(person="who", suppress=0.04)
    gone = {*range(N)} - {*found.rows.tolist()}
    people = {table["who"][row] for row in gone}
    n_people = len({*table["who"]})
    assert found.sheet.suppressed is not None
    assert found.sheet.suppressed.people == len(people) <= 0.04 * n_people
    frame = found.table.to_pandas()
    frame["who"] = [table["who"][row] for row in found.rows]
    assert frame.groupby(QUASI)["who"].nunique().min() >= 3


def test_it_goes_with_bins_remedies_and_pandas() -> None:
    made = job(pd.DataFrame(columns()), DECLARED)
    options: dict[str, Any] = {"suppress": 0.05, "bins": {"age": 20}, "drop": ["note"]}
    released = made.release(person="record", **options)
    assert list(released.table.columns) == ["age", "gain", "city", "ill", "rich"]
    assert released.table.groupby(QUASI).size().min() >= 3
    assert [columns()["ill"][row] for row in released.rows] == released.table["ill"].tolist()
    preview = Preview.of(released, ReleaseOptions(**options), made.manifest, made.table)
    shown = {column.name: column for column in preview.columns}
    assert shown["ill"].is_same
    assert shown["note"].after == {}
    assert preview.options["suppress"] == 0.05


def test_a_share_is_a_share() -> None:
    for share in (-0.1, 1.0):
        with pytest.raises(TableError, match="a share of the people"):
            ReleaseOptions(suppress=share)


def test_the_rest_of_a_class_is_what_is_left_without_a_unit() -> None:
    rng = np.random.default_rng(2)
    of_class, names = np.sort(rng.integers(0, 12, 80)), rng.integers(0, 4, 80)
    values = np.where(rng.random(80) < 0.1, np.nan, rng.integers(0, 6, 80).astype(float))
    codes = rng.integers(0, 5, 80)
    units = _Units(of_class, names)
    ranges, sets, left = units.ranges(values), units.sets(values), units.left(codes)
    for unit, its_class in enumerate(units.of_class):
        is_whole, is_rest = of_class == its_class, (of_class == its_class) & (units.of_row != unit)
        for found, is_in in zip((0, 1), (is_whole, is_rest), strict=True):
            there = values[is_in][~np.isnan(values[is_in])]
            assert ranges[found][unit] == (np.ptp(there) if there.size else 0)
            assert sets[found][unit] == max(len(set(there)) - 1, 0)
        assert left[unit] == len(set(codes[is_rest]))
