"""Fingerprint and utility: against shap, scipy and scikit-learn."""

import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tools import cases
from verix_anon.client import models
from verix_anon.client.prepare import PrepareOptions, contract_columns, expectations, prepare
from verix_anon.client.prepare.contract_columns import mean_shap
from verix_anon.client.prepare.expectations import honest_midpoints
from verix_anon.client.table.task import Labels, Task
from verix_anon.client.verdict import Profile, Status
from verix_anon.client.verify import fingerprint as layer
from verix_anon.client.verify.case import VerifyOptions
from verix_anon.client.verify.utility import auc, f1
from verix_anon.protocol.tree import Leaves, midpoints

Floats = npt.NDArray[np.float64]
samples = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6, width=32))


@settings(max_examples=300, deadline=None)
@given(samples, samples)
def test_wasserstein_is_scipys(a: Floats, b: Floats) -> None:
    expected = scipy.stats.wasserstein_distance(a, b)
    assert models.wasserstein(a, b) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_wasserstein_by_hand() -> None:
    a, b = np.array([0.0, 1.0, 3.0]), np.array([5.0, 6.0, 8.0])
    assert models.wasserstein(a, b) == pytest.approx(5.0)
    assert models.wasserstein(a, a) == 0.0
    # Half of the mass has to go from 0 to 1.
    assert models.wasserstein(np.array([0.0, 1.0]), np.array([1.0])) == pytest.approx(0.5)


def records(n_rows: int = 300) -> tuple[Floats, Labels]:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.normal(size=(n_rows, 3)), rng.integers(0, 5, (n_rows, 2))])
    chance = 1 / (1 + np.exp(-2 * rows[:, 0] - rows[:, 3] + 2))
    return rows, cases.two_classes((rng.random(n_rows) < chance).astype(np.uint8))


def test_shap_values_are_those_of_shap() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shap = pytest.importorskip("shap", exc_type=ImportError)
        rows, labels = records()
        expected = shap.TreeExplainer(models.fit(rows, labels)).shap_values(rows)
    np.testing.assert_allclose(models.shap_values(rows, labels)[:, 0], expected, atol=1e-4)


def test_shap_values_add_up_to_the_margin() -> None:
    import xgboost

    rows, labels = records()
    model = models.fit(rows, labels)
    assert isinstance(model, xgboost.Booster)
    margin = model.predict(xgboost.DMatrix(rows), output_margin=True)
    left = margin - models.shap_values(rows, labels)[:, 0].sum(axis=1)
    np.testing.assert_allclose(left, left[0], atol=1e-4)


def test_model_is_the_papers() -> None:
    assert models.ROUNDS == 100
    assert (models.SETTINGS["max_depth"], models.SETTINGS["eta"]) == (6, 0.1)


def test_same_rows_same_values() -> None:
    rows, labels = records()
    once, again = (models.shap_values(rows, labels) for _ in range(2))
    assert (once == again).all()


def test_top_features_by_mean_absolute_value() -> None:
    values = np.array([[[1.0, -5.0, 0.0, 2.0]], [[1.0, 5.0, 0.0, -2.0]]])
    assert models.top_features(values) == [1, 3, 0]
    assert models.top_features(np.ones((2, 1, 5))) == [0, 1, 2]
    assert models.top_features(np.ones((2, 1, 2))) == [0, 1]


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only(label: int) -> None:
    rows, labels = records()
    assert np.isfinite(
        models.shap_values(rows, replace(labels, values=np.full(300, float(label))))
    ).all()


def test_values_beyond_single_precision() -> None:
    rows, labels = records()
    rows[:, 1] *= 1e300
    assert np.isfinite(models.shap_values(rows, labels)).all()
    assert np.isfinite(models.predict(rows, labels, rows)).all()


