"""Numbers, missing values and dates of spec §2, on pandas, polars and pyarrow alike."""

import datetime as dt
import zoneinfo
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from client.table.tables import (
    CATEGORICAL,
    DATETIME,
    NUMERIC,
    Make,
    encoded,
    positions,
    refused,
    refused_arrow,
)
from verix_anon.client.table.encode import decode
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared, Missing
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Kind, Unit

NAN = float("nan")
INF = float("inf")


# Kinds.


def test_kinds_follow_types(make: Make) -> None:
    table = make(
        {
            "int": [3, 1, 2, 1],
            "float": [0.5, -0.0, 1e300, 0.5],
            "text": ["b", "a", "b", "a"],
            "y": [True, False, True, False],
            "flag": [True, False, True, True],
            "date": [dt.date(1970, 1, 2), dt.date(1969, 12, 31)] * 2,
            "time": [dt.datetime(1970, 1, 1, 0, 0, 1), dt.datetime(1970, 1, 1)] * 2,
        }
    )
    result = read_owner_table(table, Declared(target="y", quasi="all"))
    kinds = {column.name: column.kind.value for column in result.columns}
    assert kinds == {
        "int": "numeric",
        "float": "numeric",
        "text": "categorical",
        "y": "categorical",
        "flag": "categorical",
        "date": "datetime",
        "time": "datetime",
    }
    assert result.matrix.tolist() == [
        [3, 1, 2, 1],
        [0.5, 0.0, 1e300, 0.5],
        [1, 0, 1, 0],
        [1, 0, 1, 1],
        [1, -1, 1, -1],
        [1, 0, 1, 0],
    ]
    assert result.target.tolist() == [1, 0, 1, 0]
    assert result.n_missing == {}
    assert not np.signbit(result.matrix[1, 1])


@pytest.mark.parametrize(
    "arrow_type",
    [*map(pa.type_for_alias, ["int8", "uint8", "int16", "uint32", "uint64", "float16", "float32"]),
     pa.decimal128(9, 2), pa.decimal256(50, 2)],
    ids=str,
)  # fmt: skip
def test_every_number_type_is_numeric(arrow_type: pa.DataType) -> None:
    numbers = [Decimal(2), None, Decimal(1), Decimal(7)]
    column = pa.array(numbers, pa.decimal128(9, 2)).cast(pa.float64()).cast(arrow_type)
    assert positions(encoded(pa.table, column)) == [2, 2, 1, 7]


def test_a_decimal_is_the_nearest_float_whatever_its_scale() -> None:
    number = "337593.549446"
    for scale in (6, 9, 20):
        column = pa.array([Decimal(number)] * 4, pa.decimal128(38, scale))
        assert positions(encoded(pa.table, column)) == [float(number)] * 4


def test_minus_zero_becomes_zero(make: Make) -> None:
    assert not np.signbit(encoded(make, [-0.0, 1.0, -0.0, 2.0]).matrix).any()


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_end_at_two_to_the_53(make: Make, sign: int) -> None:
    assert positions(encoded(make, [sign * 2**53, 0, 1, 2]))[0] == sign * 2.0**53
    refused("beyond 2\\^53", make, [sign * (2**53 + 1), 0, 1, 2])


def test_integers_beyond_two_to_the_53_by_other_routes() -> None:
    refused_arrow("beyond 2\\^53", pa.array([2**64 - 1, 1, 1, 1], pa.uint64()))
    refused_arrow("beyond 2\\^53", pa.array([None, 2**53 + 1, 1, 1]))
    assert encoded(pa.table, [2**62, 1] * 2, kinds=CATEGORICAL).columns[0].categories == (
        "1",
        str(2**62),
    )


@pytest.mark.parametrize("number", ["9007199254740993", "-9007199254740993"])
def test_large_integers_as_decimals_or_text_are_not_rounded_silently(number: str) -> None:
    refused_arrow("beyond 2\\^53", pa.array([Decimal(number)] * 4))
    refused_arrow("beyond 2\\^53", pa.array([number] * 4), kinds=NUMERIC)


def test_decimals_and_text_up_to_two_to_the_53() -> None:
    edge = 2**53
    for column in ([Decimal(edge), Decimal(-edge)] * 2, [f"{edge}", f"-{edge}"] * 2):
        assert positions(encoded(pa.table, column, kinds=NUMERIC)) == [edge, -edge] * 2
    wide = pa.array([Decimal(edge) + 1] * 4, pa.decimal256(60, 3))
    refused_arrow("beyond 2\\^53", wide)
    assert encoded(pa.table, [Decimal(edge + 1)] * 4, kinds=CATEGORICAL).columns[0].categories == (
        str(edge + 1),
    )


