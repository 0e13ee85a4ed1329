"""Weights of the rule importance-spread: equal, by priorities, or by what a model says."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import cases
from verix_anon.client import models
from verix_anon.client.prepare import contract_columns, prepare
from verix_anon.client.prepare import contract_columns as module
from verix_anon.client.prepare.contract_columns import weights
from verix_anon.client.prepare.options import Importance, PrepareOptions
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.table.task import Labels, Task
from verix_anon.datasets import census
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Kind
from verix_anon.provider.local import LocalProvider

SECRET, AUTO = Secret(bytes(32)), Importance.AUTO
KEPT = [name for name in census(1).column_names if name not in ("age", "sex", "income")]
Floats = npt.NDArray[np.float64]
NOTHING = np.zeros((3, 10))


def table(n_rows: int = 400) -> tuple[Floats, list[int]]:
    rng = np.random.default_rng(0)
    sizes = [40, 9, 2, 1]
    return np.vstack([rng.integers(0, size, n_rows) for size in sizes]).astype(float), sizes


def targets(positions: Floats) -> dict[str, Labels]:
    """Targets that depend on the second column, and a little on the first."""
    amount = 10 * positions[1] + positions[0] / 10
    return {
        "two": cases.two_classes((positions[1] > 4).astype(np.uint8)),
        "many": Labels(
            task=Task.CLASSES, values=positions[1] // 3 + (positions[0] > 38), classes=tuple("abcd")
        ),
        "quantity": Labels(task=Task.QUANTITY, values=amount),
    }


def weighed(sizes: list[int], factors: list[float]) -> tuple[int, ...]:
    """What columns of these sizes weigh without a model."""
    how = Importance.UNIFORM
    return weights(NOTHING, Labels.none(10), sizes, factors, importance=how, secret=SECRET)


@given(st.floats(0, 1, exclude_min=True), st.integers(1, 2**31 - 1))
def test_weight_is_the_exact_quotient_and_within_the_contract(share: float, size: int) -> None:
    found, _ = weighed([size, 2], [share, 1.0])
    spread = max(1, size - 1)
    exact = Fraction(2**52) * Fraction(share) / spread
    assert found == max(1, exact.numerator // exact.denominator)
    assert found * spread <= 2**52
    # A contract takes it.
    assert Column(name="q0", kind=Kind.RANK, size=size, weight=found).weight == found


def test_weights_by_hand() -> None:
    assert weighed([1, 4, 2], [1.0, 0.5, 1e-300]) == (2**52, 2**51 // 3, 1)
    # Only their ratios count, however large or small they are.
    assert weighed([1, 4, 2], [4.0, 2.0, 1.0]) == (2**52, 2**51 // 3, 2**50)
    assert weighed([2, 2], [1.7e308, 1.7e308]) == weighed([2, 2], [5e-324, 5e-324]) == (2**52,) * 2
    # Where a product in binary64 would round up to 2^52.
    share = math.nextafter(1.0, 0.0)
    assert weighed([4, 2], [share, 1.0])[0] == (2**53 - 1) * 2**52 // (2**53 * 3)


@pytest.mark.parametrize("how", Importance)
def test_without_a_model_all_weigh_the_same(how: Importance) -> None:
    positions, sizes = table()
    labels = Labels.none(400) if how is Importance.AUTO else targets(positions)["two"]
    with mock.patch.object(models, "fit") as fit:
        found = weights(positions, labels, sizes, [1.0] * 4, importance=how, secret=SECRET)
    assert not fit.called
    assert found == (2**52 // 39, 2**52 // 8, 2**52, 2**52)


@pytest.mark.parametrize(
    ("options", "fits"), [(PrepareOptions(), 1), (PrepareOptions(importance="auto"), 2)]
)
def test_prepare_fits_a_model_for_the_fingerprint_and_none_for_weights(
    options: PrepareOptions, fits: int
) -> None:
    options = replace(options, unsafe_seed=1, threads=1)
    with mock.patch.object(models, "fit", wraps=models.fit) as fit:
        made = prepare(
            census(300), target="income", quasi=["age", "sex"], kept=KEPT, options=options
        )
    assert fit.call_count == fits
    quasi = made.submission.contract.quasi
    by_size = [2**52 // (column.size - 1) for column in quasi if column.size is not None]
    assert ([column.weight for column in quasi] == by_size) == (fits == 1)


@pytest.mark.parametrize("task", ["two", "many", "quantity"])
def test_measured_by_the_owners_target(task: str) -> None:
    positions, sizes = table()
    labels = targets(positions)[task]
    found = weights(positions, labels, sizes, [1.0] * 4, importance=AUTO, secret=SECRET)
    values = np.abs(models.shap_values(positions.T, labels)).mean(axis=(0, 1))
    shares = [weight * max(1, size - 1) / 2**52 for weight, size in zip(found, sizes, strict=True)]
    expected = np.maximum(1 / 8, np.sqrt(values / values.max()))
    # The records stand in another order, and a model sums in binary32.
    assert shares == pytest.approx(expected, rel=0.02)
    assert shares[1] == pytest.approx(1.0)
    # What tells nothing about the target still counts a little.
    assert shares[3] == pytest.approx(1 / 8)


def measured(found: list[float], factors: Sequence[float] = (1.0, 1.0, 1.0)) -> list[float]:
    labels = cases.two_classes(np.zeros(10, np.uint8))
    with mock.patch.object(contract_columns, "mean_shap", return_value=np.array(found)):
        made = weights(NOTHING, labels, [2] * 3, factors, importance=AUTO, secret=SECRET)
    return [weight / 2**52 for weight in made]


def test_the_root_of_the_share_of_the_greatest() -> None:
    assert measured([0.5, 2.0, 0.08]) == pytest.approx([0.5, 1.0, 0.2])
    assert measured([1e-9, 2.0, 2.0 / 64]) == [1 / 8, 1.0, 1 / 8]
    assert measured([0.0, 0.0, 0.0]) == [1.0, 1.0, 1.0]


def test_priorities_multiply_what_a_model_says() -> None:
    assert measured([0.5, 2.0, 0.08], [4.0, 1.0, 0.25]) == pytest.approx([1.0, 0.5, 0.025])


def test_at_most_20000_records_drawn_by_the_salt() -> None:
    n_rows = 20_100
    positions = np.arange(n_rows, dtype=np.float64).reshape(1, -1)
    labels = Labels(task=Task.QUANTITY, values=positions[0] * 2)

    def drawn(secret: Secret) -> tuple[Floats, Floats]:
        with mock.patch.object(contract_columns, "mean_shap", return_value=np.ones(1)) as asked:
            weights(positions, labels, [n_rows], [1.0], importance=AUTO, secret=secret)
        rows, own, seen = asked.call_args.args
        # Every record with its own label.
        assert (own.values == rows[:, 0] * 2).all()
        return rows[:, 0], seen[:, 0]

    rows, seen = drawn(SECRET)
    assert rows.size == np.unique(rows).size == module.SAMPLE_ROWS == 20_000
    assert (seen == rows[:2_000]).all()
    expected = SECRET.generator("importance").permutation(n_rows)[:20_000]
    assert (rows == expected).all()
    assert drawn(Secret(bytes(31) + b"x"))[0].tolist() != rows.tolist()


def test_priorities_weigh_the_columns() -> None:
    given_: dict[str, str | float] = {"age": "fine", "sex": "coarse", "education": 0.5}
    options = PrepareOptions(unsafe_seed=1, threads=1, traps="none", priorities=given_)
    table_ = census(300).select(["age", "sex", "education", "workclass", "income"])
    contract = prepare(table_, target="income", quasi="all", options=options).submission.contract
    weighed_ = [c.weight * (c.size - 1) / 2**50 for c in contract.quasi if c.weight and c.size]
    assert weighed_ == pytest.approx([4.0, 0.25, 0.5, 1.0])


@pytest.mark.parametrize(
    "priority", ["finest", "", 0, 0.0, -1, math.nan, math.inf, -math.inf, 10**400]
)
def test_what_cannot_be_a_priority(priority: str | float) -> None:
    with pytest.raises(TableError, match="the priority of column 'age' must be fine, normal, coar"):
        PrepareOptions(priorities={"age": priority})


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"priorities": {"agee": "fine"}}, "there is no column 'agee'; did you mean 'age'"),
        ({"priorities": {"income": "fine"}}, "'income' is declared as target; a priority is for"),
        ({"priorities": {"region": 2}}, "'region' is declared as kept; a priority is for quasi"),
        ({"priorities": {"age": 2}, "rule": "variance-reduction"}, "has no weights"),
        ({"priorities": {"age": True}}, "priorities must be a mapping of text to"),
        ({"importance": {"age": 1.0}}, "importance must be one of uniform, auto"),
    ],
)
def test_what_priorities_cannot_be_given_for(given_: dict[str, Any], message: str) -> None:
    def refused() -> None:
        options = PrepareOptions(unsafe_seed=1, threads=1, **given_)
        prepare(census(300), target="income", quasi=["age", "sex"], kept=KEPT, options=options)

    with pytest.raises(TableError, match=message):
        refused()


def lost(name: str, priority: str) -> float:
    """How much of a column a fixed table loses: the mean share of it that a leaf spans."""
    options = PrepareOptions(unsafe_seed=1, threads=1, traps="none", priorities={name: priority})
    table_ = census(1_500).select(["age", "sex", "education", "hours_per_week", "income"])
    made = prepare(table_, target="income", quasi="all", options=options).submission
    leaves = LocalProvider(threads=1).anonymize(made).leaves
    j = table_.column_names.index(name)
    spans = leaves.maximum[:, j] - leaves.minimum[:, j]
    size = made.contract.quasi[j].size
    assert size is not None
    return float(np.average(spans, weights=leaves.count) / (size - 1))


@pytest.mark.parametrize("name", ["age", "sex", "education", "hours_per_week"])
def test_what_is_kept_fine_loses_less(name: str) -> None:
    fine, normal, coarse = (lost(name, priority) for priority in ("fine", "normal", "coarse"))
    assert fine <= normal <= coarse
    # Half of it is saved at least.
    assert fine < coarse / 2
