"""Every column has exactly one declared role, and mistakes are explained."""

import re
from typing import Any

import numpy as np
import pytest

from support import CountedName
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.task import TableRole
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Kind

NAMES = ["name", "age", "zip", "income", "illness"]


def roles(**declared: Any) -> dict[str, TableRole]:
    return Declared(**({"target": "income", "quasi": "all"} | declared)).roles(NAMES)


def refused(message: str, **declared: Any) -> None:
    with pytest.raises(TableError, match=re.escape(message)):
        roles(**declared)


def test_every_role_in_table_order() -> None:
    result = roles(quasi=["zip"], identifier=["name"], kept=("age",), sensitive=["illness"])
    assert list(result.items()) == [
        ("name", TableRole.IDENTIFIER),
        ("age", TableRole.KEPT),
        ("zip", TableRole.QUASI),
        ("income", TableRole.TARGET),
        ("illness", TableRole.SENSITIVE),
    ]


def test_all_takes_what_is_left() -> None:
    result = roles(identifier=["name"], sensitive=["illness"])
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


@pytest.mark.parametrize("option", ["quasi", "identifier", "kept", "sensitive"])
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
        ({"identifier": ["income"]}, "'income' is declared twice: target and identifier"),
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


@pytest.mark.parametrize("role", ["identifier", "kept", "sensitive"])
def test_one_name_stands_for_a_list_of_one(role: str) -> None:
    assert roles(**{role: "name"}) == roles(**{role: ["name"]})
    assert roles(**{role: "name"})["name"] == role
    refused("there is no column 'nam'; did you mean 'name'?", **{role: "nam"})


def test_one_name_of_a_quasi_identifier() -> None:
    kept = ["name", "zip", "illness"]
    assert roles(quasi="age", kept=kept) == roles(quasi=["age"], kept=kept)
    refused("there is no column 'agee'; did you mean 'age'?", quasi="agee", kept=kept)


def test_names_in_an_array() -> None:
    names = np.array(["name", "age", "zip", "illness"], dtype=object)
    assert roles(quasi=names) == roles(quasi="all")


@pytest.mark.parametrize("name", [3, None])
def test_names_that_are_not_text(name: object) -> None:
    refused(f"quasi must be a list of text or text, not [{name}]", quasi=[name])


def test_a_target_that_is_no_text() -> None:
    refused("target must be text or None, not 3", target=3)


def test_kinds_may_be_text() -> None:
    declared = Declared(target="y", quasi="all", kinds={"x": "categorical"})
    assert declared.roles(["x", "y"])
    assert declared.kind("x") is Kind.CATEGORICAL
    assert declared.kind("z") is None
    refused(
        "kinds must be a mapping of text to one of numeric, datetime, categorical",
        kinds={"age": "number"},
    )


def test_an_order_makes_a_column_categorical() -> None:
    assert Declared(target="y", quasi="all", orders={"x": ["a"]}).kind("x") is Kind.CATEGORICAL
    roles(orders={"age": ["a"]}, kinds={"age": "categorical"})
    for kind in ("numeric", Kind.DATETIME):
        message = f"column 'age' is declared {kind}, but an order is for categorical columns"
        refused(message, orders={"age": ["a"]}, kinds={"age": kind})


def test_a_target_may_have_an_order() -> None:
    assert roles(kinds={"income": Kind.CATEGORICAL}, orders={"income": ["a", "b"]})


@pytest.mark.parametrize("option", ["identifier", "kept", "sensitive"])
def test_only_sent_columns_have_kinds_and_orders(option: str) -> None:
    message = f"column 'zip' is declared as {option} and is not sent; leave out its "
    refused(message + "kind", kinds={"zip": Kind.CATEGORICAL}, **{option: ["zip"]})
    refused(message + "order", orders={"zip": ["a"]}, **{option: ["zip"]})


def test_missing_may_be_text() -> None:
    assert roles(missing="error")
    refused("missing must be one of mark, impute, error, not 'drop'", missing="drop")


def test_names_of_many_columns_are_not_each_sought_among_all() -> None:
    names = [CountedName(f"c{i}") for i in range(2_000)]
    declared = Declared(target="c0", quasi=[CountedName(name) for name in names[1:]])
    CountedName.n_compared = 0
    assert len(declared.roles(names)) == 2_000
    assert CountedName.n_compared < 20 * len(names)
