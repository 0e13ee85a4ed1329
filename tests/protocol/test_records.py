"""Records stand under their contract, or are refused in a sentence."""

from typing import Any

import numpy as np
import pytest

from support import categorical, numeric, submission, trackers
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.records import Records, wire_columns, wire_type

TARGET = [0, 1, 0, 1]
NAN, INF = float("nan"), float("inf")


def refused(message: str, values: list[float], column: Column) -> None:
    with pytest.raises(TableError, match=message):
        submission([values], TARGET, described=[column])


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_values_must_be_finite(bad: float) -> None:
    for values in ([bad, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, bad], [bad, -bad, 0.0, 0.0]):
        refused("'x' has a value that is not finite", values, numeric("x"))
        refused("'c'", values, categorical("c", 4))


def test_minus_zero_is_never_hashed() -> None:
    # It equals 0.0 but has other bytes, so two parties could disagree on a digest.
    contract = submission([[0.0] * 4], TARGET).contract
    records = Records(
        tracker=trackers(4),
        values=np.array([[1.0, -0.0, 2.0, -3.0]]),
        target=np.array(TARGET, np.uint8),
    )
    with pytest.raises(TableError, match=r"'x0' has -0\.0"):
        Submission(contract=contract, records=records)


def test_huge_values_are_finite_though_their_sum_is_not() -> None:
    assert submission([[1e308] * 4], TARGET).records.n_rows == 4
    assert submission([[1e308, 1e308, -1e308, -1e308]], TARGET).records.n_rows == 4


@pytest.mark.parametrize("position", [-1.0, 3.0, 0.5, 1e300])
def test_positions_must_be_categories(position: float) -> None:
    refused("outside its 3 values", [0.0, 1.0, 2.0, position], categorical("c", 3))
    assert submission([[0.0, 1.0, 2.0, 0.0]], TARGET, described=[categorical("c", 3)])


def test_too_few_records() -> None:
    with pytest.raises(TableError, match="at least min_leaf = 4 records"):
        submission([[1.0, 2.0, 3.0]], [0, 1, 0])


def test_a_target_is_0_or_1() -> None:
    with pytest.raises(TableError, match="the target has a value other than 0 and 1"):
        submission([[1.0] * 4], [0, 1, 2, 1])


def test_the_number_of_columns_must_fit() -> None:
    contract = submission([[1.0] * 4], TARGET).contract
    records = submission([[1.0] * 4, [2.0] * 4], TARGET).records
    with pytest.raises(TableError, match="have 2 quasi-identifiers, the contract 1"):
        Submission(contract=contract, records=records)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tracker": trackers(3)},
        {"tracker": trackers(4)[:, :31]},
        {"values": np.zeros((1, 3))},
        {"values": np.zeros(4)},
        {"values": np.zeros((1, 4), np.float32)},
        {"target": np.zeros(4, np.int64)},
    ],
)
def test_shapes_and_types_are_our_own_affair(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {
        "tracker": trackers(4),
        "values": np.zeros((1, 4)),
        "target": np.zeros(4, np.uint8),
    }
    assert Records(**right).nbytes == 4 * (32 + 8 + 1)
    with pytest.raises(AssertionError):
        Records(**(right | wrong))


def test_wire_columns_follow_the_contract() -> None:
    described = [numeric("x"), categorical("c", 3)]
    table = submission([[0.5, 1.5, 2.5, 3.5], [0, 1, 2, 0]], TARGET, described=described)
    columns = list(wire_columns(table.contract, table.records, slice(1, 3)))
    assert [column.tolist() for column in columns] == [[1.5, 2.5], [1, 2], [1, 0]]
    assert [column.dtype.str for column in columns] == ["<f8", "<i4", "|u1"]
    assert [wire_type(column).str for column in table.contract.columns] == ["<f8", "<i4", "|u1"]
