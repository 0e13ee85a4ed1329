"""release(): what it publishes, and that its classes hold k genuine persons."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import support
from client.release.releases import DECLARED, Job, N, accepted, columns, job, manifest_of, parse
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.client.release.representation import Representation
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.protocol.contract import Contract, Kind
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.records import Records
from verix_anon.provider.local import LocalProvider


def test_columns_rows_and_roles(case: Job) -> None:
    table = case.release().table
    names = ["age", "city", "weight", "born", "illness", "note", "rich"]
    assert table.column_names == names
    for name in ("illness", "note", "rich"):
        assert table[name].equals(case.table[name])


def test_each_value_lies_in_its_interval_and_classes_hold_k(case: Job) -> None:
    released = case.release(representation=Representation.SET)
    table, source = released.table.to_pydict(), case.table.to_pydict()
    for name in ("age", "weight"):
        for text, value in zip(table[name], source[name], strict=True):
            low, high = parse(text)
            assert low <= value <= high
    for text, value in zip(table["born"], source["born"], strict=True):
        low, _, high = text.partition("..")
        assert low.startswith("<=") or low.removeprefix(">=") <= str(value)
        assert (high or low).startswith(">=") or str(value) <= (high or low).removeprefix("<=")
    for text, value in zip(table["city"], source["city"], strict=True):
        assert value in text.strip("{}").split(", ")
    classes = pd.DataFrame(table).groupby(["age", "city", "weight", "born"]).size()
    assert classes.min() == released.sheet.k >= 3
    assert len(classes) == released.n_classes == released.sheet.n_classes


def test_the_table_comes_back_as_what_was_given() -> None:
    data = columns()
    in_pandas = job(pd.DataFrame(data, index=[f"i{i // 2}" for i in range(N)])).release()
    # An index is not a column.
    assert list(in_pandas.table.index) == list(range(N))
    in_polars, in_arrow = job(pl.DataFrame(data)).release(), job(pa.table(data)).release()
    assert isinstance(in_pandas.table, pd.DataFrame)
    assert isinstance(in_polars.table, pl.DataFrame)
    assert isinstance(in_arrow.table, pa.Table)
    expected = in_arrow.table.to_pydict()
    assert in_polars.table.to_dict(as_series=False) == expected
    assert in_pandas.table.to_dict("list") == expected
    assert in_pandas.sheet == in_polars.sheet == in_arrow.sheet


def test_bounds_are_the_user_s_own_values(case: Job) -> None:
    table = case.release(representation=Representation.BOUNDS, exact_ends=True).table
    assert table.column_names[:4] == ["age_min", "age_max", "city_min", "city_max"]
    assert table["age_min"].type == pa.int64()
    assert table["born_min"].type == pa.date32()
    assert table["weight_max"].type == pa.float64()
    data, source = table.to_pydict(), case.table.to_pydict()
    for name in ("age", "city", "weight", "born"):
        low, high = data[f"{name}_min"], data[f"{name}_max"]
        order = ["Bern", "Chur", "Genf"].index if name == "city" else lambda value: value
        for a, value, b in zip(low, source[name], high, strict=True):
            assert order(a) <= order(value) <= order(b)
        # Both ends belong to real people.
        assert set(low) | set(high) <= set(source[name])


def test_midpoints_and_means(case: Job) -> None:
    def published(form: Representation) -> Any:
        return case.release(representation=form, exact_ends=True).table.to_pandas()

    bounds, middle = published(Representation.BOUNDS), published(Representation.MIDPOINT)
    mean = published(Representation.MEAN)
    keys = [bounds[name] for name in bounds.columns if name.endswith(("_min", "_max"))]
    source = case.table.to_pandas()
    assert middle["age"].tolist() == ((bounds["age_min"] + bounds["age_max"]) / 2).tolist()
    expected = source["weight"].groupby(keys).transform("mean")
    assert mean["weight"].to_numpy() == pytest.approx(expected.to_numpy())
    cities = ["Bern", "Chur", "Genf"]
    low, high = (bounds[f"city_{end}"].map(cities.index) for end in ("min", "max"))
    assert middle["city"].tolist() == [cities[i] for i in (low + high) // 2]
    # Categories have no mean: what occurs is said.
    assert mean["city"].equals(case.release().table.to_pandas()["city"])


def test_unordered_categories_stay_sets_or_become_shares() -> None:
    case = job(pa.table(columns()), replace(DECLARED, orders={}))
    sets = case.release().table.to_pandas()["city"]
    for form in (Representation.MIDPOINT, Representation.MEAN):
        assert case.release(representation=form).table.to_pandas()["city"].equals(sets)
    shares = case.release(representation=Representation.SHARES).table.to_pandas()
    cities = [f"city_{name}" for name in ("Bern", "Chur", "Genf")]
    assert shares[cities].sum(axis=1).to_numpy() == pytest.approx(1)
    # What the table says of a city on the whole is what is true of it.
    for name in cities:
        share = (np.array(columns()["city"]) == name.removeprefix("city_")).mean()
        assert shares[name].mean() == pytest.approx(share)


def test_names_of_bounds_must_be_free() -> None:
    data = columns() | {"age_min": [1.0] * N}
    clash = job(pa.table(data), replace(DECLARED, kept=["note", "age_min"]))
    with pytest.raises(TableError, match="two columns 'age_min'"):
        clash.release(representation=Representation.BOUNDS)
    # A dropped identifier leaves its name free.
    free = job(pa.table(data), replace(DECLARED, identifier=["name", "age_min"]))
    released = free.release(representation=Representation.BOUNDS, person="record")
    assert "age_min" in released.table.column_names


def test_what_is_missing_is_said_in_every_cell_of_its_class() -> None:
    data = columns()
    for i in range(0, N, 7):
        data["age"][i] = data["city"][i] = None
    released = job(pa.table(data)).release()
    assert released.sheet.missing == {"age": len(range(0, N, 7)), "city": len(range(0, N, 7))}
    source, table = pa.table(data).to_pandas(), released.table.to_pandas()
    for name in ("age", "city"):
        is_missing = source[name].isna().groupby(table[name]).any()
        assert {text for text in is_missing.index if "missing" in text} == set(
            is_missing.index[is_missing]
        )
    for age, text in zip(source["age"], table["age"], strict=True):
        if not np.isnan(age):
            low, high = parse(text.removesuffix(" or missing"))
            assert low <= age <= high


def test_bounds_are_those_of_the_values_that_are_there() -> None:
    data = columns()
    # The imputed value, the lower median, must not widen a class of others.
    for i in range(N):
        data["age"][i] = None if i % 3 == 0 else float(1000 * (i % 2))
    table = job(pa.table(data)).release(representation=Representation.BOUNDS).table.to_pandas()
    present = pd.Series(data["age"]).groupby([table["age_min"], table["age_max"]], dropna=False)
    for bounds, ages in present:
        assert np.array_equal([ages.min(), ages.max()], np.array(bounds, float), equal_nan=True)


def test_imputed_values_are_published_only_if_asked_for_and_warned_of() -> None:
    data = columns()
    data["age"][3] = None
    released = job(pa.table(data), replace(DECLARED, missing="impute")).release()
    assert released.sheet.missing == {"age": 1}
    assert any(line.startswith("After imputing 1 missing value,") for line in released.warnings)
    assert "missing" not in "".join(released.table["age"].to_pylist())


def test_integer_categories_come_back_as_integers() -> None:
    data = columns() | {"room": [i % 4 for i in range(N)]}
    orders = {**DECLARED.orders, "room": ["0", "1", "2", "3"]}
    declared = replace(DECLARED, kinds={"room": Kind.CATEGORICAL}, orders=orders)
    table = job(pa.table(data), declared).release(representation=Representation.BOUNDS).table
    assert table["room_min"].type == pa.int64()


def test_categories_have_bounds_only_in_an_order_of_the_owner_s() -> None:
    data = columns()
    plain = job(pa.table(data), replace(DECLARED, orders={}))
    assert plain.release().n_classes > 1
    with pytest.raises(TableError, match="'city' has categories without an order of yours"):
        plain.release(representation=Representation.BOUNDS)
    cities = pd.Categorical(data["city"], ["Genf", "Chur", "Bern"], ordered=True)
    ordered = job(pd.DataFrame(data | {"city": cities}), replace(DECLARED, orders={}))
    assert ordered.release(representation=Representation.BOUNDS).n_classes > 1


def test_a_set_is_what_occurs_in_the_class() -> None:
    many = job(pa.table(columns(400)), min_leaf=3, traps=0)
    table = many.release(representation=Representation.SET).table.to_pandas()
    source = many.table.to_pandas()["city"]
    classes = [table[name] for name in ("age", "city", "weight", "born")]
    for (_, text, _, _), cities in source.groupby(classes):
        assert text == "{" + ", ".join(sorted(set(cities))) + "}"
    assert "{Bern, Genf}" in set(table["city"])


def test_times_keep_their_zone() -> None:
    moments = pa.array([datetime(2020, 1, 1 + i % 28) for i in range(N)], pa.timestamp("us", "UTC"))
    table = job(pa.table(columns() | {"seen": moments})).release(
        representation=Representation.BOUNDS
    )
    assert table.table["seen_min"].type == pa.timestamp("us", "UTC")


# k on the genuine records


def test_leaves_with_too_few_genuine_records_merge() -> None:
    # Six genuine records and eight traps: k = 2 holds only after merging.
    x = [1.0, 2.0, 3.0, 10.0, 11.0, 12.0]
    table = pa.table({"x": x, "y": ["a", "b", "a", "b", "a", "b"]})
    encoded = read_owner_table(table, Declared(target="y", quasi=["x"]))
    traps = np.array([4.0, 5.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0])
    values = np.concatenate([encoded.of_quasi(0), traps])
    contract = Contract(
        submission_id=support.SUBMISSION_ID, k=2, min_leaf=4, columns=encoded.columns
    )
    records = Records(
        tracker=support.trackers(values.size),
        values=values.reshape(1, -1),
        target=np.arange(values.size, dtype=np.uint8) % 2,
    )
    submission = Submission(contract=contract, records=records)
    owner_row = np.concatenate([np.arange(6), np.full(8, -1)])
    manifest = manifest_of(submission, table, encoded.roles, owner_row)
    delivery = LocalProvider(threads=1).anonymize(submission)
    options = ReleaseOptions(exact_ends=True)
    released = release(delivery, manifest, accepted(delivery), table=table, options=options)
    # The tree cuts at 11 into two leaves of seven; the right one holds one genuine record.
    assert delivery.tree.n_leaves == 2
    assert set(released.table["x"].to_pylist()) == {"1..12"}
    assert released.n_classes == 1
    assert released.sheet.joined.records == released.sheet.joined.largest_class == 6


def test_fewer_people_than_k_are_refused() -> None:
    data = columns() | {"patient": [f"p{i % 2}" for i in range(N)]}
    few = job(pa.table(data), replace(DECLARED, identifier=["name", "patient"]))
    with pytest.raises(NotAcceptedError, match="2 people, fewer than k = 3"):
        few.release(person="patient")
    assert few.release(person="record").sheet.k >= 3
    with pytest.raises(TableError, match="say who a person is"):
        few.release()


def test_people_are_counted_by_person() -> None:
    patients = [None if i % 10 == 9 else f"p{i // 3}" for i in range(N)]
    data = columns() | {"patient": patients}
    visits = job(pa.table(data), replace(DECLARED, identifier=["name"], kept=["note", "patient"]))
    released = visits.release(person="patient")
    table = released.table.to_pandas()
    people = table["patient"].where(table["patient"].notna(), other=pd.Series(range(N)))
    sizes = people.groupby([table[q] for q in ("age", "city", "weight", "born")]).nunique()
    assert sizes.min() == released.sheet.k >= 3
    assert released.sheet.counted_by == "patient"
    assert any("person column 'patient' is published" in w for w in released.warnings)
    with pytest.raises(TableError, match="no column 'doctor'"):
        visits.release(person="doctor")


def test_classes_that_look_alike_are_one(case: Job) -> None:
    released = case.release(
        round_to={"age": 1000, "weight": 1000, "born": 10_000},
        top_code={"age": (None, 1)},
    )
    looks = released.table.select(["age", "city", "weight", "born"]).to_pandas()
    assert released.n_classes == len(looks.drop_duplicates())
    assert released.sheet.k == looks.groupby(list(looks.columns)).size().min()


def test_a_manifest_with_an_unsafe_seed_says_so(case: Job) -> None:
    unsafe = replace(case, manifest=replace(case.manifest, unsafe_seed=True))
    assert any("unsafe seed" in warning for warning in unsafe.release().warnings)


def test_free_text_that_is_published_is_warned_of() -> None:
    remarks = [f"Seen by Dr. Meier, bed {i % 30}, no fever" for i in range(N)]
    table = pa.table({**columns(), "note": remarks})
    assert any(
        "Column 'note' is kept, but looks like free text" in w
        for w in job(table).release().warnings
    )
    assert not any("free text" in w for w in job(pa.table(columns())).release().warnings)
