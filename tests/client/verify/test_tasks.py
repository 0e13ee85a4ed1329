"""Fingerprint and utility for every task, with the owner's own labels."""

import json
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools import cases
from verix_anon.client import models
from verix_anon.client.manifest import Manifest, read_manifest
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.report.cards import card
from verix_anon.client.table.task import Labels, Task
from verix_anon.client.verdict import Profile, Status
from verix_anon.client.verify import fingerprint, utility, verify
from verix_anon.client.verify.utility import measure
from verix_anon.protocol.messages import Delivery
from verix_anon.translation import PageTexts

Floats = npt.NDArray[np.float64]
MANY = tuple("abcd")


def labels_of(task: str, values: Floats) -> Labels:
    """Targets that depend on age and score, the first two columns."""
    amount = values[0] + 20 * values[1]
    if task == "none":
        return Labels.none(amount.size)
    if task == "quantity":
        return Labels(task=Task.QUANTITY, values=1000 * amount)
    cuts = [0.3, 0.6, 0.9] if task == "many" else [0.6]
    found = np.searchsorted(np.quantile(amount, cuts), amount).astype(float)
    return Labels(task=Task.CLASSES, values=found, classes=MANY[: len(cuts) + 1])


def kept(manifest: Manifest, labels: Labels) -> Manifest:
    """The manifest as it would be with that target."""
    if labels.task is Task.NONE:
        baseline, top = np.empty((labels.values.size, 0, 0)), list[int]()
    else:
        shap = models.shap_values(manifest.watch_values.T, labels)
        top = models.top_features(shap)
        baseline = shap[:, :, top]
    return replace(
        manifest,
        task=labels.task,
        classes=labels.classes,
        watch_target=labels.values,
        top_features=top,
        baseline=baseline,
    )


def with_task(task: str) -> tuple[Manifest, Delivery]:
    made = cases.prepared(clear=True)
    labels = labels_of(task, made.manifest.watch_values)
    return kept(made.manifest, labels), cases.honest(made.submission)


EXPECTED = {"two": ("f1", "auc"), "many": ("macro_f1", "auc"), "quantity": ("r2",)}


@pytest.mark.parametrize("task", EXPECTED)
def test_utility_by_task(task: str) -> None:
    manifest, delivery = with_task(task)
    finding = utility.check(cases.case_of(delivery, manifest))
    assert finding.status is Status.PASS
    raw, after = finding.evidence["raw"], finding.evidence["delivery"]
    assert isinstance(raw, dict)
    assert isinstance(after, dict)
    assert set(EXPECTED[task]) <= raw.keys() == after.keys()
    for name in EXPECTED[task]:
        assert raw[name] > 0.7
        if name != "f1":
            assert 0 < after[name] < raw[name]
    if task == "two":
        # F1 cuts at 0.5: one of the 44 positive records that crosses it moves F1 by 0.01 or more,
        # so that coarse records may be ahead by a hair. AUC looks at the whole order.
        assert 0.9 < after["f1"] < raw["f1"] + 0.01
    assert finding.evidence["tested_on"] == 100
    json.dumps(dict(finding.evidence), allow_nan=False)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("two", ("F1 0.", "AUC 0.")),
        ("many", ("macro F1 0.", "AUC 0.")),
        ("quantity", ("R2 0.", "mean absolute error ")),
    ],
)
def test_summary_and_report_name_the_measures(task: str, words: tuple[str, str]) -> None:
    manifest, delivery = with_task(task)
    finding = utility.check(cases.case_of(delivery, manifest))
    figures = dict(card(finding, Profile.FULL, PageTexts("en")).figures)
    for shown in (figures["trained on raw records"], figures["trained on the delivery"]):
        parts = shown.split(", ")
        assert [part.startswith(word) for part, word in zip(parts, words, strict=True)] == [
            True
        ] * 2
        assert " and ".join(parts) in finding.summary


