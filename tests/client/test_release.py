"""release(): what it refuses, what it aligns, what it publishes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import support
from verix.client.ledger import Ledger
from verix.client.manifest import Manifest
from verix.client.present import (
    MOST_TEXT,
    Grouped,
    Presentation,
    Range,
    Representation,
    finest_cut,
    ranges,
    represent,
)
from verix.client.release import Released, ReleaseOptions, release
from verix.client.tabledigest import table_digest
from verix.client.verdict import Finding, Profile, Status, Verdict
from verix.errors import NotAcceptedError, TableError
from verix.files.deliveries import Snapshot
from verix.protocol.contract import Column, Contract, Digest, Kind, Unit
from verix.protocol.encode import encode
from verix.protocol.generalize import describe
from verix.protocol.messages import Delivered, Delivery, Submission
from verix.protocol.roles import Declared
from verix.protocol.table import Records
from verix.protocol.tree import Tree
from verix.provider.local import LocalProvider

N = 60
TRAPS = 12
NO_DIGEST = Digest(bytes(32))


def columns(n_rows: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    age = rng.integers(18, 90, n_rows)
    return {
        "name": [f"person {i}" for i in range(n_rows)],
        "age": age.tolist(),
        "city": rng.choice(["Bern", "Genf", "Chur"], n_rows).tolist(),
        "weight": rng.normal(70, 10, n_rows).round(3).tolist(),
        "born": [date(1950, 1, 1 + i % 28) for i in range(n_rows)],
        "illness": rng.choice(["flu", "cold", "none"], n_rows).tolist(),
        "note": [f"note {i % 7}" for i in range(n_rows)],
        "rich": ((age + rng.integers(0, 30, n_rows)) > 65).tolist(),
    }


DECLARED = Declared(
    target="rich",
    quasi="all",
    identifiers=["name"],
    sensitive=["illness"],
    kept=["note"],
)


@dataclass(frozen=True)
class Job:
    """A table that was prepared, anonymized and accepted."""

    table: Any
    manifest: Manifest
    delivery: Delivery
    verdict: Verdict

    def release(self, ledger: Ledger | None = None, **options: Any) -> Released[Any]:
        return release(
            self.delivery,
            self.manifest,
            self.verdict,
            table=self.table,
            options=ReleaseOptions(**options),
            ledger=ledger,
        )

    def forced(self, delivery: Delivery) -> Released[Any]:
        options = ReleaseOptions(force=True)
        return release(delivery, self.manifest, self.verdict, table=self.table, options=options)


def job(table: object, declared: Declared = DECLARED, *, k: int = 3, traps: int = TRAPS) -> Job:
    """Prepare by hand: copies of the first rows as traps, all rows in a fixed disorder."""
    encoded = encode(table, declared)
    n_rows = encoded.target.size
    origin = np.concatenate([np.arange(n_rows), np.arange(traps)])
    order = np.random.default_rng(1).permutation(origin.size)
    contract = Contract(submission_id=support.SUBMISSION_ID, k=k, columns=encoded.columns)
    records = Records(
        tracker=support.trackers(origin.size),
        values=encoded.values[:, origin[order]],
        target=encoded.target[origin[order]],
    )
    submission = Submission(contract=contract, records=records)
    manifest = manifest_of(
        submission, table, encoded.roles, np.where(order < n_rows, origin[order], -1)
    )
    delivery = LocalProvider(threads=1).anonymize(submission)
    return Job(table, replace(manifest, imputed=encoded.imputed), delivery, accepted(delivery))


def manifest_of(
    submission: Submission,
    table: object,
    roles: Mapping[str, str],
    owner_row: npt.NDArray[np.int64],
) -> Manifest:
    rows, trackers = np.empty(0, np.int64), np.empty((0, 32), np.uint8)
    return Manifest(
        contract=submission.contract,
        submission=submission.digest(),
        table=table_digest(table),
        salt=bytes(32),
        unsafe_seed=False,
        roles=roles,
        imputed={},
        planted={},
        tracker_column=NO_DIGEST,
        target_column=NO_DIGEST,
        owner_row=owner_row,
        sentinel_row=rows,
        sentinel_tracker=trackers,
        twin_row=rows.reshape(0, 2),
        twin_tracker=trackers.reshape(0, 2, 32),
        watch_row=rows,
        watch_values=np.empty((0, 0)),
        watch_target=np.empty(0, np.uint8),
        witnesses=(),
        top_features=(),
        baseline=np.empty((0, 0)),
        calibration=np.empty((0, 0)),
        paper_calibration=np.empty((0, 0)),
    )


def accepted(delivery: Delivery, **changes: Any) -> Verdict:
    finding = Finding(layer="replay", status=Status.PASS, summary="All is well.")
    verdict = Verdict(
        profile=Profile.FULL,
        root=delivery.header.root,
        files={},
        contract=delivery.header.contract,
        submission=delivery.header.submission,
        findings=(finding,),
    )
    return replace(verdict, **changes)


@pytest.fixture(scope="module")
def case() -> Job:
    return job(pa.table(columns()))


def changed(delivery: Delivery, **changes: Any) -> Delivery:
    """The delivery with other records under the same header."""
    fields = {
        name: getattr(delivery.records, name) for name in ("row", "tracker", "leaf", "target")
    }
    return replace(delivery, records=Delivered(**(fields | changes)))


def parse(text: str) -> tuple[float, float]:
    low, high = text.split("..")
    return float(low), float(high)


# What it refuses


def test_another_table_is_refused(case: Job) -> None:
    other = case.table.set_column(1, "age", pa.array([1] * N))
    with pytest.raises(TableError, match="not the one that was prepared"):
        replace(case, table=other).release()
    with pytest.raises(TableError, match="not the one that was prepared"):
        replace(case, table=other).release(force=True)


def test_a_verdict_that_does_not_accept_is_refused(case: Job) -> None:
    for status, word in ((Status.FAIL, "VIOLATION"), (Status.INCONCLUSIVE, "INCONCLUSIVE")):
        finding = Finding(layer="splits", status=status, summary="No.")
        bad = replace(case, verdict=accepted(case.delivery, findings=(finding,)))
        with pytest.raises(NotAcceptedError, match=rf"{word} \(splits\)"):
            bad.release()
        assert bad.release(force=True).overridden == (
            f"the verdict is {word} (splits), not VERIFIED",
        )


def test_no_findings_are_no_acceptance(case: Job) -> None:
    with pytest.raises(NotAcceptedError, match="INCONCLUSIVE"):
        replace(case, verdict=accepted(case.delivery, findings=())).release()


def test_no_verdict_needs_force(case: Job) -> None:
    with pytest.raises(NotAcceptedError, match="no verdict"):
        release(case.delivery, case.manifest, None, table=case.table)


@pytest.mark.parametrize("part", ["root", "contract", "submission"])
def test_a_verdict_about_something_else_is_refused(case: Job, part: str) -> None:
    other = accepted(case.delivery, **{part: Digest(b"x" * 32)})
    with pytest.raises(NotAcceptedError, match=part):
        replace(case, verdict=other).release()
    released = replace(case, verdict=other).release(force=True)
    assert len(released.overridden) == 1
    assert part in released.overridden[0]


def test_the_verdict_is_bound_to_the_files(case: Job) -> None:
    files = {"delivery.json": "aa", "records.parquet": "bb"}
    snapshot = Snapshot(delivery=case.delivery, files=files)
    verdict = accepted(case.delivery, files=dict(reversed(files.items())))
    released = release(snapshot, case.manifest, verdict, table=case.table)
    assert released.overridden == ()
    for judged in ({}, files | {"records.parquet": "cc"}):
        other = accepted(case.delivery, files=judged)
        with pytest.raises(NotAcceptedError, match="other files"):
            release(snapshot, case.manifest, other, table=case.table)


def test_without_files_the_root_must_follow_from_the_delivery(case: Job) -> None:
    leaf = case.delivery.records.leaf.copy()
    leaf[0] = (leaf[0] + 1) % case.delivery.tree.n_leaves
    moved = replace(case, delivery=changed(case.delivery, leaf=leaf))
    with pytest.raises(NotAcceptedError, match="root does not follow"):
        moved.release()


def test_a_delivery_in_another_order_is_the_same(case: Job) -> None:
    order = np.random.default_rng(3).permutation(case.manifest.n_rows)
    names = ("row", "tracker", "leaf", "target")
    mixed = {name: getattr(case.delivery.records, name)[order] for name in names}
    again = replace(case, delivery=changed(case.delivery, **mixed)).release()
    assert again.table.equals(case.release().table)


def test_forced_deliveries_are_refused_if_rows_cannot_be_aligned(case: Job) -> None:
    records = case.delivery.records
    genuine = int(np.flatnonzero(case.manifest.owner_row >= 0)[0])
    less = {
        name: np.delete(getattr(records, name), genuine, axis=0)
        for name in ("row", "tracker", "leaf", "target")
    }
    with pytest.raises(NotAcceptedError, match="1 are missing and 0"):
        case.forced(changed(case.delivery, **less))
    doubled = records.row.copy()
    doubled[genuine] = np.flatnonzero(case.manifest.owner_row >= 0)[1]
    with pytest.raises(NotAcceptedError, match="1 are missing and 1"):
        case.forced(changed(case.delivery, row=doubled))
    nothing = {name: array[:0] for name, array in less.items()}
    with pytest.raises(NotAcceptedError, match="cannot be aligned"):
        case.forced(changed(case.delivery, **nothing))


def test_forced_deliveries_with_wrong_trackers_and_lost_traps_are_released(case: Job) -> None:
    records = case.delivery.records
    row = records.row.copy()
    row[case.manifest.owner_row[row] < 0] = 10**12
    wrong = changed(case.delivery, row=row, tracker=np.zeros_like(records.tracker))
    released = case.forced(wrong)
    assert released.table.equals(case.release().table)
    assert released.overridden == ("the root does not follow from the delivery",)


def test_what_cannot_be_followed_is_refused_even_if_forced(case: Job) -> None:
    tree = case.delivery.tree
    with pytest.raises(NotAcceptedError, match="a leaf that the tree does not have"):
        case.forced(changed(case.delivery, leaf=np.full_like(case.delivery.records.leaf, 10**6)))
    looped = replace(tree, right=np.zeros_like(tree.right))
    with pytest.raises(NotAcceptedError, match="cannot be followed"):
        case.forced(replace(case.delivery, tree=looped))
    stump = Tree(
        column=np.array([-1], np.int32),
        threshold=np.zeros(1),
        left=np.array([-1], np.int32),
        right=np.array([-1], np.int32),
        leaf=np.array([0], np.int32),
    )
    with pytest.raises(NotAcceptedError, match="not those of the delivered tree"):
        case.forced(replace(case.delivery, tree=stump))


def test_a_manifest_that_lost_rows_is_refused(case: Job) -> None:
    owner_row = case.manifest.owner_row.copy()
    owner_row[owner_row == 0] = 1
    with pytest.raises(TableError, match="every row of the table once"):
        replace(case, manifest=replace(case.manifest, owner_row=owner_row)).release()


def test_the_second_release_needs_force(case: Job, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    first = case.release(ledger)
    assert first.sheet.released_before == 0
    with pytest.raises(NotAcceptedError, match="single people out"):
        case.release(ledger)
    second = case.release(ledger, force=True)
    assert second.sheet.released_before == 1
    assert "released before" in second.overridden[0]
    assert any("released 1 time(s) before" in warning for warning in second.warnings)
    assert len(ledger.seen(case.manifest.table)) == 2


def test_a_refused_release_is_not_recorded(case: Job, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with pytest.raises(TableError):
        case.release(ledger, person="nobody")
    with pytest.raises(NotAcceptedError):
        release(case.delivery, case.manifest, None, table=case.table, ledger=ledger)
    assert ledger.seen(case.manifest.table) == ()


# What it publishes


def test_columns_rows_and_roles(case: Job) -> None:
    table = case.release().table
    names = ["age", "city", "weight", "born", "illness", "note", "rich"]
    assert table.column_names == names
    for name in ("illness", "note", "rich"):
        assert table[name].equals(case.table[name])


def test_each_value_lies_in_its_interval_and_classes_hold_k(case: Job) -> None:
    released = case.release()
    table, source = released.table.to_pydict(), case.table.to_pydict()
    for name in ("age", "weight"):
        for text, value in zip(table[name], source[name], strict=True):
            low, high = parse(text)
            assert low <= value <= high
    for text, value in zip(table["born"], source["born"], strict=True):
        low, high = text.split("..")
        assert low <= str(value) <= high
    for text, value in zip(table["city"], source["city"], strict=True):
        assert value in text.strip("{}").split(", ")
    classes = pd.DataFrame(table).groupby(["age", "city", "weight", "born"]).size()
    assert classes.min() == released.sheet.k >= 3
    assert len(classes) == released.n_classes == released.sheet.n_classes


def test_the_table_comes_back_as_what_was_given() -> None:
    data = columns()
    frame = pd.DataFrame(data, index=[f"i{i // 2}" for i in range(N)])
    in_pandas = job(frame).release()
    assert list(in_pandas.table.index) == list(frame.index)
    in_polars, in_arrow = job(pl.DataFrame(data)).release(), job(pa.table(data)).release()
    assert isinstance(in_pandas.table, pd.DataFrame)
    assert isinstance(in_polars.table, pl.DataFrame)
    assert isinstance(in_arrow.table, pa.Table)
    expected = in_arrow.table.to_pydict()
    assert in_polars.table.to_dict(as_series=False) == expected
    assert in_pandas.table.to_dict("list") == expected
    assert in_pandas.sheet == in_polars.sheet == in_arrow.sheet
    assert any("index" in warning for warning in in_pandas.warnings)
    assert not any("index" in warning for warning in in_polars.warnings)


def test_bounds_are_the_user_s_own_values(case: Job) -> None:
    table = case.release(representation=Representation.BOUNDS).table
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
    bounds = case.release(representation=Representation.BOUNDS).table.to_pandas()
    middle = case.release(representation=Representation.MIDPOINT).table.to_pandas()
    mean = case.release(representation=Representation.MEAN).table.to_pandas()
    keys = [bounds[name] for name in bounds.columns if name.endswith(("_min", "_max"))]
    source = case.table.to_pandas()
    assert middle["age"].tolist() == ((bounds["age_min"] + bounds["age_max"]) / 2).tolist()
    expected = source["weight"].groupby(keys).transform("mean")
    assert mean["weight"].to_numpy() == pytest.approx(expected.to_numpy())
    cities = ["Bern", "Chur", "Genf"]
    position = source["city"].map(cities.index).groupby(keys).transform("mean")
    assert mean["city"].tolist() == [cities[int(p)] for p in position]


def test_names_of_bounds_must_be_free() -> None:
    data = columns() | {"age_min": [1.0] * N}
    clash = job(pa.table(data), replace(DECLARED, kept=["note", "age_min"]))
    with pytest.raises(TableError, match="two columns 'age_min'"):
        clash.release(representation=Representation.BOUNDS)
    # A dropped identifier leaves its name free.
    free = job(pa.table(data), replace(DECLARED, identifiers=["name", "age_min"]))
    assert "age_min" in free.release(representation=Representation.BOUNDS).table.column_names


def test_shuffle_keeps_the_records_and_loses_the_order() -> None:
    shuffled = job(pd.DataFrame(columns())).release(shuffle=True).table
    plain = job(pd.DataFrame(columns())).release().table
    assert shuffled.index.tolist() == list(range(N))
    assert shuffled.values.tolist() != plain.values.tolist()
    assert sorted(map(str, shuffled.values.tolist())) == sorted(map(str, plain.values.tolist()))


def test_imputed_values_are_counted() -> None:
    data = columns()
    data["age"][3] = None
    released = job(pa.table(data)).release()
    assert released.imputed == {"age": 1}
    assert released.table["age"].null_count == 0


def test_integer_categories_come_back_as_integers() -> None:
    data = columns() | {"room": [i % 4 for i in range(N)]}
    declared = replace(DECLARED, kinds={"room": Kind.CATEGORICAL})
    table = job(pa.table(data), declared).release(representation=Representation.BOUNDS).table
    assert table["room_min"].type == pa.int64()


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
    encoded = encode(table, Declared(target="y", quasi=["x"]))
    traps = np.array([4.0, 5.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0])
    values = np.concatenate([encoded.values[0], traps])
    contract = Contract(submission_id=support.SUBMISSION_ID, k=2, columns=encoded.columns)
    records = Records(
        tracker=support.trackers(values.size),
        values=values.reshape(1, -1),
        target=np.arange(values.size, dtype=np.uint8) % 2,
    )
    submission = Submission(contract=contract, records=records)
    owner_row = np.concatenate([np.arange(6), np.full(8, -1)])
    manifest = manifest_of(submission, table, encoded.roles, owner_row)
    delivery = LocalProvider(threads=1).anonymize(submission)
    released = release(delivery, manifest, accepted(delivery), table=table)
    # The tree cuts at 11 into two leaves of seven; the right one holds one genuine record.
    assert delivery.tree.n_leaves == 2
    assert set(released.table["x"].to_pylist()) == {"1..12"}
    assert released.n_classes == 1
    assert released.n_coarsened == released.largest_coarsened == 6


def test_fewer_people_than_k_are_refused() -> None:
    data = columns() | {"patient": [f"p{i % 2}" for i in range(N)]}
    few = job(pa.table(data), replace(DECLARED, identifiers=["name", "patient"]))
    with pytest.raises(NotAcceptedError, match="2 people, fewer than k = 3"):
        few.release(person="patient")
    assert few.release().sheet.k >= 3


def test_people_are_counted_by_person() -> None:
    patients = [None if i % 10 == 9 else f"p{i // 3}" for i in range(N)]
    data = columns() | {"patient": patients}
    visits = job(pa.table(data), replace(DECLARED, identifiers=["name"], kept=["note", "patient"]))
    released = visits.release(person="patient")
    table = released.table.to_pandas()
    people = table["patient"].where(table["patient"].notna(), other=pd.Series(range(N)))
    sizes = people.groupby([table[q] for q in ("age", "city", "weight", "born")]).nunique()
    assert sizes.min() == released.sheet.k >= 3
    assert released.sheet.counted_by == "patient"
    assert any("person column 'patient' is published" in w for w in released.warnings)
    with pytest.raises(TableError, match="no column 'doctor'"):
        visits.release(person="doctor")


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A random small tree in canonical preorder."""
    column: list[int] = []
    right: dict[int, int] = {}

    def grow(n_leaves: int) -> None:
        node = len(column)
        column.append(-1 if n_leaves == 1 else 0)
        if n_leaves > 1:
            n_left = draw(st.integers(1, n_leaves - 1))
            grow(n_left)
            right[node] = len(column)
            grow(n_leaves - n_left)

    grow(draw(st.integers(1, 7)))
    inner = np.array(column, np.int32) >= 0
    return Tree(
        column=np.array(column, np.int32),
        threshold=np.zeros(len(column)),
        left=np.where(inner, np.arange(len(column)) + 1, -1).astype(np.int32),
        right=np.array([right.get(i, -1) for i in range(len(column))], np.int32),
        leaf=np.where(inner, -1, np.cumsum(~inner) - 1).astype(np.int32),
    )