@pytest.mark.parametrize("number", ["1e300", "9007199254740993.0", "0" * 5000 + "7", "-2.5E+17"])
def test_text_of_floats_is_rounded_like_any(number: str) -> None:
    assert positions(encoded(pa.table, [number] * 4, kinds=NUMERIC)) == [float(number)] * 4


@pytest.mark.parametrize("number", ["+9007199254740993", "1" * 400, "0" * 5000 + "9" * 17])
def test_whole_numbers_as_text_in_other_forms(number: str) -> None:
    refused_arrow("beyond 2\\^53", pa.array([number, "1"] * 2), kinds=NUMERIC)


def test_decimals_of_extreme_scale() -> None:
    tiny = pa.array([Decimal("1.23E-25"), None] * 2, pa.decimal128(38, 30))
    assert positions(encoded(pa.table, tiny)) == [1.23e-25] * 4
    hundreds = pa.array([Decimal(1200), Decimal(-300)] * 2, pa.decimal128(5, -2))
    assert positions(encoded(pa.table, hundreds)) == [1200, -300] * 2


@pytest.mark.parametrize("value", [INF, -INF])
def test_infinities_are_refused(make: Make, value: float) -> None:
    refused("infinite", make, [value, 1.0, 2.0, 3.0])
    refused(
        "infinite value and cannot be categorical", make, [value, 1.0, 2.0, 3.0], kinds=CATEGORICAL
    )


def test_text_declared_numeric(make: Make) -> None:
    result = encoded(make, ["1", "2.5", "-1e3", None], kinds=NUMERIC)
    assert positions(result) == [1, 2.5, -1000, 1]
    refused("is not numeric", make, ["1", "2", "x", "1"], kinds=NUMERIC)
    refused("infinite", make, ["1", "2", "inf", "1"], kinds=NUMERIC)


# Missing values.


@pytest.mark.parametrize("gap", [None, NAN])
def test_numbers_are_imputed_by_the_lower_median(make: Make, gap: float | None) -> None:
    even = encoded(make, [4.0, gap, 1.0, 3.0, 2.0, gap])
    assert positions(even) == [4, 2, 1, 3, 2, 2]
    assert even.n_missing == {"x": 2}
    assert positions(encoded(make, [5.0, gap, 1.0, 3.0]))[1] == 3


def test_null_and_nan_are_both_missing() -> None:
    for table in (pl.DataFrame, pa.table):
        result = encoded(table, [1.0, None, NAN, 2.0])
        assert (positions(result), result.n_missing) == ([1, 1, 1, 2], {"x": 2})
        result = encoded(table, [1.0, None, NAN, 2.0], kinds=CATEGORICAL)
        assert (positions(result), result.n_missing) == ([0, 0, 0, 1], {"x": 2})


def test_categories_are_imputed_by_the_mode(make: Make) -> None:
    assert positions(encoded(make, ["b", None, "b", "a", "b", "a"])) == [1, 1, 1, 0, 1, 0]
    # A tie goes to the first category in its order, whatever that is.
    tie = ["b", None, "b", "a", "a", None]
    assert positions(encoded(make, tie))[1] == 0
    ordered = encoded(make, tie, orders={"x": ["c", "b", "a"]})
    assert (ordered.columns[0].categories, positions(ordered)[1]) == (("b", "a"), 0)
    assert encoded(make, tie).n_missing == {"x": 2}


def test_dates_are_imputed_by_the_lower_median(make: Make) -> None:
    days = [dt.date(1970, 1, day) for day in (2, 5, 3, 9)]
    assert positions(encoded(make, [*days, None])) == [1, 4, 2, 8, 2]


def test_missing_values_may_be_errors(make: Make) -> None:
    refused("'x' is missing in 1 rows", make, [1.0, None, 2.0, 3.0], missing=Missing.ERROR)
    refused("'x' is missing in 1 rows", make, [1.0, None, 2.0, 3.0], missing="error")
    assert encoded(make, [1.0, 1.0], missing=Missing.ERROR).n_missing == {}


@pytest.mark.parametrize("gap", [None, NAN])
@pytest.mark.parametrize("kind", [{}, NUMERIC, CATEGORICAL])
def test_all_missing_is_refused(make: Make, gap: float | None, kind: dict[str, Kind]) -> None:
    refused("'x' has no values", make, [gap] * 4, kinds=kind)


@pytest.mark.parametrize("gap", [None, NAN])
def test_a_missing_target_is_refused(make: Make, gap: float | None) -> None:
    table = make({"x": [1, 2, 3, 4], "y": [0.0, 1.0, gap, 1.0]})
    with pytest.raises(TableError, match="target 'y' is missing in 1 rows"):
        read_owner_table(table, Declared(target="y", quasi="all"))


