"""Fields of JSON are exactly what they must be, and every refusal is one short sentence."""

import json
from enum import StrEnum

import pytest

from verix_anon.errors import Error, TableError
from verix_anon.fields import Fields, shown


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


ALL: list[object] = [
    None,
    True,
    0,
    1.5,
    "a",
    "0" * 64,
    "red",
    [],
    [1],
    ["a"],
    {},
    {"a": 1},
    10**400,
]
# What each reader takes, of all of these.
TAKES: dict[str, list[object]] = {
    "text": ["a", "0" * 64, "red"],
    "flag": [True],
    "whole": [0, 10**400],
    "number": [0, 1.5],
    "digest": ["0" * 64],
    "items": [[], [1], ["a"]],
    "texts": [[], ["a"]],
    "wholes": [[], [1]],
    "numbers": [[], [1]],
    "inner": [{}, {"a": 1}],
    "each": [[]],
}


def of(**values: object) -> Fields:
    return Fields.parse(json.dumps(values).encode(), "the file", TableError)


def refused(sentence: str) -> "pytest.RaisesExc[Error]":
    return pytest.raises(TableError, match=sentence)


@pytest.mark.parametrize("reader", TAKES)
def test_each_reader_takes_one_kind_of_value(reader: str) -> None:
    for value in ALL:
        read = getattr(of(x=value), reader)
        # Compared as JSON, for True equals 1.
        if json.dumps(value) in map(json.dumps, TAKES[reader]):
            read("x")
        else:
            with refused(r"^the file: x(\[0\])? must (be|hold) ") as caught:
                read("x")
            assert len(str(caught.value)) < 150
    with refused("the file: field 'y' is missing"):
        getattr(of(x=1), reader)("y")


def test_choice() -> None:
    assert of(x="red").choice("x", Colour) is Colour.RED
    for value in ("green", ["red"], None, "RED"):
        with refused("the file: x must be one of red, blue, not"):
            of(x=value).choice("x", Colour)


def test_bounds() -> None:
    assert of(x=2**63 - 1).whole("x", range(2**63)) == 2**63 - 1
    for value in (2, 6, -(10**400), True):
        with refused("x must be a whole number from 3 to 5"):
            of(x=value).whole("x", range(3, 6))


def test_infinity_in_digits() -> None:
    with refused("x must be a finite number, not inf"):
        Fields.parse('{"x":1e999}', "the file", TableError).number("x")


def test_expected_values() -> None:
    of(x=4, y="a").expect("x", 4)
    for value in (4.0, "4", 5, None):
        with refused("x must be 4, not"):
            of(x=value).expect("x", 4)
    with refused("x must be 1, not True"):
        of(x=True).expect("x", 1)


def test_only_these_fields() -> None:
    of(a=None, b=1).only({"a", "b"}, optional={"c"})
    of(a=None, b=1, c=2).only({"a", "b"}, optional={"c"})
    with refused("the file: field 'b' is missing"):
        of(a=1).only({"a", "b"})
    with refused("the file: unknown field 'c'"):
        of(a=1, b=2, c=3).only({"a", "b"})


def test_sentences_say_where() -> None:
    fields = of(a={"b": [{"c": 1}, {"c": "x"}]})
    with refused(r"the file: a: b\[1\]: c must be a whole number, not 'x'"):
        [inner.whole("c") for inner in fields.inner("a").each("b")]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"[]",
        b"1",
        b"null",
        b"{",
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":NaN}',
        b'{"a":[-Infinity]}',
        b'{"a":' + b"9" * 100_000 + b"}",
        b'{"a":' + b"[" * 100_000,
        b'{"a":' * 100_000,
        b"x" * 100_000,
    ],
    ids=range(15),
)
def test_hostile_bytes(data: bytes) -> None:
    with refused("the file: not (JSON in UTF-8|a JSON object)") as caught:
        Fields.parse(data, "the file", TableError)
    assert len(str(caught.value)) < 250


def test_what_is_shown_is_short() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert shown(nested) == "…"
    assert shown("a" * 10**6) == "'" + "a" * 59 + "…"
    assert shown(b"a") == "b'a'"
    while nested:
        nested = nested.pop()  # type: ignore[assignment]