def of_task(task: str, n_rows: int = 300) -> tuple[Floats, Labels]:
    """The same records with another target: five classes, the third of them empty; a quantity."""
    rows, labels = records(n_rows)
    rng = np.random.default_rng(2)
    amount = 1e6 + 300 * rows[:, 0] + 100 * rows[:, 3] + rng.normal(size=n_rows)
    if task == "two":
        return rows, labels
    if task == "quantity":
        return rows, Labels(task=Task.QUANTITY, values=amount)
    ranks = np.searchsorted(np.quantile(amount, [0.3, 0.6, 0.9]), amount)
    many = np.array([0.0, 1.0, 3.0, 4.0])[ranks]
    return rows, Labels(task=Task.CLASSES, values=many, classes=tuple("abcde"))


TASKS = {"two": 1, "many": 5, "quantity": 1}


@pytest.mark.parametrize("task", TASKS)
def test_shap_values_of_every_task_add_up(task: str) -> None:
    import xgboost

    rows, labels = of_task(task)
    values = models.shap_values(rows, labels)
    assert values.shape == (300, TASKS[task], 5)
    model = models.fit(rows, labels)
    assert isinstance(model, xgboost.Booster)
    margin = model.predict(xgboost.DMatrix(rows), output_margin=True).reshape(300, -1)
    left = margin - values.sum(axis=2)
    np.testing.assert_allclose(left, np.broadcast_to(left[0], left.shape), atol=1e-4)
    # Columns 0 and 3 make the target.
    assert set(models.top_features(values, 2)) == {0, 3}


@pytest.mark.parametrize(
    ("task", "objective"),
    [("two", "binary:logistic"), ("many", "multi:softprob"), ("quantity", "reg:squarederror")],
)
def test_objective_of_every_task(task: str, objective: str) -> None:
    import json

    import xgboost

    model = models.fit(*of_task(task))
    assert isinstance(model, xgboost.Booster)
    assert json.loads(model.save_config())["learner"]["objective"]["name"] == objective


def test_predictions_of_every_task() -> None:
    for task in TASKS:
        rows, labels = of_task(task, 900)
        seen, unseen = np.arange(600), np.arange(600, 900)
        found = models.predict(rows[seen], labels.of(seen), rows[unseen])
        answers = labels.values[unseen]
        if task == "two":
            assert found.shape == (300,)
            assert auc(answers.astype(np.uint8), found) > 0.7
        elif task == "many":
            assert found.shape == (300, 5)
            np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
            assert (found.argmax(axis=1) == answers).mean() > 0.8
            # A class that does not occur is not expected to.
            assert found[:, 2].max() < 0.05
        else:
            assert found.shape == (300,)
            # In the owner's units.
            assert np.abs(found - answers).mean() < 60 < answers.std()


def test_a_quantity_at_any_scale() -> None:
    rows, labels = of_task("quantity")
    expected = models.shap_values(rows, labels)
    for scale in (2.0**-40, 2.0**900):
        scaled = replace(labels, values=labels.values * scale)
        np.testing.assert_allclose(models.shap_values(rows, scaled), expected, atol=1e-9)
    huge = replace(labels, values=np.where(labels.values > 1e6, 1.7e308, -1.7e308))
    found = models.predict(rows, huge, rows)
    assert np.isfinite(found).all()
    assert (np.sign(found) == np.sign(huge.values)).mean() > 0.95
    alike = replace(labels, values=np.full(300, 0.1))
    assert (models.shap_values(rows, alike) == 0).all()
    assert models.predict(rows, alike, rows) == pytest.approx([0.1] * 300)


def test_importance_is_the_mean_absolute_shap_value() -> None:
    from unittest import mock

    for task in TASKS:
        rows, labels = of_task(task)
        expected = np.abs(models.shap_values(rows, labels)).mean(axis=(0, 1))
        assert mean_shap(rows, labels, rows) == pytest.approx(expected, rel=1e-5)
        with mock.patch.object(contract_columns, "BLOCK", 200):
            assert mean_shap(rows, labels, rows) == pytest.approx(expected, rel=1e-5)