def all_cuts(tree: Tree, node: int = 0) -> list[list[frozenset[int]]]:
    """Every way to cut a subtree into nodes, each as the set of its leaves."""
    if tree.leaf[node] >= 0:
        return [[frozenset({int(tree.leaf[node])})]]
    left, right = all_cuts(tree, int(tree.left[node])), all_cuts(tree, int(tree.right[node]))
    whole = frozenset().union(*left[0], *right[0])
    return [[whole], *(a + b for a in left for b in right)]


@settings(deadline=None, max_examples=200)
@given(tree=trees(), data=st.data(), k=st.integers(1, 4), by_person=st.booleans())
def test_the_cut_is_the_finest(tree: Tree, data: st.DataObject, k: int, by_person: bool) -> None:
    tree.check(n_quasi=1, max_depth=50)
    leaf = st.integers(0, tree.n_leaves - 1)
    leaf_of_row = np.array(data.draw(st.lists(leaf, min_size=1, max_size=20)), np.int32)
    people = None
    if by_person:
        person = st.lists(st.integers(0, 5), min_size=leaf_of_row.size, max_size=leaf_of_row.size)
        people = np.array(data.draw(person))
    names = np.arange(leaf_of_row.size) if people is None else people

    def held(leaves: frozenset[int]) -> int:
        return len(set(names[np.isin(leaf_of_row, list(leaves))].tolist()))

    if held(frozenset(range(tree.n_leaves))) < k:
        with pytest.raises(NotAcceptedError, match="fewer than k"):
            finest_cut(tree, leaf_of_row, people, k)
        return
    cut = finest_cut(tree, leaf_of_row, people, k)
    classes = [
        frozenset(np.flatnonzero(cut.class_of_leaf == c).tolist()) for c in range(cut.n_classes)
    ]
    # Disjoint by construction of the map; every record has a class, every class holds k.
    assert (cut.class_of_leaf[leaf_of_row] >= 0).all()
    assert all(held(leaves) >= k for leaves in classes)
    assert cut.is_merged.tolist() == [len(leaves) > 1 for leaves in classes]
    for other in all_cuts(tree):
        filled = [leaves for leaves in other if held(leaves)]
        if all(held(leaves) >= k for leaves in filled):
            assert all(any(mine <= leaves for leaves in other) for mine in classes)


