"""prepare(): what is sent, what is kept, and how they fit."""

from dataclasses import replace
from hashlib import sha256
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from client.table.tables import table_digest
from tools import cases
from verix_anon.client import models
from verix_anon.client.evidence import evasion_probability
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.prepare.options import WATCH_RECORDS
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.prepare.traps import Traps, cap
from verix_anon.client.table.roles import Declared
from verix_anon.client.verify import verify
from verix_anon.errors import ContractError, TableError
from verix_anon.protocol.contract import Commitment


def test_the_whole_is_genuine_sentinels_and_twins() -> None:
    made = cases.prepared()
    manifest = made.manifest
    assert manifest.n_rows == made.submission.records.n_rows == 400 + cap(400) + 20
    assert manifest.n_genuine == 400
    parts = [
        np.flatnonzero(manifest.owner_row >= 0),
        manifest.sentinel_row,
        manifest.twin_row[:, 1],
    ]
    assert np.sort(np.concatenate(parts)).tolist() == list(range(manifest.n_rows))
    assert sorted(manifest.owner_row[parts[0]].tolist()) == list(range(400))


def test_genuine_records_are_the_owners() -> None:
    made, owned = cases.prepared(clear=True), cases.table()
    is_genuine = made.manifest.owner_row >= 0
    owner_row = made.manifest.owner_row[is_genuine]
    names = [column.name for column in made.submission.contract.quasi]
    age = made.submission.records.values[names.index("age")][is_genuine]
    assert (age == owned["age"].to_numpy()[owner_row]).all()
    labels = np.array(owned["y"].to_pylist())[owner_row]
    assert (made.submission.records.target[is_genuine] == (labels == "yes")).all()


def test_traps_none_plants_nothing() -> None:
    made = cases.prepared(traps=Traps.NONE)
    manifest = made.manifest
    assert manifest.n_rows == manifest.n_genuine == 400
    assert manifest.sentinel_row.size == manifest.twin_row.size == 0
    assert manifest.planted["evasion_at_drop"] == {"0.01": 1.0, "0.05": 1.0, "0.2": 1.0}


def test_what_was_planted_is_described() -> None:
    manifest = cases.prepared().manifest
    planted = manifest.planted
    assert planted["sentinels"] == manifest.sentinel_row.size
    assert planted["twins"] == len(manifest.twin_row)
    expected = evasion_probability(manifest.sentinel_row.size, manifest.n_rows, 0.05)
    assert planted["evasion_after"] == expected
    assert planted["evasion_at_drop"] == {
        str(d): evasion_probability(manifest.sentinel_row.size, manifest.n_rows, d)
        for d in (0.01, 0.05, 0.2)
    }


def test_digests_are_those_of_what_was_sent() -> None:
    made = cases.prepared()
    records, manifest = made.submission.records, made.manifest
    assert manifest.tracker_column == sha256(records.tracker.tobytes()).digest()
    assert manifest.target_column == sha256(records.target.tobytes()).digest()
    assert manifest.submission == made.submission.digest()
    assert manifest.contract == made.submission.contract
    assert manifest.table == table_digest(cases.table())


def test_watch_records_are_genuine_and_kept_as_sent() -> None:
    made = cases.prepared(n_rows=2600, clear=True)
    manifest, records = made.manifest, made.submission.records
    rows = manifest.watch_row
    assert rows.size == np.unique(rows).size == WATCH_RECORDS
    assert (manifest.owner_row[rows] >= 0).all()
    assert (manifest.watch_values == records.values[:, rows]).all()
    assert (manifest.watch_target == records.target[rows]).all()


def test_watch_records_are_drawn_by_the_salt() -> None:
    made = cases.prepared(n_rows=2600, clear=True)
    manifest, records = made.manifest, made.submission.records
    row_of_owner = np.empty(2600, np.int64)
    row_of_owner[manifest.owner_row[manifest.owner_row >= 0]] = np.flatnonzero(
        manifest.owner_row >= 0
    )
    drawn = np.random.default_rng(Secret(manifest.salt).seed("watch")).permutation(2600)
    assert (manifest.watch_row == row_of_owner[drawn[:WATCH_RECORDS]]).all()
    assert (manifest.watch_target == records.target[manifest.watch_row]).all()


def test_few_records_are_all_watched() -> None:
    assert cases.prepared().manifest.watch_row.size == 400


