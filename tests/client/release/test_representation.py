"""How a class is represented: intervals, bounds, midpoints, means; rounding and top-coding."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import support
from client.release.classes import NAN, NUMBER, interval, one_range, written
from verix_anon.client.release import ReleaseOptions, cells
from verix_anon.client.release import cells as labels
from verix_anon.client.release.cells import write_cells
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.ranges import range_of
from verix_anon.client.release.representation import ColumnForm, Presentation, Representation
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Contract, Kind, Unit, show_value

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
USUAL_NUMBERS = st.floats(-1e11, 1e11) | st.floats(-1e-3, 1e-3)


@given(st.lists(NUMBERS | USUAL_NUMBERS, min_size=1))
@example([1e-4, math.nextafter(1e10, 0)])
@example([math.nextafter(1e-4, 0), 1e10 + 0.5])
def test_intervals_are_of_values_as_people_write_them(values: list[float]) -> None:
    values = [value + 0.0 for value in values]
    ends = [show_value(NUMBER, f(values)) for f in (min, max)]
    ends = [f"({end})" if end.startswith("-") else end for end in ends]
    is_whole_one = min(values) == max(values) >= 0 and min(values).is_integer()
    assert interval(values) == (ends[0] if is_whole_one else "..".join(ends))


@pytest.mark.parametrize("unit", list(Unit))
def test_dates_are_as_people_write_them(unit: Unit) -> None:
    column = Column(name="x", kind=Kind.DATETIME, unit=unit)
    assert interval([-5, 12345], column=column) == "..".join(
        show_value(column, end) for end in (-5, 12345)
    )


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
    assert interval([-3, 17], round_to={"x": 5}) == "(-5)..20"
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
        found = one_range([1, 2], source=pa.int32(), representation="bounds", **chosen)
        return write_cells(found).columns["x_min"].type

    assert type_of() == type_of(round_to={"x": 5}) == pa.int64()
    assert type_of(round_to={"x": 0.5}) == type_of(top_code={"x": (1.5, None)}) == pa.float64()


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"round_to": {"z": 1}}, "no column 'z'"),
        ({"round_to": {"c": 1}}, "categorical"),
        ({"round_to": {"x": 0}}, "greater than 0"),
        ({"round_to": {"x": float("nan")}}, "greater than 0"),
        ({"round_to": {"d": 0.5}}, "whole numbers of day"),
        ({"round_to": {"d": "week"}}, "one of month, quarter, year"),
        ({"round_to": {"x": "month"}}, "cannot be rounded to 'month'"),
        ({"round_to": {"x": 1}, "representation": Representation.MEAN}, "not a mean"),
        ({"top_code": {"x": (None, None)}}, "lowest or a highest"),
        ({"top_code": {"x": (None, float("inf"))}}, "lowest or a highest"),
        ({"top_code": {"x": (5, 5)}}, "below the upper"),
        ({"top_code": {"d": (0.5, None)}}, "whole numbers of day"),
        ({"top_code": {"c": (0, 1)}}, "categorical"),
        ({"representation": "bounds"}, "'c' has categories without an order of yours"),
        ({"representations": {"z": "mean"}}, "no column 'z'"),
        ({"representations": {"c": "mean"}}, "'c' has categories, which have no mean"),
        ({"representations": {"c": "midpoint"}}, "'c' has categories without an order"),
        ({"representations": {"x": "shares"}}, "'x' has no categories"),
        ({"round_to": {"x": 1}, "representations": {"x": "mean"}}, "not a mean"),
    ],
)
def test_options_that_do_not_fit(chosen: dict[str, Any], message: str) -> None:
    day = Column(name="d", kind=Kind.DATETIME, unit=Unit.DAY)
    contract = Contract(
        submission_id=support.SUBMISSION_ID,
        k=2,
        min_leaf=4,
        columns=(NUMBER, day, support.categorical("c", 3), support.TARGET),
    )
    with pytest.raises(TableError, match=message):
        Presentation(**chosen).chosen(contract.quasi, (), {})


def test_representations_may_be_given_by_name() -> None:
    assert one_range([1, 3], representation="mean").mean.tolist() == [2.0]
    with pytest.raises(TableError, match="interval, bounds, midpoint, mean"):
        ReleaseOptions(representation="exact")


def test_steps_that_lead_beyond_all_dates_are_refused() -> None:
    day = Column(name="d", kind=Kind.DATETIME, unit=Unit.DAY)
    with pytest.raises(TableError, match="beyond all dates"):
        one_range([1, 2], column=day, round_to={"d": 1e300})


def test_a_set_has_no_category_that_does_not_occur() -> None:
    column = support.categorical("x", 5)
    assert column.categories is not None
    a, _, c, _, e = column.categories
    assert interval([4, 0, 2, 2], column=column, representation="set") == f"{{{a}, {c}, {e}}}"


def test_sets_and_shares_that_no_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    column = support.categorical("x", 1000)
    monkeypatch.setattr(labels, "MOST_TEXT", 1_000_000)
    with pytest.raises(TableError, match="group its categories"):
        write_cells(one_range(range(1000), column=column, representation="set"))
    monkeypatch.setattr(cells, "MOST_SHARES", 999_999)
    with pytest.raises(TableError, match="1,000 labels, too many"):
        write_cells(one_range(range(1000), column=column, representation="shares"))


def test_intervals_say_what_is_missing() -> None:
    assert interval([27, NAN, 34.3]) == "27..34.3 or missing"
    assert interval([NAN, NAN]) == "missing"
    assert interval([3, NAN, 9], top_code={"x": (20.0, None)}) == "<=20 or missing"
    # A class without values lies beyond no cap, and rounds to nothing.
    assert interval([NAN], top_code={"x": (20.0, None)}, round_to={"x": 5}) == "missing"


def test_sets_say_what_is_missing() -> None:
    column = support.categorical("x", 3)
    assert column.categories is not None
    a, _, c = column.categories
    assert (
        interval([2, NAN, 0, NAN], column=column, representation="set")
        == f"{{{a}, {c}}} or missing"
    )


def test_a_category_beside_a_class_without_any() -> None:
    column = support.categorical("x", 3)
    assert column.categories is not None
    grouped = Grouped(np.arange(5), np.array([0, 2, 3, 5]))
    values = np.array([NAN, NAN, 2, 1, 1])
    form = ColumnForm(representation=Representation.INTERVAL)
    found = range_of(column, values, pa.string(), grouped, Presentation(), form)
    _, b, c = column.categories
    assert write_cells(found).columns["x"].to_pylist() == ["missing", c, b]


def test_numbers_are_of_the_values_that_are_there() -> None:
    values = [1, NAN, 4, NAN]
    assert written(values, "mean") == {"x": [2.5], "x_missing": [0.5]}
    assert written(values, "bounds") == {"x_min": [1], "x_max": [4], "x_missing": [0.5]}
    empty = written([NAN, NAN], "bounds", source=pa.int64())
    assert empty == {"x_min": [None], "x_max": [None], "x_missing": [1.0]}
    assert written([NAN, NAN], "midpoint") == {"x": [None], "x_missing": [1.0]}


def test_shares_of_labels_add_up_with_what_is_missing() -> None:
    column = support.categorical("x", 4)
    assert column.categories is not None
    a, _, c, _ = column.categories
    assert written([0, 2, 2, NAN], "shares", column=column) == {
        f"x_{a}": [0.25],
        f"x_{c}": [0.5],
        "x_missing": [0.25],
    }


def test_what_fits_no_column_leaves_it_an_interval() -> None:
    quasi = (NUMBER, support.categorical("c", 3), support.categorical("o", 3))

    def forms(form: str, **single: str) -> dict[str, str]:
        wanted = Presentation(representation=form, representations=single)
        found = wanted.chosen(quasi, {"o"}, {})
        return {name: form.representation.value for name, form in found.items()}

    assert forms("midpoint") == {"x": "midpoint", "c": "interval", "o": "midpoint"}
    assert forms("mean") == {"x": "mean", "c": "interval", "o": "interval"}
    assert forms("shares") == {"x": "interval", "c": "shares", "o": "shares"}
    assert forms("model") == {"x": "mean", "c": "shares", "o": "shares"}
    assert forms("mean", c="shares") == {"x": "mean", "c": "shares", "o": "interval"}