def test_top_features_over_all_outputs() -> None:
    values = np.zeros((2, 3, 4))
    values[:, 0, 1] = 5
    values[:, 1, 2] = [-4, 4]
    values[:, 2, 2] = [-4, 4]
    assert models.top_features(values, 2) == [2, 1]


def test_distance_is_the_greatest_over_the_outputs() -> None:
    rng = np.random.default_rng(0)
    observed = rng.normal(size=(50, 3, 4))
    baseline = observed[:, :, [3, 1]].copy()
    baseline[:, 2, 0] += 0.5
    baseline[:, 0, 0] += 0.25
    baseline[:, 1, 1] -= 2.0
    assert models.distances(baseline, observed, [3, 1]) == pytest.approx([0.5, 2.0])
    assert [output for _, output in models.moved(baseline, observed, [3, 1])] == [2, 1]


@given(
    arrays(np.float64, (3, 2), elements=st.floats(-1e308, 1e308)),
    arrays(np.float64, (3, 2), elements=st.floats(0, 1e307)),
)
def test_midpoint(low: Floats, width: Floats) -> None:
    leaves = Leaves(count=np.full(3, 4), minimum=low, maximum=low + width)
    middle = midpoints(leaves)
    assert np.isfinite(middle).all()
    np.testing.assert_allclose(middle, low + width / 2, rtol=1e-12, atol=1e-300)


def test_midpoint_by_hand() -> None:
    leaves = Leaves(count=np.array([4]), minimum=np.array([[18.0]]), maximum=np.array([[25.0]]))
    assert midpoints(leaves).tolist() == [[21.5]]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 10)), min_size=2, max_size=60))
def test_f1_and_auc_are_sklearns(pairs: list[tuple[int, int]]) -> None:
    from sklearn import metrics  # Takes seconds to load, which collecting need not.

    target = np.array([t for t, _ in pairs], np.uint8)
    probability = np.array([p / 10 for _, p in pairs])
    expected = metrics.f1_score(target, probability >= 0.5, zero_division=0.0)
    assert f1(target, probability) == pytest.approx(expected)
    if 0 < target.sum() < target.size:
        expected = metrics.roc_auc_score(target, probability)
        assert auc(target, probability) == pytest.approx(expected)


def judged(
    distance: list[float], profile: Profile, options: VerifyOptions, calibration: Floats
) -> tuple[Status, dict[str, object]]:
    """The layer's finding if these are the distances of the top features."""
    from unittest import mock

    prepared = cases.prepared()
    manifest = replace(
        prepared.manifest, calibration=calibration, paper_calibration=calibration[:1]
    )
    case = cases.case_of(cases.honest(prepared.submission), manifest, None, options)
    with mock.patch.object(models, "moved", return_value=[(each, 0) for each in distance]):
        finding = layer.check(case, profile)
    return finding.status, dict(finding.evidence)


NO_RUNS = np.empty((0, 3))


@pytest.mark.parametrize(
    ("distance", "status"),
    [
        ([0.1, 0.2, 0.3], Status.PASS),
        ([0.45, 0.45, 0.45], Status.PASS),
        ([0.0, 0.0, 0.4501], Status.FAIL),
        ([0.4501, 0.0, 0.0], Status.FAIL),
        ([0.0, 9.0, 0.0], Status.FAIL),
        # Their mean would pass: it is an OR over the features.
        ([0.46, 0.01, 0.01], Status.FAIL),
    ],
)
@pytest.mark.parametrize("profile", list(Profile))
def test_any_feature_over_epsilon(distance: list[float], status: Status, profile: Profile) -> None:
    options = VerifyOptions(epsilon=None if profile is Profile.PAPER else 0.45)
    found, evidence = judged(distance, profile, options, NO_RUNS)
    assert (found, evidence["epsilon"]) == (status, [0.45] * 3)


