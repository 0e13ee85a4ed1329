"""Labels of any target: classes, a quantity, or none."""

import datetime as dt

import pyarrow as pa
import pytest

from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.task import Labels, Task
from verix_anon.errors import TableError


def labels(values: list[object], **declared: object) -> Labels:
    table = pa.table({"x": list(range(len(values))), "y": values})
    return read_owner_table(table, Declared(target="y", quasi="all", **declared)).labels  # type: ignore[arg-type]


def test_text_booleans_and_two_values_are_classes() -> None:
    assert labels(["b", "a", "c", "a"]).classes == ("a", "b", "c")
    assert labels(["b", "a", "c", "a"]).values.tolist() == [1, 0, 2, 0]
    assert labels([True, False]).classes == ("false", "true")
    assert labels([7, 3, 7]).classes == ("3", "7")
    assert labels([7, 3, 7], positive=3).values.tolist() == [0, 1, 0]


def test_other_numbers_and_dates_are_a_quantity() -> None:
    found = labels([1.5, -0.0, 7.0])
    assert (found.task, found.values.tolist(), found.classes) == (Task.QUANTITY, [1.5, 0, 7], ())
    days = labels([dt.date(1970, 1, 2), dt.date(1970, 1, 1), dt.date(1970, 1, 11)])
    assert days.values.tolist() == [1, 0, 10]


def test_the_owner_may_say_otherwise() -> None:
    assert labels([1, 2, 3], task="classes").classes == ("1", "2", "3")
    assert labels([0, 1, 1], task="quantity").values.tolist() == [0, 1, 1]
    assert labels(["1", "2.5", "3"], task="quantity").values.tolist() == [1, 2.5, 3]
    with pytest.raises(TableError, match="the task is 'none'"):
        labels([0, 1, 1], task="none")
    with pytest.raises(TableError, match="a positive class goes with two classes"):
        labels(["a", "b", "c"], positive="b")


def test_no_target() -> None:
    table = pa.table({"x": [1, 2, 3]})
    found = read_owner_table(table, Declared(quasi="all", task="none"))
    assert found.labels.task is Task.NONE
    assert [column.name for column in found.columns] == ["x"]
    assert found.target.tolist() == [0, 0, 0]


@pytest.mark.parametrize("values", [[1.5, None, 2.5, 3.5], ["a", None, "b"]])
def test_a_missing_label_is_refused(values: list[object]) -> None:
    with pytest.raises(TableError, match="missing in 1 rows"):
        labels(values)
