"""What a leaf publishes: midpoints, category sets, and words for people (spec §5)."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verix_anon.protocol.contract import Column, Kind, Unit, show_value
from verix_anon.protocol.tree import Leaves, midpoints

steady = settings(deadline=None, derandomize=True)

NUMBER = Column(name="x", kind=Kind.NUMERIC)
GRADE = Column(name="g", kind=Kind.CATEGORICAL, categories=("low", "mid", "high", "top"))
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def moment(unit: Unit) -> Column:
    return Column(name="t", kind=Kind.DATETIME, unit=unit)


def one_leaf(minimum: float, maximum: float) -> Leaves:
    return Leaves(count=np.array([4]), minimum=np.array([[minimum]]), maximum=np.array([[maximum]]))


@pytest.mark.parametrize(
    ("minimum", "maximum", "middle"),
    [
        (1.0, 4.0, 2.5),
        (-3.0, -3.0, -3.0),
        (0.0, 3.0, 1.5),
        (1.7e308, 1.7e308, 1.7e308),
        (-1.7e308, 1.7e308, 0.0),
    ],
)
def test_midpoints(minimum: float, maximum: float, middle: float) -> None:
    assert midpoints(one_leaf(minimum, maximum)).tolist() == [[middle]]


@steady
@given(FINITE, FINITE)
def test_midpoints_are_the_written_formula(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    middle = float(midpoints(one_leaf(low, high))[0, 0])
    assert middle == low / 2 + high / 2
    assert math.isfinite(middle)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5.0, "5"),
        (-5.0, "-5"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (2.0**53, "9007199254740992"),
        (2.0**53 + 2, "9007199254740994.0"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
    ],
)
def test_numbers_as_people_write_them(value: float, shown: str) -> None:
    assert show_value(NUMBER, value) == shown


@steady
@given(FINITE)
def test_shown_numbers_read_back_exactly(value: float) -> None:
    assert float(show_value(NUMBER, value)) == value


@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [
        (Unit.DAY, 0, "1970-01-01"),
        (Unit.DAY, -1, "1969-12-31"),
        (Unit.DAY, 18321, "2020-02-29"),
        (Unit.SECOND, -1, "1969-12-31T23:59:59"),
        (Unit.MILLISECOND, 1, "1970-01-01T00:00:00.001"),
        (Unit.MICROSECOND, -1, "1969-12-31T23:59:59.999999"),
        (Unit.DAY, -719162, "0001-01-01"),
        (Unit.MICROSECOND, 2**53, "2255-06-05T23:47:34.740992"),
    ],
)
def test_moments_as_people_write_them(unit: Unit, value: int, shown: str) -> None:
    assert show_value(moment(unit), float(value)) == shown


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("value", [2.0**53, -(2.0**53)])
def test_the_farthest_moments_can_be_shown(unit: Unit, value: float) -> None:
    assert show_value(moment(unit), value)


@pytest.mark.parametrize(("value", "shown"), [(0.5, "1970-01-01"), (-0.5, "1969-12-31")])
def test_a_middle_is_shown_as_the_moment_below(value: float, shown: str) -> None:
    assert show_value(moment(Unit.DAY), value) == shown


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e300, -1e300, 2.0**63])
@pytest.mark.parametrize("column", [NUMBER, GRADE, *map(moment, Unit)], ids=lambda c: str(c.kind))
def test_values_no_column_has_are_shown_as_numbers(column: Column, value: float) -> None:
    assert show_value(column, value) == repr(value)


def test_positions_no_category_has_are_shown_as_numbers() -> None:
    assert [show_value(GRADE, value) for value in (4.0, -1.0, -0.5)] == ["4", "-1", "-0.5"]


def test_a_label_is_shown() -> None:
    assert show_value(GRADE, 2.0) == "high"
