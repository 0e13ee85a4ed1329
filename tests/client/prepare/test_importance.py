"""Weights of the rule importance-spread: exact, bounded, and by what the target asks for."""

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import cases
from verix_anon.client import models
from verix_anon.client.prepare import contract_columns
from verix_anon.client.prepare import contract_columns as module
from verix_anon.client.prepare.contract_columns import weights
from verix_anon.client.prepare.options import Importance
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.table.task import Labels, Task
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Kind

SECRET = Secret(bytes(32))
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


@given(st.floats(0, 1, exclude_min=True), st.integers(1, 2**31 - 1))
def test_weight_is_the_exact_quotient_and_within_the_contract(share: float, size: int) -> None:
    (found,) = weights(NOTHING, Labels.none(10), [size], importance=[share], secret=SECRET)
    spread = max(1, size - 1)
    exact = Fraction(2**52) * Fraction(share) / spread
    assert found == max(1, exact.numerator // exact.denominator)
    assert found * spread <= 2**52
    # A contract takes it.
    assert Column(name="q0", kind=Kind.RANK, size=size, weight=found).weight == found


def test_weights_by_hand() -> None:
    given_ = [1.0, 0.5, 1e-300]
    found = weights(NOTHING, Labels.none(10), [1, 4, 2], importance=given_, secret=SECRET)
    assert found == (2**52, 2**51 // 3, 1)
    # Where a product in binary64 would round up to 2^52.
    share = math.nextafter(1.0, 0.0)
    (found_,) = weights(NOTHING, Labels.none(10), [4], importance=[share], secret=SECRET)
    assert found_ == (2**53 - 1) * 2**52 // (2**53 * 3)


def test_uniform_asks_no_model() -> None:
    positions, sizes = table()
    for labels, how in (
        (targets(positions)["two"], Importance.UNIFORM),
        (Labels.none(400), Importance.UNIFORM),
    ):
        with mock.patch.object(models, "fit") as fit:
            found = weights(positions, labels, sizes, importance=how, secret=SECRET)
        assert not fit.called
        assert found == (2**52 // 39, 2**52 // 8, 2**52, 2**52)


@pytest.mark.parametrize("task", ["two", "many", "quantity"])
def test_measured_by_the_owners_target(task: str) -> None:
    positions, sizes = table()
    labels = targets(positions)[task]
    found = weights(positions, labels, sizes, importance=Importance.AUTO, secret=SECRET)
    values = np.abs(models.shap_values(positions.T, labels)).mean(axis=(0, 1))
    shares = [weight * max(1, size - 1) / 2**52 for weight, size in zip(found, sizes, strict=True)]
    expected = np.maximum(1 / 8, np.sqrt(values / values.max()))
    # The records stand in another order, and a model sums in binary32.
    assert shares == pytest.approx(expected, rel=0.02)
    assert shares[1] == pytest.approx(1.0)
    # What tells nothing about the target still counts a little.
    assert shares[3] == pytest.approx(1 / 8)


def measured(found: list[float]) -> list[float]:
    labels = cases.two_classes(np.zeros(10, np.uint8))
    with mock.patch.object(contract_columns, "mean_shap", return_value=np.array(found)):
        made = weights(NOTHING, labels, [2] * 3, importance=Importance.AUTO, secret=SECRET)
    return [weight / 2**52 for weight in made]


def test_the_root_of_the_share_of_the_greatest() -> None:
    assert measured([0.5, 2.0, 0.08]) == pytest.approx([0.5, 1.0, 0.2])
    assert measured([1e-9, 2.0, 2.0 / 64]) == [1 / 8, 1.0, 1 / 8]
    assert measured([0.0, 0.0, 0.0]) == [1.0, 1.0, 1.0]


def test_at_most_20000_records_drawn_by_the_salt() -> None:
    n_rows = 20_100
    positions = np.arange(n_rows, dtype=np.float64).reshape(1, -1)
    labels = Labels(task=Task.QUANTITY, values=positions[0] * 2)

    def drawn(secret: Secret) -> tuple[Floats, Floats]:
        with mock.patch.object(contract_columns, "mean_shap", return_value=np.ones(1)) as asked:
            weights(positions, labels, [n_rows], importance=Importance.AUTO, secret=secret)
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


@pytest.mark.parametrize(
    ("given_", "complaint"),
    [
        ([1.0, 0.0, 1.0], "greater than 0 and at most 1"),
        ([1.0, 1.01, 1.0], "greater than 0 and at most 1"),
        ([1.0, -0.5, 1.0], "greater than 0"),
        ([1.0, math.nan, 1.0], "greater than 0"),
        (Importance.AUTO, "without a target the importance is uniform, or given"),
    ],
)
def test_what_cannot_be_an_importance(given_: list[float] | Importance, complaint: str) -> None:
    with pytest.raises(TableError, match=complaint):
        weights(NOTHING, Labels.none(10), [2] * 3, importance=given_, secret=SECRET)