# Dates.

NOON = dt.datetime(2020, 2, 29, 12)


@pytest.mark.parametrize(
    ("extra", "unit", "expected"),
    [
        (dt.timedelta(hours=12), Unit.DAY, 18322),
        (dt.timedelta(seconds=1), Unit.SECOND, 1582977601),
        (dt.timedelta(milliseconds=1), Unit.MILLISECOND, 1582977600001),
        (dt.timedelta(microseconds=1), Unit.MICROSECOND, 1582977600000001),
    ],
)
def test_the_coarsest_exact_unit(
    make: Make, extra: dt.timedelta, unit: Unit, expected: int
) -> None:
    midnight = dt.datetime(2020, 3, 1)
    result = encoded(make, [NOON + extra, midnight, None, midnight])
    assert result.columns[0].unit is unit
    assert positions(result)[0] == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_source_unit_does_not_matter(unit: str) -> None:
    column = pa.array([dt.datetime(1969, 12, 31), dt.datetime(1900, 1, 1)] * 2, pa.timestamp(unit))
    result = encoded(pa.table, column)
    assert (result.columns[0].unit, positions(result)[:2]) == (Unit.DAY, [-1, -25567])


def test_finer_than_a_microsecond_is_refused() -> None:
    refused_arrow("finer than a microsecond", pa.array([1001] * 4, pa.timestamp("ns")))
    assert positions(encoded(pa.table, pa.array([1000] * 4, pa.timestamp("ns")))) == [1] * 4


def test_zones_are_utc_instants(make: Make) -> None:
    berlin = dt.datetime(2020, 1, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    result = encoded(make, [berlin] * 4)
    assert (result.columns[0].unit, positions(result)[0]) == (Unit.DAY, 18262)
    assert positions(encoded(make, [dt.datetime(2020, 1, 1)] * 4))[0] == 18262


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_dates_end_at_two_to_the_53(unit: str) -> None:
    edge = 2**53
    for count in (edge, -edge):
        column = pa.array([count, 1, 2, 3], pa.timestamp(unit))
        assert positions(encoded(pa.table, column))[0] == count
    for count in (edge + 1, -edge - 1, 2**63 - 1, -(2**63)):
        refused_arrow("2\\^53", pa.array([count, 1, 2, 3], pa.timestamp(unit)))


def test_dates_too_far_for_arrow_decode_or_are_refused() -> None:
    days = 2**33
    column = pa.array([days * 86400, 0] * 2, pa.timestamp("s"))
    try:
        result = encoded(pa.table, column)
    except TableError:
        return
    back = decode(result.columns[0], result.matrix[0])
    assert back.cast(pa.timestamp("s")).equals(column)


@pytest.mark.parametrize("days", [2**31 - 1, -(2**31), 2**33, -(2**33)])
def test_days_decode_as_dates_or_timestamps(days: int) -> None:
    column = Column(name="x", kind=Kind.DATETIME, unit=Unit.DAY)
    back = decode(column, np.array([float(days), 0.0]))
    seconds = back.cast(pa.timestamp("s")).cast(pa.int64()).to_pylist()
    assert seconds == [days * 86_400, 0]
    with pytest.raises(TableError, match="too far"):
        decode(column, np.array([2.0**53]))


def test_a_middle_decodes_to_the_day_below() -> None:
    column = Column(name="x", kind=Kind.DATETIME, unit=Unit.DAY)
    days = decode(column, np.array([-0.5, 0.5])).to_pylist()
    assert days == [dt.date(1969, 12, 31), dt.date(1970, 1, 1)]


@pytest.mark.parametrize("values", [["2020-01-01", "soon"], ["soon", "2020-01-01T00:00:00Z"]])
def test_the_bad_date_is_the_one_named(values: list[str]) -> None:
    refused("ISO 8601 form .*'soon'", pa.table, values * 2, kinds=DATETIME)


def test_text_declared_datetime(make: Make) -> None:
    plain = encoded(make, ["2020-01-01", "1969-12-31", None, "2020-01-01"], kinds=DATETIME)
    assert positions(plain) == [18262, -1, 18262, 18262]
    zoned = ["2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00Z"] * 2
    assert positions(encoded(make, zoned, kinds=DATETIME)) == [18262] * 4
    refused("is not a date in ISO 8601 form", make, ["2020-01-01", "soon"] * 2, kinds=DATETIME)
    refused("cannot be a datetime", make, [1, 2, 3, 4], kinds=DATETIME)