def test_witnesses_are_spread_over_the_table() -> None:
    """Of a sorted table no part may be out of the witnesses' sight (spec §9, thin)."""
    n_rows, places, rows = 300, [], []
    source = pa.table({"x": np.arange(n_rows) * 1.0, "y": np.arange(n_rows) % 2})
    with mock.patch.object(models, "shap_values", return_value=np.zeros((n_rows, 1, 1))):
        for seed in range(60):
            manifest = cases.make(source, seed=seed, traps=Traps.NONE, witnesses=5).manifest
            rows += [w.row for w in manifest.witnesses]
            places += [int(manifest.owner_row[w.row]) for w in manifest.witnesses]
    for found in (rows, places):
        # 300 places in ten parts: 30 each, give or take 5 standard deviations.
        assert np.abs(np.histogram(found, 10, (0, n_rows))[0] - 30).max() < 5 * np.sqrt(27)


def test_baseline_is_on_the_raw_watch_records() -> None:
    manifest = cases.prepared().manifest
    values = models.shap_values(manifest.watch_values.T, manifest.watch_labels)
    assert list(manifest.top_features) == models.top_features(values)
    assert (manifest.baseline == values[:, :, list(manifest.top_features)]).all()


def test_every_run_has_its_own_salt_and_id() -> None:
    source = cases.table(100)
    one, two = (cases.make(source, seed=None) for _ in range(2))
    assert one.manifest.salt != two.manifest.salt
    assert one.submission.contract.submission_id != two.submission.contract.submission_id
    ours = {t.tobytes() for t in one.submission.records.tracker}
    assert ours.isdisjoint(t.tobytes() for t in two.submission.records.tracker)
    assert one.manifest.unsafe_seed is False


def test_unsafe_seed_repeats_and_says_so() -> None:
    source = cases.table(100)
    one, two = (cases.make(source, seed=7) for _ in range(2))
    assert one.submission.digest() == two.submission.digest()
    assert one.manifest.salt == two.manifest.salt
    assert one.manifest.unsafe_seed is True
    verdict = verify(cases.honest(one.submission), one.manifest, submission=one.submission)
    assert verdict.unsafe_seed is True
    assert '"unsafe_seed": true' in verdict.to_json()


def test_id_tells_nothing_of_a_fresh_salt() -> None:
    made = cases.make(cases.table(100), seed=None)
    derived = Secret(made.manifest.salt).key("id")[:16].hex()
    assert made.submission.contract.submission_id != derived


def test_only_what_is_needed_is_sent() -> None:
    source = cases.table(200).append_column("name", pa.array([f"n{i}" for i in range(200)]))
    source = source.append_column("diagnosis", pa.array([f"d{i % 3}" for i in range(200)]))
    made = prepare(
        source,
        target="y",
        quasi=["age", "score"],
        identifier=["name"],
        sensitive=["diagnosis"],
        kept=["town", "since", "rank"],
        k=3,
        options=PrepareOptions(unsafe_seed=1),
    )
    assert [c.name for c in made.submission.contract.columns] == ["q0", "q1"]
    assert not made.submission.records.target.any()
    assert made.submission.records.values.shape[0] == 2
    assert made.manifest.roles == {
        "age": "quasi",
        "score": "quasi",
        "town": "kept",
        "since": "kept",
        "rank": "kept",
        "y": "target",
        "name": "identifier",
        "diagnosis": "sensitive",
    }


def test_imputed_values_are_counted() -> None:
    source = pd.DataFrame({"a": [1.0, None, 3.0, 4.0] * 25, "y": [0, 1] * 50})
    manifest = prepare(
        source, target="y", quasi="all", options=PrepareOptions(unsafe_seed=1)
    ).manifest
    assert manifest.imputed["a"] == 25


@pytest.mark.parametrize("n_rows", [10, 11, 25, 60])
def test_tiny_tables(n_rows: int) -> None:
    made = cases.make(cases.table(n_rows), k=5)
    delivery = cases.honest(made.submission)
    assert verify(delivery, made.manifest, submission=made.submission)
    assert verify(delivery, made.manifest)


def test_too_few_records_are_refused() -> None:
    few = "the table holds 12 people, fewer than k = 20; choose a smaller k"
    with pytest.raises(TableError, match=few):
        cases.make(cases.table(12), k=20)
    few = "the table holds 12 records, fewer than min_leaf = 20; choose a smaller min_leaf"
    with pytest.raises(TableError, match=few):
        cases.make(cases.table(12), k=10, clear=True)