# Representations


NUMBER = Column(name="x", kind=Kind.NUMERIC)


def one_range(
    values: Sequence[float], column: Column = NUMBER, source: pa.DataType = None, **chosen: Any
) -> Range:
    """The range of one class."""
    contract = Contract(submission_id=support.SUBMISSION_ID, k=2, columns=(column, support.TARGET))
    presentation = Presentation(**chosen)
    presentation.check(contract)
    grouped = Grouped(np.arange(len(values)), np.array([0, len(values)]))
    matrix = np.array(values, np.float64).reshape(1, -1)
    types = {column.name: source or pa.float64()}
    return ranges(contract, matrix, types, grouped, presentation)[0]


def interval(values: Sequence[float], **chosen: Any) -> str:
    found = one_range(values, **chosen)
    text: str = represent(found, Representation.INTERVAL, np.array([len(values)]))["x"][0].as_py()
    return text


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_intervals_are_what_describe_says(values: list[float]) -> None:
    values = [value + 0.0 for value in values]
    assert interval(values) == describe(NUMBER, min(values), max(values))


@pytest.mark.parametrize("unit", list(Unit))
def test_dates_are_what_describe_says(unit: Unit) -> None:
    column = Column(name="x", kind=Kind.DATETIME, unit=unit)
    assert interval([-5, 12345], column=column) == describe(column, -5, 12345)


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1),
    st.sampled_from([0.1, 0.25, 0.3, 1.0, 5.0, 1000.0, 1e-3]),
)
def test_rounding_is_outwards_and_by_less_than_a_step(values: list[float], step: float) -> None:
    found = one_range(values, round_to={"x": step})
    slack = 1e-6 * step + abs(max(values, key=abs)) * 1e-12
    assert min(values) - step - slack <= found.low[0] <= min(values)
    assert max(values) <= found.high[0] <= max(values) + step + slack


