"""Every column has exactly one declared role, and mistakes are explained."""

import re
from typing import Any

import pytest

from verix.errors import TableError
from verix.protocol.contract import Kind
from verix.protocol.roles import Declared, TableRole

NAMES = ["name", "age", "zip", "income", "illness"]


def roles(**declared: Any) -> dict[str, TableRole]:
    return Declared(**({"target": "income", "quasi": "all"} | declared)).roles(NAMES)


def refused(message: str, **declared: Any) -> None:
    with pytest.raises(TableError, match=re.escape(message)):
        roles(**declared)


def test_every_role_in_table_order() -> None:
    result = roles(quasi=["zip"], identifiers=["name"], kept=("age",), sensitive=["illness"])
    assert list(result.items()) == [
        ("name", TableRole.IDENTIFIER),
        ("age", TableRole.KEPT),
        ("zip", TableRole.QUASI),
        ("income", TableRole.TARGET),
        ("illness", TableRole.SENSITIVE),
    ]


def test_all_takes_what_is_left() -> None:
    result = roles(identifiers=["name"], sensitive=["illness"])
    assert [name for name, role in result.items() if role is TableRole.QUASI] == ["age", "zip"]


def test_a_column_called_all_is_just_a_column() -> None:
    declared = Declared(target="y", quasi=["all"])
    assert declared.roles(["all", "y"])["all"] is TableRole.QUASI
    with pytest.raises(TableError, match="no role is declared for 'z'"):
        declared.roles(["all", "y", "z"])


def test_undeclared_columns_are_listed_with_the_option() -> None:
    message = "no role is declared for 'name', 'illness'; declare each as quasi, identifier,"
    refused(message, quasi=["age", "zip"])
    refused("--quasi all", quasi=["age", "zip"])


def test_long_lists_are_cut() -> None:
    names = [f"c{i}" for i in range(30)]
    with pytest.raises(TableError, match="'c19' and 9 more"):
        Declared(target="c29", quasi=[]).roles(names)


@pytest.mark.parametrize("option", ["quasi", "identifiers", "kept", "sensitive"])
def test_misspelled_names(option: str) -> None:
    refused("there is no column 'agee'; did you mean 'age'?", **{option: ["agee"]})
    refused("there is no column 'q'; the columns are 'name', 'age',", **{option: ["q"]})


def test_misspelled_target_kind_or_order() -> None:
    refused("there is no column 'incom'; did you mean 'income'?", target="incom")
    refused("there is no column 'agee'", kinds={"agee": Kind.CATEGORICAL})
    refused("there is no column 'zipp'", orders={"zipp": ["a"]})


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"quasi": ["age", "age"]}, "'age' is declared twice: quasi and quasi"),
        ({"quasi": ["income", "age"]}, "'income' is declared twice: target and quasi"),
        ({"kept": ["zip"], "sensitive": ["zip"]}, "'zip' is declared twice: kept and sensitive"),
        ({"identifiers": ["income"]}, "'income' is declared twice: target and identifier"),
    ],
)
def test_declared_twice(declared: dict[str, Any], message: str) -> None:
    refused(message, **declared)


def test_at_least_one_quasi_identifier() -> None:
    refused("no column is declared as a quasi-identifier", kept=["name", "age", "zip", "illness"])
    refused(
        "no column is declared as a quasi-identifier",
        quasi=[],
        kept=["name", "age", "zip", "illness"],
    )


def test_one_name_instead_of_a_list() -> None:
    refused("quasi must be a list of columns or \"all\", not 'age'", quasi="age")
