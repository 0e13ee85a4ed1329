"""Hierarchies: their files, the order that they give, and what does not fit them."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verix_anon.client.table.hierarchies import Hierarchy, read_hierarchy
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.errors import TableError
from verix_anon.fields import Fields

CODES = """\
C50;C50-C59;neoplasms;*
J10;J10-J18;respiratory;*
C51;C50-C59;neoplasms;*
C43;C43-C44;neoplasms;*
J11;J10-J18;respiratory;*
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "codes.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_in_arx_s_form_orders_depth_first(tmp_path: Path) -> None:
    found = read_hierarchy(written(tmp_path, CODES))
    assert found.height == 3
    # Groups and values as they stand in the file.
    assert found.ordered(["J11", "C43", "C51", "C50", "J10"]) == ["C50", "C51", "C43", "J10", "J11"]


def test_what_does_not_occur_changes_no_order(tmp_path: Path) -> None:
    found = read_hierarchy(written(tmp_path, "a;G;*\nb;H;*\nc;G;*\n"))
    assert found.ordered(["b", "c"]) == ["c", "b"]
    assert found.only(["b", "c"]).ordered(["b", "c"]) == ["c", "b"]


@given(st.lists(st.tuples(*[st.sampled_from("abc")] * 3), min_size=1, max_size=12))
def test_groups_lie_together(above: list[tuple[str, str, str]]) -> None:
    # Names tell of the groups above them, so that this is a tree.
    rows = {f"v{i}": (f"{a}{b}{c}", f"{b}{c}", c) for i, (a, b, c) in enumerate(above)}
    found = Hierarchy(kind="levels", levels=rows)
    ordered = found.ordered(sorted(rows))
    for level in range(3):
        names = [rows[value][level] for value in ordered]
        n_runs = sum(a != b for a, b in zip(names, [None, *names], strict=False))
        assert n_runs == len(set(names))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no level"),
        ("a\nb\n", "has no level"),
        ("a;x\nb;x;y\n", "line 2: 3 columns where the first row has 2"),
        ("a;x\na;y\n", "line 2: 'a' was named otherwise"),
        ("a;" + ";".join("x" * 40) + "\n", "at most 32 levels"),
    ],
)
def test_files_that_are_no_hierarchy(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_hierarchy(written(tmp_path, text))


def test_a_hierarchy_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="one of prefix and date"):
        read_hierarchy(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("M\u00fcnchen;Bayern\n".encode("latin-1"))
    with pytest.raises(TableError, match="not UTF-8"):
        read_hierarchy(tmp_path / "latin.csv")


def columns(**given: object) -> pa.Table:
    table = {"x": ["C50", "J10", "C51", None, "J11", "C43"] * 2, "y": [0, 1] * 6}
    return pa.table(table | given)


def test_positions_follow_the_hierarchy(tmp_path: Path) -> None:
    path = written(tmp_path, CODES)
    encoded = read_owner_table(
        columns(), Declared(target="y", quasi=["x"], hierarchies={"x": str(path)})
    )
    assert encoded.quasi[0].categories == ("C50", "C51", "C43", "J10", "J11")
    # What is missing takes the first of the most frequent.
    assert encoded.of_quasi(0)[:6].tolist() == [0, 3, 1, 0, 4, 2]
    kept = encoded.hierarchies["x"]
    fields = Fields(kept.to_json(), "x", TableError)
    assert Hierarchy.from_json(fields) == kept


def test_codes_by_prefix_are_in_the_order_of_their_letters() -> None:
    codes = ["01067", "9", "10115", "1"] * 3
    table = columns(x=codes)
    plain = read_owner_table(table, Declared(target="y", quasi=["x"]))
    assert plain.quasi[0].categories == ("1", "9", "01067", "10115")
    prefix = read_owner_table(table, Declared(target="y", quasi=["x"], hierarchies={"x": "prefix"}))
    assert prefix.quasi[0].categories == ("01067", "1", "10115", "9")


def test_many_codes_need_no_identifier_s_role_if_they_have_a_hierarchy() -> None:
    table = columns(x=[f"{i:05d}" for i in range(12)])
    with pytest.raises(TableError, match="give it a hierarchy"):
        read_owner_table(table, Declared(target="y", quasi=["x"]))
    read_owner_table(table, Declared(target="y", quasi=["x"], hierarchies={"x": "prefix"}))


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"hierarchies": {"z": "prefix"}}, "no column 'z'"),
        ({"hierarchies": {"y": "prefix"}}, "for quasi-identifiers"),
        ({"hierarchies": {"x": "date"}}, "not a date"),
        ({"hierarchies": {"x": "prefix"}, "kinds": {"x": "numeric"}}, "for categorical columns"),
        ({"hierarchies": {"x": "prefix"}, "orders": {"x": ["a"]}}, "an order and a hierarchy"),
    ],
)
def test_hierarchies_that_do_not_fit(declared: dict[str, object], message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_owner_table(columns(x=["1", "2"] * 6), Declared(target="y", quasi=["x"], **declared))  # type: ignore[arg-type]


def test_a_value_that_the_hierarchy_lacks_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, CODES)
    table = columns(x=["C50", "D01", "D02"] * 4)
    with pytest.raises(TableError, match="has 'D01' and 1 other values, which its hierarchy lacks"):
        read_owner_table(table, Declared(target="y", quasi=["x"], hierarchies={"x": str(path)}))


@pytest.mark.parametrize("name", ["/dev/zero", "a\0b", "."])
def test_what_has_no_end_or_is_no_file_is_not_read(name: str) -> None:
    with pytest.raises(TableError, match="there is no file"):
        read_hierarchy(name)