@pytest.mark.parametrize("task", EXPECTED)
def test_fingerprint_by_task(task: str) -> None:
    manifest, delivery = with_task(task)
    case = cases.case_of(delivery, manifest)
    finding = fingerprint.check(case, Profile.THIN)
    assert finding.status is Status.INCONCLUSIVE
    middle = (delivery.leaves.minimum / 2 + delivery.leaves.maximum / 2)[
        case.leaves_of(manifest.watch_row)
    ]
    observed = models.shap_values(middle, manifest.watch_labels)
    top = list(manifest.top_features)
    expected = [
        max(
            models.wasserstein(manifest.baseline[:, c, i], observed[:, c, feature])
            for c in range(manifest.watch_labels.n_outputs)
        )
        for i, feature in enumerate(top)
    ]
    assert finding.evidence["distance"] == pytest.approx(expected)
    shap = finding.evidence["shap"]
    assert isinstance(shap, list)
    # However many classes, one histogram for each feature: of all the records.
    assert [sum(each["before"]) for each in shap] == [400] * 3
    assert len(json.dumps(dict(finding.evidence), allow_nan=False)) < 4000
    assert len(card(finding, Profile.THIN, PageTexts("en")).pictures) == 3


def test_without_a_target_nothing_is_measured() -> None:
    manifest, delivery = with_task("none")
    case = cases.case_of(delivery, manifest)
    for finding in (utility.check(case), *(fingerprint.check(case, each) for each in Profile)):
        assert finding.status is Status.SKIPPED
        assert finding.summary == "Not run: there is no target."
    assert verify(delivery, manifest)


@pytest.mark.parametrize("task", EXPECTED)
def test_labels_are_the_owners_own(task: str) -> None:
    manifest, delivery = with_task(task)
    target = 1 - delivery.records.target
    lying = replace(delivery, records=replace(delivery.records, target=target))
    honest, other = (cases.case_of(each, manifest) for each in (delivery, lying))
    assert utility.check(honest) == utility.check(other)
    assert fingerprint.check(honest, Profile.FULL) == fingerprint.check(other, Profile.FULL)


@pytest.mark.parametrize("task", EXPECTED)
def test_watch_records_that_did_not_come_back(task: str) -> None:
    """Each of the others keeps its own label."""
    manifest, delivery = with_task(task)
    gone = np.isin(delivery.records.row, manifest.watch_row[::7])
    part = replace(
        delivery,
        records=replace(
            delivery.records,
            row=delivery.records.row[~gone],
            tracker=delivery.records.tracker[~gone],
            leaf=delivery.records.leaf[~gone],
            target=delivery.records.target[~gone],
        ),
    )
    case = cases.case_of(part, manifest)
    rows, labels = fingerprint._observed(case, Profile.THIN)
    is_back = np.arange(400) % 7 != 0
    assert (labels.values == manifest.watch_target[is_back]).all()
    assert len(rows) == is_back.sum() == fingerprint.check(case, Profile.THIN).evidence["records"]
    assert utility.check(case).evidence["tested_on"] == is_back.sum() // 4


@pytest.mark.parametrize("task", EXPECTED)
def test_all_labels_the_same(task: str) -> None:
    manifest, delivery = with_task(task)
    alike = replace(manifest, watch_target=np.ones(400))
    case = cases.case_of(delivery, alike)
    for finding in (utility.check(case), fingerprint.check(case, Profile.THIN)):
        assert finding.status is Status.INCONCLUSIVE
        assert "different labels" in finding.summary