@pytest.mark.parametrize(
    ("k", "diversity", "sentence"),
    [
        (21, {}, "the table holds 20 people, fewer than k = 21; choose a smaller k"),
        (20, {}, None),
        (5, {"town": {"l": 5}}, "'town' has 4 values in the whole table, so that no class has 5"),
        (5, {"town": {"l": 4}}, None),
        (5, {"y": {"cap": 0.4}}, "of the records of the whole table have the same value of column"),
        # All 20 patients have each of the values, and smaller classes may keep to it.
        (5, {"y": {"cap": 0.7}, "town": {"t": 0.0}}, None),
    ],
)
def test_what_no_release_could_reach_is_refused_before_anything_is_sent(
    k: int, diversity: dict[str, dict[str, float]], sentence: str | None
) -> None:
    visits = pa.array([f"p{i % 20}" for i in range(200)])
    source = cases.table(200).append_column("patient", visits)
    declared = Declared(
        target="y",
        quasi=["age", "score", "since", "rank"],
        sensitive="town",
        identifier="patient",
        person="patient",
        diversity=diversity,
    )
    options = PrepareOptions(unsafe_seed=1, traps=Traps.NONE, witnesses=0)
    if sentence is None:
        assert prepare(source, roles=declared, k=k, options=options).manifest.contract.k == k
        return
    told: list[str] = []
    options = replace(options, progress=lambda stage, done, total: told.append(stage))
    with pytest.raises(TableError, match=sentence):
        prepare(source, roles=declared, k=k, options=options)
    assert {*told} == {"encode"}


def test_k_of_one_is_refused() -> None:
    with pytest.raises(ContractError, match="k must be"):
        cases.make(cases.table(50), k=1)


def test_a_single_positive() -> None:
    source = cases.table(2600).set_column(5, "y", pa.array(["no"] * 2599 + ["yes"]))
    made = cases.make(source)
    delivery = cases.honest(made.submission)
    assert verify(delivery, made.manifest, submission=made.submission)
    assert verify(delivery, made.manifest)


def test_huge_values() -> None:
    rng = np.random.default_rng(0)
    source = pa.table(
        {"a": rng.normal(size=300) * 1e307, "b": rng.random(300), "y": rng.integers(0, 2, 300)}
    )
    made = cases.make(source)
    delivery = cases.honest(made.submission)
    assert verify(delivery, made.manifest, submission=made.submission)
    assert verify(delivery, made.manifest)


def test_contract_is_as_asked_for() -> None:
    options = PrepareOptions.paper(unsafe_seed=1, max_depth=7)
    made = prepare(cases.table(100), target="y", quasi="all", k=4, options=options)
    contract = made.submission.contract
    assert (contract.k, contract.min_leaf, contract.max_depth) == (4, 8, 7)
    assert contract.commitment is Commitment.PAPER


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    options = PrepareOptions(
        unsafe_seed=1,
        traps=Traps.PAPER,
        progress=lambda stage, done, total: told.append((stage, done, total)),
    )
    prepare(cases.table(100), target="y", quasi="all", options=options)
    assert {"encode", "sentinels", "trackers", "witnesses"} <= {stage for stage, _, _ in told}
    assert all(0 <= done <= total for _, done, total in told)


def test_any_library_gives_the_same_submission() -> None:
    source = cases.table(100)
    import polars as pl

    digests = {
        cases.make(given, seed=3).submission.digest()
        for given in (source, pl.from_arrow(source), source.to_pandas())
    }
    assert len(digests) == 1


@pytest.mark.parametrize("role", ["quasi", "kept", "sensitive"])
def test_free_text_that_is_not_dropped_is_warned_of(role: str) -> None:
    remarks = [f"Seen by Dr. Meier, bed {i % 30}, no fever" for i in range(60)]
    table = pa.table({"x": range(60), "seen": remarks, "y": [0, 1] * 30})
    roles = {"quasi": ["x"], role: "seen"} if role != "quasi" else {"quasi": ["x", "seen"]}
    options = PrepareOptions(importance="uniform")
    found = prepare(table, target="y", k=2, options=options, **roles)
    assert [w for w in found.warnings if f"Column 'seen' is {role}, but looks like free text" in w]
    dropped = prepare(table, target="y", quasi="x", identifier="seen", person="record", k=2)
    assert not dropped.warnings