@pytest.mark.parametrize("profile", [Profile.FULL, Profile.THIN])
def test_no_epsilon_from_elsewhere(profile: Profile) -> None:
    """The paper's 0.45 means nothing on another table, so without runs nothing is concluded."""
    assert judged([9.0, 9.0, 9.0], profile, VerifyOptions(), NO_RUNS)[0] is Status.INCONCLUSIVE
    runs = np.array([[0.1, 0.5, 0.2], [0.7, 0.3, 0.3]])
    for distance, status in ((0.7, Status.PASS), (0.701, Status.FAIL)):
        assert judged([0.0, distance, 0.0], profile, VerifyOptions(), runs)[0] is status


def test_epsilon_of_one_calibrated_run() -> None:
    runs = np.array([[0.1, 0.5, 0.2], [3.0, 3.0, 3.0]])
    for distance, status in ((0.5499, Status.PASS), (0.5501, Status.FAIL)):
        found, evidence = judged([distance, 0, 0], Profile.PAPER, VerifyOptions(), runs)
        assert found is status
        assert evidence["epsilon"] == pytest.approx([0.55] * 3)


def test_epsilon_as_asked_for() -> None:
    names = [
        cases.prepared().manifest.quasi[i].name for i in cases.prepared().manifest.top_features
    ]
    options = VerifyOptions(epsilon=0.2, epsilon_per_feature={names[1]: 0.9})
    status, evidence = judged([0.1, 0.8, 0.1], Profile.PAPER, options, NO_RUNS)
    assert (status, evidence["epsilon"]) == (Status.PASS, [0.2, 0.9, 0.2])
    assert judged([0.3, 0.0, 0.0], Profile.FULL, options, NO_RUNS)[0] is Status.FAIL


def test_p_value_counts_this_run_too() -> None:
    runs = np.array([[0.1, 0.5], [0.2, 0.1], [0.9, 0.3]])
    assert layer.p_value(1.0, runs) == pytest.approx(1 / 4)
    assert layer.p_value(0.5, runs) == pytest.approx(3 / 4)
    assert layer.p_value(0.0, runs) == 1.0
    assert layer.p_value(0.5, NO_RUNS) is None
    # 99 runs are what a level of 1 % takes.
    assert layer.p_value(9.0, np.ones((99, 3))) == pytest.approx(0.01)


def test_calibration_runs_are_kept() -> None:
    made = prepare(
        cases.table(120),
        target="y",
        quasi="all",
        k=3,
        options=PrepareOptions(unsafe_seed=1, calibrate=2),
    )
    assert made.manifest.calibration.shape == (2, 3)
    assert (made.manifest.calibration > 0).all()
    # The paper's rule has one run, between independent samples of so few records: other figures.
    assert made.manifest.paper_calibration.shape == (1, 3)
    assert (made.manifest.paper_calibration > 0).all()


def test_the_papers_threshold_is_of_independent_samples() -> None:
    prepared = cases.prepared()
    manifest = replace(
        prepared.manifest,
        calibration=np.full((5, 3), 1e-9),
        paper_calibration=np.array([[0.1, 2.0, 0.3]]),
    )
    delivery = cases.honest(prepared.submission)
    case = cases.case_of(delivery, manifest, None, VerifyOptions(threads=1))
    evidence = layer.check(case, Profile.PAPER).evidence
    assert evidence["epsilon"] == pytest.approx([2.2] * 3)
    assert evidence["p_value"] is None
    assert layer.check(case, Profile.THIN).evidence["epsilon"] == pytest.approx([1e-9] * 3)


def test_honest_midpoints_are_those_of_an_honest_delivery() -> None:
    submission = cases.prepared().submission
    records = submission.records
    delivery = cases.honest(submission)
    expected = midpoints(delivery.leaves)[delivery.records.leaf].T
    found = honest_midpoints(records.values, records.target, submission.contract)
    assert (found == expected).all()
    assert expectations.FINGERPRINT_ROWS == 2_000
