"""Categories, targets and whole tables of spec §2, on pandas, polars and pyarrow alike."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
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
from verix_anon.client.table.categories import default_order
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Kind

NAN = float("nan")

# Categories.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["10", "9", "-1", "1.5"], ["-1", "1.5", "9", "10"]),
        (["10", "9", "a"], ["10", "9", "a"]),
        (["1.0", "01", "1"], ["01", "1", "1.0"]),
        (["b", "B", "a", "\u00e9", "z"], ["B", "a", "b", "z", "\u00e9"]),
        (["\U0001f600", "\uffff"], ["\uffff", "\U0001f600"]),
        (["e\u0301", "\u00e9", "f"], ["e\u0301", "f", "\u00e9"]),
        (["1e5", "2"], ["2", "1e5"]),
        (["1e99999999999999999999", "2"], ["1e99999999999999999999", "2"]),
        (["9" * 40 + "1", "9" * 40 + "0"], ["9" * 40 + "0", "9" * 40 + "1"]),
        (["\u0663", "10", "9"], ["10", "9", "\u0663"]),
        (["nan", "10", "9"], ["10", "9", "nan"]),
        ([" 9", "10"], [" 9", "10"]),
        ([], []),
    ],
)
def test_default_order(given: list[str], expected: list[str]) -> None:
    assert default_order(given) == default_order(given[::-1]) == expected


@pytest.mark.parametrize(
    ("values", "kinds", "categories"),
    [
        (["9", "10", "9", "10"], {}, ("9", "10")),
        ([9, 10, 9, -1], CATEGORICAL, ("-1", "9", "10")),
        ([9.0, 10.0, -0.0, None], CATEGORICAL, ("0", "9", "10")),
        ([True, False, True, True], {}, ("false", "true")),
        ([True, True, True, True], {}, ("true",)),
        (["", "a", "", "a"], {}, ("", "a")),
    ],
)
def test_labels(make: Make, values: list[Any], kinds: dict[str, Kind], categories: object) -> None:
    assert encoded(make, values, kinds=kinds).columns[0].categories == categories


def test_half_floats_declared_categorical() -> None:
    column = pa.array([2, 1, 2, 1], pa.float16())
    assert positions(encoded(pa.table, column, kinds=CATEGORICAL)) == [1, 0, 1, 0]


def test_fractions_cannot_be_categorical(make: Make) -> None:
    refused("has fractions", make, [1.5, 1.0, 1.5, 1.0], kinds=CATEGORICAL)
    refused("cannot be categorical", make, [dt.date(2020, 1, 1)] * 4, kinds=CATEGORICAL)


@pytest.mark.parametrize("value", [2.0**60, -1e300])
def test_floats_beyond_two_to_the_53_cannot_be_categorical(make: Make, value: float) -> None:
    refused("has a float beyond 2\\^53.*declare it numeric", make, [value] * 4, kinds=CATEGORICAL)


def test_kinds_as_text(make: Make) -> None:
    assert encoded(make, [2, 1] * 2, kinds={"x": "categorical"}).columns[0].categories == ("1", "2")


def test_the_owners_order(make: Make) -> None:
    values = ["hi", "lo", "hi", "lo"]
    result = encoded(make, values, orders={"x": ["lo", "mid", "hi"]})
    # Nobody is in the middle, so that nothing says that somebody could be.
    assert result.columns[0].categories == ("lo", "hi")
    assert positions(result) == [1, 0, 1, 0]
    refused("has 'hi', which its given order lacks", make, values, orders={"x": ["lo"]})
    refused("names a category twice", make, values, orders={"x": ["lo", "hi", "lo"]})


def test_ordered_types_bring_their_order_of_what_occurs() -> None:
    order = ["z", "b", "a"]
    values = ["b", "a", "b", "a"]
    ordered = pd.Categorical(values, categories=order, ordered=True)
    indices = pa.array([1, 2, 1, 2], pa.int8())
    tables: list[tuple[Make, Any]] = [
        (pd.DataFrame, ordered),
        (pl.DataFrame, pl.Series(values, dtype=pl.Enum(order))),
        (pa.table, pa.DictionaryArray.from_arrays(indices, pa.array(order), ordered=True)),
    ]
    for table, column in tables:
        result = encoded(table, column)
        assert result.columns[0].categories == ("b", "a")
        assert positions(result) == [0, 1, 0, 1]
        # What the owner says in so many words wins.
        given = encoded(table, column, orders={"x": ["a", "b"]})
        assert given.columns[0].categories == ("a", "b")


def test_unordered_types_keep_only_what_occurs() -> None:
    values = ["b", "a", "b", "a"]
    unordered = pd.Categorical(values, categories=["z", "b", "a"])
    tables: list[tuple[Make, Any]] = [
        (pd.DataFrame, unordered),
        (pl.DataFrame, pl.Series(values, dtype=pl.Categorical)),
        (pa.table, pa.array(values).dictionary_encode()),
    ]
    for table, column in tables:
        assert encoded(table, column).columns[0].categories == ("a", "b")


def test_a_text_identifier_is_refused(make: Make) -> None:
    refused("declare it as an identifier", make, ["a", "b", "c", "a"])
    assert encoded(make, ["a", "b", "b", "a"]).columns[0].categories == ("a", "b")
    # Numbers are not text.
    assert len(encoded(make, [1, 2, 3, 4], kinds=CATEGORICAL).columns[0].categories or ()) == 4


@pytest.mark.parametrize("label", [3, None])
def test_an_order_of_other_things_than_text_is_refused(label: object) -> None:
    refused("order", pd.DataFrame, ["a", "b"] * 2, orders={"x": ["a", "b", label]})


@pytest.mark.parametrize("order", ["ab", 3])
def test_an_order_is_a_list(order: object) -> None:
    refused("to a list of text", pd.DataFrame, ["a", "b"] * 2, orders={"x": order})


def test_an_order_makes_a_column_categorical(make: Make) -> None:
    result = encoded(make, [1, 2] * 2, orders={"x": ["2", "1"]})
    assert (result.columns[0].categories, positions(result)) == (("2", "1"), [1, 0, 1, 0])
    refused("but an order is for", make, [1, 2] * 2, orders={"x": ["2", "1"]}, kinds=NUMERIC)


def test_an_order_for_numbers_is_not_ignored() -> None:
    # Either it makes the column categorical or it is refused; numbers in silence are wrong.
    try:
        result = encoded(pd.DataFrame, [1, 2] * 2, orders={"x": ["2", "1"]})
    except TableError:
        return
    assert result.columns[0].categories == ("2", "1")


def dictionary(values: pa.Array, *, ordered: bool = False) -> pa.Array:
    indices = pa.array([i % len(values) for i in range(4)], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, values, ordered=ordered)


def test_nulls_inside_a_dictionary_are_missing() -> None:
    plain = encoded(pa.table, dictionary(pa.array(["a", None])))
    assert (positions(plain), plain.n_missing) == ([0, 0, 0, 0], {"x": 2})
    ordered = encoded(pa.table, dictionary(pa.array(["a", None]), ordered=True))
    assert (positions(ordered), ordered.n_missing) == ([0, 0, 0, 0], {"x": 2})


@pytest.mark.parametrize("kinds", [{}, NUMERIC, CATEGORICAL, DATETIME])
def test_a_dictionary_of_null_type_is_all_missing(kinds: dict[str, Kind]) -> None:
    refused_arrow("has no values|cannot be", dictionary(pa.array([None])), kinds=kinds)


def test_only_the_entries_that_occur_count() -> None:
    entries = pa.array([1.0, 2.0, 2.5, NAN])
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 3, None], pa.uint64()), entries)
    result = encoded(pa.table, column)
    assert (result.columns[0].categories, positions(result)) == (("1", "2"), [1, 0, 0, 0])


@pytest.mark.parametrize("kinds", [NUMERIC, DATETIME])
def test_broken_text_declared_otherwise(kinds: dict[str, Kind]) -> None:
    ends = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    broken = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"\xff\xfe")])
    refused_arrow("is not numeric|is not a date", dictionary(broken), kinds=kinds)


@pytest.mark.parametrize("kinds", [{}, NUMERIC, CATEGORICAL])
def test_a_dictionary_of_nothing_is_all_missing(kinds: dict[str, Kind]) -> None:
    refused_arrow("has no values", dictionary(pa.array([None], pa.int64())), kinds=kinds)


@pytest.mark.parametrize("ordered", [False, True])
def test_text_that_is_not_utf8_is_refused(ordered: bool) -> None:
    ends = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    broken = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"\xffa")])
    refused_arrow("not UTF-8", dictionary(broken, ordered=ordered))


def test_surrogates_are_refused() -> None:
    refused("cannot be read", pd.DataFrame, pd.Series(["\ud800", "a"] * 2, dtype=object))


def test_chunks_do_not_matter() -> None:
    halves = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()]
    table = pa.table({"x": pa.chunked_array(halves), "y": [0, 1, 0, 1]})
    assert read_owner_table(table, ALL).matrix.tolist() == [[0, 1, 1, 0]]


# The target.

ALL = Declared(target="y", quasi="all")


@pytest.mark.parametrize(
    ("target", "categories"),
    [
        ([0, 1, 1, 0], ("0", "1")),
        ([1, 2, 2, 1], ("1", "2")),
        ([-1, 1, 1, -1], ("-1", "1")),
        ([0.0, 1.0, 1.0, 0.0], ("0", "1")),
        ([False, True, True, False], ("false", "true")),
        (["9", "10", "10", "9"], ("9", "10")),
        (["<=50K", ">50K", ">50K", "<=50K"], ("<=50K", ">50K")),
    ],
)
def test_targets(make: Make, target: list[Any], categories: tuple[str, str]) -> None:
    table = make({"x": [1, 2, 3, 4], "y": target})
    default = read_owner_table(table, ALL)
    assert (default.columns[1].categories, default.target.tolist()) == (categories, [0, 1, 1, 0])
    second = read_owner_table(table, Declared(target="y", quasi="all", positive=categories[1]))
    assert second.target.tolist() == [0, 1, 1, 0]
    first = read_owner_table(table, Declared(target="y", quasi="all", positive=categories[0]))
    assert first.columns[1].categories == categories[::-1]
    assert first.target.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([f"c{i:03}" for i in range(257)], r"has 257 classes \(c000, .*, …\), not 2 to 256"),
        ([1, 1, 1, 1], r"has 1 class \(1\), not 2 to 256"),
        ([0.5, 1.0, 0.5, 1.0], "has fractions .*; the two classes of a target are text"),
        ([dt.date(2020, 1, 1), dt.date(2020, 1, 2)], "cannot be categorical"),
    ],
)
def test_bad_targets(make: Make, target: list[Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_owner_table(make({"x": [1] * len(target), "y": target}), ALL)


def test_a_positive_class_that_does_not_exist(make: Make) -> None:
    with pytest.raises(TableError, match="'Yes' is not a class of target 'y': no, yes"):
        encoded(make, [1, 2, 3, 4], positive="Yes")


@pytest.mark.parametrize(
    ("target", "positive"),
    [([True, False], False), ([0, 1], 0), ([0.0, 1.0], np.int64(0)), (["a", "b"], "a")],
)
def test_a_positive_class_as_it_stands_in_the_table(
    make: Make, target: list[Any], positive: Any
) -> None:
    table = make({"x": [1, 2], "y": target})
    result = read_owner_table(table, Declared(target="y", quasi="all", positive=positive))
    assert result.target.tolist() == [int(value == positive) for value in target]
    with pytest.raises(TableError, match="'2' is not a class of target 'y'"):
        read_owner_table(table, Declared(target="y", quasi="all", positive=2.0))


def test_classes_of_the_target_that_do_not_occur() -> None:
    values = pd.Categorical(["p", "q"], categories=["q", "other", "p"], ordered=True)
    result = read_owner_table(pd.DataFrame({"x": [1, 2], "y": values}), ALL)
    assert (result.columns[1].categories, result.target.tolist()) == (("q", "p"), [1, 0])
    table = pd.DataFrame({"x": [1, 2], "y": ["p", "q"]})
    given = Declared(target="y", quasi="all", orders={"y": ["q", "other", "p"]})
    assert read_owner_table(table, given).columns[1].categories == ("q", "p")


def test_a_target_of_nothing(make: Make) -> None:
    with pytest.raises(TableError, match="target 'y' is missing in 2 rows"):
        read_owner_table(make({"x": [1, 2], "y": [None, None]}), ALL)


def test_the_targets_order_and_place(make: Make) -> None:
    table = make({"a": [1, 2], "y": ["p", "q"], "b": [3, 4]})
    result = read_owner_table(table, Declared(target="y", quasi="all", orders={"y": ["q", "p"]}))
    assert [column.name for column in result.columns] == ["a", "y", "b"]
    assert result.columns[1].categories == ("q", "p")
    assert (result.matrix.tolist(), result.target.tolist()) == ([[1, 2], [3, 4]], [1, 0])


# Tables.


def test_only_quasi_identifiers_and_target_are_sent(make: Make) -> None:
    table = make({"id": ["p", "q"], "k": [[1], [2]], "x": [1, 2], "s": ["m", "n"], "y": [0, 1]})
    declared = Declared(target="y", quasi=["x"], identifier=["id"], kept=["k"], sensitive=["s"])
    result = read_owner_table(table, declared)
    assert [column.name for column in result.columns] == ["x", "y"]
    assert [role.value for role in result.roles.values()] == [
        "identifier", "kept", "quasi", "sensitive", "target",
    ]  # fmt: skip


@pytest.mark.parametrize("empty", [{}, {"x": [], "y": []}])
def test_empty_tables(make: Make, empty: dict[str, Any]) -> None:
    with pytest.raises(TableError, match=r"the table has no (rows|columns)"):
        read_owner_table(make(empty), ALL)


@pytest.mark.parametrize("name", ["x", "it's", "it''s 2 times"])
def test_repeated_names(name: str) -> None:
    rows = [[1, 2, 0], [3, 4, 1]]
    names = [name, name, "y"]
    tables = [pd.DataFrame(rows, columns=names), pa.table([[1, 3], [2, 4], [0, 1]], names=names)]
    for table in tables:
        with pytest.raises(TableError, match=r"column name .* occurs twice") as caught:
            read_owner_table(table, ALL)
        assert name in str(caught.value)


def test_names_that_are_not_text() -> None:
    with pytest.raises(TableError, match="column names must be text; 0 is not"):
        read_owner_table(pd.DataFrame([[1, "a"], [2, "b"]]), ALL)
    pairs = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
    with pytest.raises(TableError, match="column names must be text"):
        read_owner_table(pd.DataFrame([[1, "a"], [2, "b"]], columns=pairs), ALL)


@pytest.mark.parametrize("name", ["row", "tracker", "leaf"])
def test_reserved_names_may_be_kept_but_not_sent(make: Make, name: str) -> None:
    table = make({name: [1, 2], "x": [1, 2], "y": [0, 1]})
    with pytest.raises(TableError, match="is reserved; rename the column"):
        read_owner_table(table, ALL)
    assert read_owner_table(table, Declared(target="y", quasi=["x"], kept=[name])).matrix.shape == (
        1,
        2,
    )


def test_names_that_no_contract_can_have() -> None:
    names = pd.Index(["\ud800", "y"], dtype=object)
    table = pd.DataFrame([[1, 0], [2, 1]], columns=names)
    with pytest.raises(TableError, match="not valid Unicode"):
        read_owner_table(table, ALL)


@pytest.mark.parametrize(
    "thing",
    [None, {"x": [1], "y": [0]}, np.zeros((2, 2)), pd.Series([1])],
)
def test_things_that_are_no_tables(thing: object) -> None:
    with pytest.raises(TableError, match="a table is a pandas, polars or pyarrow table, not"):
        read_owner_table(thing, ALL)


@pytest.mark.parametrize(
    "values",
    [[1, "a"], [1.5, "1"], [True, 1], [1, dt.date(2020, 1, 1)], [2**70, 1], [1j, 2j]],
)
def test_mixed_types(values: list[Any]) -> None:
    refused("'x' mixes types", pd.DataFrame, pd.Series(values * 2, dtype=object))


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, b"a", dt.time(1), dt.timedelta(1)], ids=lambda value: str(type(value))
)
def test_unsupported_types(make: Make, value: object) -> None:
    refused("'x' has type .* neither a number, a date nor text", make, [value] * 4)
    for kinds in (NUMERIC, DATETIME, CATEGORICAL):
        refused("'x' has type .* cannot be", make, [value] * 4, kinds=kinds)


def test_unsupported_pandas_types() -> None:
    for column in (
        pd.cut(pd.Series([1, 2, 3, 4]), 2),
        pd.Series(pd.period_range("2020", periods=4)),
        pd.Series(pd.interval_range(0, 4)),
    ):
        refused("'x' has type", pd.DataFrame, column)
