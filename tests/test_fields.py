"""Fields of JSON are exactly what they must be, and every refusal is one short sentence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

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


Mark = NewType("Mark", bytes)


@dataclass(frozen=True, kw_only=True)
class Spot:
    colour: Colour
    width: float | None


@dataclass(frozen=True, kw_only=True)
class Picture:
    spots: tuple[Spot, ...]
    best: Spot | None
    mark: Mark | None
    by_name: Mapping[str, Mapping[str, int]]
    title: str = "untitled"


PICTURE = {
    "spots": [{"colour": "red", "width": 1.5}, {"colour": "blue", "width": None}],
    "best": {"colour": "red"},
    "mark": "0a" * 32,
    "by_name": {"a": {"b": 1}},
}


def test_a_record_is_read_by_the_types_of_its_fields() -> None:
    fields = Fields(PICTURE, "it", TableError)
    found = fields.record(Picture, optional=("title",))
    red, blue = Spot(colour=Colour.RED, width=1.5), Spot(colour=Colour.BLUE, width=None)
    best = Spot(colour=Colour.RED, width=None)
    mark = Mark(b"\n" * 32)
    assert found == Picture(spots=(red, blue), best=best, mark=mark, by_name={"a": {"b": 1}})
    assert fields.record(Picture, title="given").title == "given"
    assert (
        Fields({**PICTURE, "best": None}, "it", TableError).record(Picture, title="").best is None
    )


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        (
            "spots",
            [{"colour": "green", "width": 1}],
            r"it: spots\[0\]: colour must be one of red, b",
        ),
        ("spots", {}, "it: spots must be a list, not {}"),
        ("best", 1, "it: best must hold named fields, not 1"),
        ("by_name", {"a": {"b": -1}}, "it: by_name: a: b must be a whole number from 0"),
    ],
)
def test_a_field_of_another_type_is_refused(name: str, value: object, wrong: str) -> None:
    with refused(wrong):
        Fields({**PICTURE, name: value}, "it", TableError).record(Picture, optional=("title",))
    with refused("it: field 'title' is missing"):
        Fields(PICTURE, "it", TableError).record(Picture)