def test_rounded_bounds_are_printed_as_people_write_them() -> None:
    assert interval([0.3, 0.6], round_to={"x": 0.1}) == "0.3..0.6"
    assert interval([0.31, 0.61], round_to={"x": 0.1}) == "0.3..0.7"
    assert interval([-3, 17], round_to={"x": 5}) == "-5..20"
    assert interval([1e300, 1.5e300], round_to={"x": 1}) == "1e+300..1.5e+300"


def test_top_coding() -> None:
    caps = {"x": (20.0, 80.0)}
    assert interval([30, 40], top_code=caps) == "30..40"
    assert interval([20, 80], top_code=caps) == "20..80"
    assert interval([17, 40], top_code=caps) == "<=20..40"
    assert interval([50, 90], top_code=caps) == "50..>=80"
    assert interval([10, 90], top_code=caps) == "<=20..>=80"
    assert interval([82, 90], top_code=caps) == ">=80"
    assert interval([3, 9], top_code=caps) == "<=20"
    assert interval([50, 83], top_code={"x": (None, 80.0)}, round_to={"x": 5}) == "50..>=80"


def test_a_mean_is_of_capped_values_and_stays_in_its_class() -> None:
    mean = Representation.MEAN
    found = one_range([60, 100], representation=mean, top_code={"x": (None, 80.0)})
    assert found.mean.tolist() == [70.0]
    assert one_range([1.7e308, 1.7e308], representation=mean).mean.tolist() == [1.7e308]
    assert one_range([0.1] * 3, representation=mean).mean.tolist() == [0.1]