@pytest.mark.parametrize("task", [*EXPECTED, "none"])
def test_the_manifest_keeps_the_task(task: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    manifest, _ = with_task(task)
    path = tmp_path_factory.mktemp("kept") / "m"
    write_manifest(manifest, path)
    again = read_manifest(path)
    assert (again.task, again.classes) == (manifest.task, manifest.classes)
    assert again.baseline.shape == manifest.baseline.shape
    assert (again.watch_labels.values == manifest.watch_target).all()
    assert again.watch_target.dtype == np.float64


@pytest.mark.usefixtures("quick_models")
@pytest.mark.parametrize("task", [*EXPECTED, "none"])
def test_a_journey_of_every_task(task: str) -> None:
    """Coded and without the target: what is measured is what was sent."""
    source = cases.table(300)
    amount = np.asarray(source["age"]) + 20 * np.asarray(source["score"])
    found = labels_of(task, np.vstack([amount, 0 * amount]))
    source = source.drop(["y"])
    if task != "none":
        named = [found.classes[int(v)] for v in found.values] if found.classes else found.values
        source = source.append_column("y", pa.array(named))
    options = PrepareOptions(
        unsafe_seed=1, threads=1, calibrate=1, rule="importance-spread", clear=False, min_leaf="k"
    )
    target, denied = (None, "none") if task == "none" else ("y", None)
    made = prepare(source, target=target, task=denied, quasi="all", k=3, options=options)
    manifest, n_watch = made.manifest, 300
    assert (manifest.task, manifest.classes) == (found.task, found.classes)
    owner = manifest.owner_row[manifest.watch_row]
    assert (manifest.watch_target == found.values[owner]).all()
    assert (manifest.watch_values == np.floor(manifest.watch_values)).all()
    n_top = 0 if task == "none" else 3
    assert manifest.baseline.shape == (n_watch, found.n_outputs, n_top)
    assert manifest.calibration.shape == (0 if task == "none" else 1, 3)
    delivery = cases.honest(made.submission)
    assert not delivery.records.target.any()
    verdict = verify(delivery, manifest, submission=made.submission)
    assert verdict.accepted
    status = {finding.layer: finding.status for finding in verdict.findings}
    assert status["utility"] is (Status.SKIPPED if task == "none" else Status.PASS)
    assert (status["fingerprint"] is Status.SKIPPED) is (task == "none")


scores = st.lists(
    st.tuples(st.integers(0, 3), st.tuples(*[st.integers(0, 8)] * 4)), min_size=2, max_size=60
)


@settings(deadline=None)
@given(scores)
def test_measures_of_classes_are_sklearns(pairs: list[tuple[int, tuple[int, ...]]]) -> None:
    from sklearn import metrics  # Takes seconds to load, which collecting need not.

    target = np.array([label for label, _ in pairs])
    predicted = np.array([each for _, each in pairs], float)
    if np.unique(target).size < 2:
        return
    labels = Labels(task=Task.CLASSES, values=target.astype(float), classes=MANY)
    found = measure(labels, predicted)
    answer = predicted.argmax(axis=1)
    expected = metrics.f1_score(target, answer, average="macro", zero_division=0.0)
    assert found["macro_f1"] == pytest.approx(expected)
    # scikit-learn wants every class; here the mean is over those that occur.
    expected = np.mean(
        [metrics.roc_auc_score(target == c, predicted[:, c]) for c in np.unique(target)]
    )
    assert found["auc"] == pytest.approx(expected)
    assert all(0 <= value <= 1 for value in found.values())


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=40),
    st.sampled_from([1.0, 1e-200, 1e200]),
)
def test_measures_of_a_quantity_are_sklearns(pairs: list[tuple[int, int]], scale: float) -> None:
    from sklearn import metrics  # Takes seconds to load, which collecting need not.

    target, predicted = np.array(pairs, float).T
    if np.unique(target).size < 2:
        return
    found = measure(Labels(task=Task.QUANTITY, values=target * scale), predicted * scale)
    assert found["r2"] == pytest.approx(metrics.r2_score(target, predicted))
    expected = metrics.mean_absolute_error(target, predicted)
    assert found["mean_absolute_error"] == pytest.approx(expected * scale)


def test_errors_beyond_all_numbers_are_finite() -> None:
    values = np.array([1.7e308, -1.7e308, 0.0])
    found = measure(Labels(task=Task.QUANTITY, values=values), -values)
    json.dumps(found, allow_nan=False)
    assert found["r2"] == pytest.approx(-3)
