"""Sentinels and twins: the equations of the paper's §5.1 and §5.4, by hand."""

import math
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest

from client.prepare.moves import perturb
from support import categorical, numeric
from tools import cases
from verix_anon.client.evidence import evasion_probability
from verix_anon.client.prepare import traps
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.prepare.traps import (
    Plan,
    Planted,
    Traps,
    boundary_probabilities,
    cap,
    choose_twins,
    n_twins,
    needed,
    plant,
)
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Kind, Unit

SECRET = Secret(bytes(32))
Floats = npt.NDArray[np.float64]


def planted_by(probability: Floats, plan: Plan, seed: int = 0) -> Planted:
    """What is planted if the forest says these probabilities."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(2, probability.size))
    target = (np.arange(probability.size) % 2).astype(np.uint8)
    with mock.patch.object(traps, "boundary_probabilities", return_value=probability):
        return plant(values, cases.two_classes(target), plan, SECRET)


@pytest.mark.parametrize(("n_rows", "most"), [(1, 1), (50, 1), (51, 2), (8000, 160), (8001, 161)])
def test_cap_is_two_percent_rounded_up(n_rows: int, most: int) -> None:
    assert cap(n_rows) == most == math.ceil(n_rows / 50)


@pytest.mark.parametrize(
    ("n_sentinels", "n_sent", "expected"), [(13, 8413, 0.52), (4, 8404, 0.82), (0, 100, 1.0)]
)
def test_evasion_of_the_paper(n_sentinels: int, n_sent: int, expected: float) -> None:
    found = evasion_probability(n_sentinels, n_sent, 0.05)
    assert found == pytest.approx(expected, abs=0.005)
    # 420 records dropped, one after the other: the same to two digits.
    product = math.prod(1 - n_sentinels / n_sent for _ in range(420))
    assert found == pytest.approx(product, rel=0.01)


def test_only_sentinels_left_to_drop() -> None:
    assert evasion_probability(10, 10, 0.05) == 0.0


def test_paper_band_is_closed_and_capped() -> None:
    inside = [0.45, 0.5, 0.55]
    outside = [math.nextafter(0.45, 0), math.nextafter(0.55, 1), 0.0, 1.0]
    probability = np.array(inside + outside + [0.0] * 993)
    planted = planted_by(probability, Plan(traps=Traps.PAPER))
    assert planted.origin.tolist() == [0, 1, 2]
    assert planted.n_boundary == 3
    assert planted.band == (0.45, 0.55)
    assert planted.evasion_before == planted.evasion_after == evasion_probability(3, 1053, 0.05)


def test_paper_takes_no_more_than_the_cap() -> None:
    probability = np.full(1000, 0.9)
    probability[100:200] = 0.5
    planted = planted_by(probability, Plan(traps=Traps.PAPER))
    assert planted.origin.size == cap(1000) == 20
    assert planted.n_boundary == 100
    assert (planted.origin >= 100).all()
    assert (planted.origin < 200).all()
    assert np.unique(planted.origin).size == 20


def test_adaptive_keeps_the_band_where_it_is_enough() -> None:
    probability = np.full(8000, 0.9)
    probability[:500] = 0.5
    adaptive = planted_by(probability, Plan())
    paper = planted_by(probability, Plan(traps=Traps.PAPER))
    assert adaptive.origin.tolist() == paper.origin.tolist()
    assert adaptive.band == (0.45, 0.55)


def test_adaptive_widens_to_the_nearest() -> None:
    plan = Plan()
    probability = np.full(8000, 0.95)
    probability[:13] = 0.5
    probability[100:300] = np.linspace(0.60, 0.56, 200)
    planted = planted_by(probability, plan)
    wanted = needed(plan, 8000, 400)
    nearest = sorted(range(8000), key=lambda i: (abs(probability[i] - 0.5), i))[:wanted]
    assert planted.origin.tolist() == sorted(nearest)
    assert planted.band == (0.40, 0.60)
    assert planted.n_boundary == 13
    assert planted.evasion_before == evasion_probability(13, 8413, 0.05)
    assert planted.evasion_before == pytest.approx(0.52, abs=0.005)
    assert planted.evasion_after == evasion_probability(wanted, 8400 + wanted, 0.05) <= 0.01


def test_adaptive_beyond_the_wider_band_says_how_far() -> None:
    probability = np.full(8000, 0.99)
    probability[:13] = 0.5
    probability[100:300] = np.linspace(0.25, 0.10, 200)
    planted = planted_by(probability, Plan())
    reach = float(np.abs(probability[planted.origin] - 0.5).max())
    assert planted.band == (0.5 - reach, 0.5 + reach)
    assert reach > 0.25
    assert np.abs(np.delete(probability, planted.origin) - 0.5).min() >= reach
    assert planted.evasion_after <= 0.01 < planted.evasion_before


def test_adaptive_stops_at_the_cap() -> None:
    planted = planted_by(np.full(100, 0.99), Plan())
    assert planted.origin.size == cap(100)
    assert planted.evasion_before == 1.0
    assert planted.evasion_after == evasion_probability(2, 107, 0.05) > 0.01


@pytest.mark.parametrize("n_rows", [100, 5000, 8000, 200_000])
def test_needed_is_the_fewest(n_rows: int) -> None:
    plan = Plan()
    found = needed(plan, n_rows, n_twins(n_rows))

    def evasion(n: int) -> float:
        n_sent = n_rows + math.ceil(n_rows / 20) + n
        return math.pow(1 - n / n_sent, 0.05 * n_sent)

    assert found == cap(n_rows) or evasion(found) <= 0.01
    assert evasion(found - 1) > 0.01
    # About ln(100)/0.05 of them are enough, however many records there are.
    assert found == min(cap(n_rows), found)
    assert found <= 93


def test_noise_is_a_twentieth_of_the_deviation() -> None:
    rng = np.random.default_rng(3)
    values = np.vstack([rng.normal(50, 8, 40_000), rng.exponential(3, 40_000)])
    rows = np.flatnonzero((np.abs(values[0] - 50) < 8) & (values[1] > 1) & (values[1] < 9))
    moved = perturb(values, (numeric("a"), numeric("b")), rows, np.random.default_rng(4))
    for before, after, column in zip(values[:, rows], moved, values, strict=True):
        step = (after - before) / column.std()
        # Four standard errors of a mean and of a standard deviation.
        assert abs(step.mean()) < 4 * 0.05 / math.sqrt(rows.size)
        assert abs(step.std() - 0.05) < 4 * 0.05 / math.sqrt(2 * rows.size)


def test_noise_is_drawn_with_the_population_deviation() -> None:
    values = np.array([[1.0, 2.5, 4.0, 8.0]])
    rng = mock.Mock()
    rng.normal.return_value = np.array([0.75, -0.8])
    moved = perturb(values, (numeric("a"),), np.array([1, 2]), rng)
    (mean, deviation, n), _ = rng.normal.call_args
    population = math.sqrt(sum((v - 3.875) ** 2 for v in values[0]) / 4)
    assert (mean, n) == (0.0, 2)
    assert deviation == pytest.approx(0.05 * population, rel=1e-12)
    assert moved.tolist() == [[2.5, 2.5]]


def test_moved_to_the_nearest_that_occurs() -> None:
    values = np.array([[0.0, 1.0, 5.0, 10.0], [0.5, 1.0, 5.0, 10.0]])
    rng = mock.Mock()
    # Below all, in the middle of two, just above that, and above all.
    rng.normal.side_effect = [np.array([-3.0, 2.0, 2.51, 99.0]), np.array([-3.0, 2.0, 2.51, 99.0])]
    moved = perturb(values, (numeric("a"), numeric("b")), np.array([0, 1, 2, 3]), rng)
    assert moved.tolist() == [[0.0, 1.0, 10.0, 10.0], [0.5, 1.0, 10.0, 10.0]]


def test_categories_and_label_stay() -> None:
    rng = np.random.default_rng(0)
    values = np.vstack([rng.integers(0, 4, 100), rng.integers(0, 90, 100)]).astype(float)
    dates = Column(name="d", kind=Kind.DATETIME, unit=Unit.DAY)
    rows = np.arange(100)
    moved = perturb(values, (categorical("c", 4), dates), rows, rng)
    assert (moved[0] == values[0]).all()
    assert (moved[1] != values[1]).any()
    assert (moved[1] % 1 == 0).all()
    assert moved[1].min() >= values[1].min()
    assert moved[1].max() <= values[1].max()


def test_no_negative_zero() -> None:
    values = np.array([[-1.0, 0.0, 1.0]])
    rng = mock.Mock()
    rng.normal.return_value = np.array([0.7])
    moved = perturb(values, (numeric("a"),), np.array([0]), rng)
    assert not np.signbit(moved).any()


@pytest.mark.parametrize("most", [1e300, 1.7e308])
def test_values_beyond_single_precision(most: float) -> None:
    rng = np.random.default_rng(0)
    values = np.vstack([rng.choice([-most, most, most / 3], 600), rng.normal(size=600)])
    target = (values[1] + rng.normal(size=600) > 0).astype(np.uint8)
    planted = plant(values, cases.two_classes(target), Plan(), SECRET)
    moved = perturb(values, (numeric("a"), numeric("b")), planted.origin, rng)
    assert np.isfinite(moved).all()
    assert planted.origin.size == cap(600)


def test_constant_column_is_not_moved() -> None:
    values = np.array([[7.25] * 50, [0.0] * 50])
    moved = perturb(values, (numeric("a"), numeric("b")), np.arange(50), np.random.default_rng(0))
    assert (moved == values).all()


def test_papers_forest() -> None:
    rng = np.random.default_rng(0)
    values, target = rng.normal(size=(3, 5000)), (np.arange(5000) % 4 == 0).astype(np.uint8)
    with mock.patch("sklearn.ensemble.RandomForestClassifier") as forest:
        forest.return_value.classes_ = [0, 1]
        forest.return_value.predict_proba.return_value = np.full((5000, 2), 0.5)
        boundary_probabilities(values, cases.two_classes(target), SECRET, as_paper=True)
    wanted = forest.call_args.kwargs
    assert (wanted["n_estimators"], wanted["max_depth"]) == (50, 5)
    rows, labels = forest.return_value.fit.call_args.args
    # A tenth of each class.
    assert rows.shape == (500, 3)
    assert labels.sum() == 125


def grid(n_rows: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Whole numbers from 0 to 7, and one of three classes that depends on two of them."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 8, (4, n_rows)).astype(float)
    target = (values[0] + values[1] + rng.normal(0, 2, n_rows) > 7).astype(np.int64)
    return values, target + (values[2] > 5)


def test_the_forest_predicts_shares_of_classes_as_scikit_learns_does() -> None:
    values, target = grid(4000)
    rows = values.T.astype(np.float32)
    found, known = (
        grow(rows, target, SECRET)(rows) for grow in (traps._forest, traps._papers_forest)
    )
    assert found.shape == known.shape == (4000, 3)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert found.min() >= 0.0
    assert found.mean(axis=0) == pytest.approx(np.bincount(target) / 4000, abs=0.01)
    # Two of scikit-learn's own forests, with different seeds, are as far apart.
    assert np.abs(found - known).mean() < 0.03
    assert np.corrcoef(found.ravel(), known.ravel())[0, 1] > 0.98


def test_the_forest_is_the_same_with_any_number_of_threads() -> None:
    import xgboost

    values, target = grid(4000)
    rows = values.T.astype(np.float32)
    once = traps._forest(rows, target, SECRET)(rows)
    train = xgboost.train
    with mock.patch.object(
        xgboost, "train", lambda told, *a, **k: train(told | {"nthread": 3}, *a, **k)
    ):
        assert (traps._forest(rows, target, SECRET)(rows) == once).all()
    assert (traps._forest(rows, target, Secret(bytes(31) + b"x"))(rows) != once).any()


def test_only_the_papers_traps_need_scikit_learn() -> None:
    values, target = grid(600)
    labels = cases.two_classes((target > 0).astype(np.uint8))
    with mock.patch.dict("sys.modules", {"sklearn": None}):
        assert plant(values, labels, Plan(), SECRET).origin.size == cap(600)
        with pytest.raises(TableError, match=r"--preset paper.* needs the extra 'paper'"):
            plant(values, labels, Plan(traps=Traps.PAPER), SECRET)


@pytest.mark.parametrize(("n_rows", "n_sample"), [(50, 50), (1000, 200), (8000, 800)])
def test_sample_sizes(n_rows: int, n_sample: int) -> None:
    target = np.arange(n_rows) % 2
    sample = traps._stratified_sample(target, np.random.default_rng(0))
    assert sample.size == np.unique(sample).size == n_sample
    assert target[sample].sum() == n_sample // 2


def test_sample_of_a_large_table() -> None:
    target = (np.arange(500_000) % 5 == 0).astype(np.int64)
    sample = traps._stratified_sample(target, np.random.default_rng(0))
    assert sample.size == 20_000
    assert target[sample].sum() == 4_000


def test_a_single_positive_is_in_the_sample() -> None:
    target = np.zeros(3000, np.int64)
    target[17] = 1
    assert 17 in traps._stratified_sample(target, np.random.default_rng(0))


@pytest.mark.parametrize(("n_rows", "n"), [(1, 1), (20, 1), (21, 2), (8000, 400)])
def test_five_percent_get_a_twin(n_rows: int, n: int) -> None:
    chosen = choose_twins(n_rows, np.random.default_rng(0))
    assert n_twins(n_rows) == chosen.size == np.unique(chosen).size == n
    assert chosen.min() >= 0
    assert chosen.max() < n_rows


def test_twins_are_drawn_evenly() -> None:
    rng = np.random.default_rng(0)
    times = np.bincount(np.concatenate([choose_twins(100, rng) for _ in range(4000)]))
    # 4,000 draws of 5 %: each record 200 times, give or take five standard deviations.
    assert np.abs(times - 200).max() < 5 * math.sqrt(4000 * 0.05 * 0.95)


def test_twins_are_exact_and_paired() -> None:
    prepared = cases.prepared()
    manifest, records = prepared.manifest, prepared.submission.records
    original, twin = manifest.twin_row.T
    assert original.size == 20
    assert (manifest.owner_row[original] >= 0).all()
    assert (manifest.owner_row[twin] == -1).all()
    assert np.unique(manifest.twin_row).size == 40
    assert (records.values[:, original] == records.values[:, twin]).all()
    assert (records.target[original] == records.target[twin]).all()
    assert (manifest.twin_tracker == records.tracker[manifest.twin_row]).all()


def test_a_sentinel_differs_from_its_origin_only_in_numbers() -> None:
    prepared = cases.prepared()
    manifest, records = prepared.manifest, prepared.submission.records
    quasi = prepared.submission.contract.quasi
    genuine = records.values[:, np.argsort(manifest.owner_row)[-manifest.n_genuine :]]
    sentinels_ = records.values[:, manifest.sentinel_row]
    assert sentinels_.shape[1] == cap(manifest.n_genuine)
    assert (manifest.owner_row[manifest.sentinel_row] == -1).all()
    for column, values, whole in zip(quasi, sentinels_, genuine, strict=True):
        assert (values >= whole.min()).all()
        assert (values <= whole.max()).all()
        if column.name != "score":
            assert (values % 1 == 0).all()


def test_the_salt_decides_who_is_a_trap() -> None:
    chosen = []
    for seed in (1, 2):
        manifest = cases.prepared(seed).manifest
        chosen.append(set(manifest.owner_row[manifest.twin_row[:, 0]].tolist()))
    assert chosen[0] != chosen[1]
    again = cases.make(cases.table(), seed=1).manifest
    assert (again.twin_row == cases.prepared(1).manifest.twin_row).all()
    assert (again.sentinel_row == cases.prepared(1).manifest.sentinel_row).all()


def test_only_the_paper_lets_the_forest_see_more_than_20_000_records() -> None:
    target = (np.arange(300_000) % 2).astype(np.int64)
    rng = np.random.default_rng(0)
    assert traps._stratified_sample(target, rng).size == 20_000
    assert traps._stratified_sample(target, rng, None).size == 30_000
    values, labels = np.zeros((1, 4)), cases.two_classes(np.array([0, 1, 0, 1], np.uint8))
    for wanted in (Traps.ADAPTIVE, Traps.PAPER):
        with mock.patch.object(
            traps, "boundary_probabilities", return_value=np.full(4, 0.5)
        ) as asked:
            traps.plant(values, labels, Plan(traps=wanted), SECRET)
        assert asked.call_args.kwargs == {"as_paper": wanted is Traps.PAPER}