def test_whole_bounds_stay_whole_where_steps_are() -> None:
    def type_of(**chosen: Any) -> pa.DataType:
        found = one_range([1, 2], source=pa.int32(), **chosen)
        return represent(found, Representation.BOUNDS, np.array([2]))["x_min"].type

    assert type_of() == type_of(round_to={"x": 5}) == pa.int64()
    assert type_of(round_to={"x": 0.5}) == type_of(top_code={"x": (1.5, None)}) == pa.float64()


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"round_to": {"z": 1}}, "not a quasi-identifier"),
        ({"round_to": {"c": 1}}, "categorical"),
        ({"round_to": {"x": 0}}, "greater than 0"),
        ({"round_to": {"x": float("nan")}}, "greater than 0"),
        ({"round_to": {"d": 0.5}}, "whole numbers of day"),
        ({"round_to": {"x": 1}, "representation": Representation.MEAN}, "a mean is none"),
        ({"top_code": {"x": (None, None)}}, "lowest or a highest"),
        ({"top_code": {"x": (None, float("inf"))}}, "lowest or a highest"),
        ({"top_code": {"x": (5, 5)}}, "below the upper"),
        ({"top_code": {"d": (0.5, None)}}, "whole numbers of day"),
        ({"top_code": {"c": (0, 1)}}, "categorical"),
    ],
)
def test_options_that_do_not_fit(chosen: dict[str, Any], message: str) -> None:
    day = Column(name="d", kind=Kind.DATETIME, unit=Unit.DAY)
    contract = Contract(
        submission_id=support.SUBMISSION_ID,
        k=2,
        columns=(NUMBER, day, support.categorical("c", 3), support.TARGET),
    )
    with pytest.raises(TableError, match=message):
        Presentation(**chosen).check(contract)


def test_representations_may_be_given_by_name() -> None:
    assert one_range([1, 3], representation="mean").mean.tolist() == [2.0]
    with pytest.raises(TableError, match="interval, bounds, midpoint, mean"):
        ReleaseOptions(representation="exact")  # type: ignore[arg-type]


def test_steps_that_lead_beyond_all_dates_are_refused() -> None:
    day = Column(name="d", kind=Kind.DATETIME, unit=Unit.DAY)
    with pytest.raises(TableError, match="beyond all dates"):
        one_range([1, 2], column=day, round_to={"d": 1e300})


def test_sets_of_categories_that_no_memory_holds_are_refused() -> None:
    column = support.categorical("x", 1000)
    found = one_range([0, 999], column=column)
    with pytest.raises(TableError, match="publish it as bounds"):
        represent(found, Representation.INTERVAL, np.array([MOST_TEXT // 1000]))


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
