"""Editing a roles file: what is chosen is what commands read, and the rest of the file stays."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.table.roles_editor import (
    Change,
    Choices,
    Protection,
    advice,
    apply_choices,
    apply_protection,
    apply_reading,
    edit,
    read_choices,
    read_protection,
)
from verix_anon.client.table.roles_file import parse_reading, parse_roles, read_roles, roles_text
from verix_anon.errors import TableError
from verix_anon.files.tables import Reading

FILE = """# Drafted. Check every line.
k = 5
target = "y"  # named like a target
# positive = "..."

[columns]
"a#b" = "quasi"  # whole numbers # really
"x = y" = "kept"
age = "quasi"

[orders]
"age" = [
  "young",  # not old
  "old",
]

[empty]
# rule = "x"

[reading]
decimal = ","
"""


def test_values_are_replaced_and_comments_stay() -> None:
    made = edit(FILE, [Change(("columns", "a#b"), "kept"), Change(("k",), 7)])
    assert made == FILE.replace('"a#b" = "quasi"', '"a#b" = "kept"').replace("k = 5", "k = 7")


def test_a_comment_can_be_another() -> None:
    made = edit(FILE, [Change(("target",), "z", "as you said")])
    assert 'target = "z"  # as you said\n' in made
    made = edit(FILE, [Change(("target",), "z", "")])
    assert 'target = "z"\n' in made


def test_entries_go_and_come() -> None:
    made = edit(
        FILE,
        [
            Change(("target",), None),
            Change(("positive",), "yes"),
            Change(("orders", "age"), ("old", "young")),
            Change(("columns", "new one"), "quasi", "a reason"),
            Change(("empty", "rule"), "importance-spread"),
            Change(("reading", "dates", "born"), "dd.mm.yyyy"),
            Change(("nothing",), None),
        ],
    )
    assert (
        made
        == """# Drafted. Check every line.
k = 5
# positive = "..."
positive = "yes"

[columns]
"a#b" = "quasi"  # whole numbers # really
"x = y" = "kept"
age = "quasi"
"new one" = "quasi"  # a reason

[orders]
"age" = ["old", "young"]

[empty]
# rule = "x"
rule = "importance-spread"

[reading]
decimal = ","

[reading.dates]
born = "dd.mm.yyyy"
"""
    )


@pytest.mark.parametrize(
    "text",
    [
        'columns.age = "quasi"\n',
        'columns = { age = "quasi", sex = "kept" }\n',
        '[columns]\nage = """\nquasi"""\n',
        "[columns]\n'age' = 'quasi' # x\n",
        '[columns.age]\nx = "quasi"\n',
        "",
    ],
)
def test_a_file_that_is_written_otherwise_still_says_what_was_meant(text: str) -> None:
    made = tomllib.loads(edit(text, [Change(("columns", "age"), "kept")]))
    assert made["columns"]["age"] == "kept"
    assert made["columns"].get("sex") == tomllib.loads(text).get("columns", {}).get("sex")


def test_what_is_no_toml_is_refused() -> None:
    with pytest.raises(TableError, match="cannot be read"):
        read_choices("k = ")
    with pytest.raises(TableError, match="must hold named fields"):
        edit("columns = 3", [Change(("columns", "age"), "kept")])


NAMES = st.text(min_size=1, max_size=8).filter(str.strip)
ROLES = st.sampled_from(["quasi", "kept"])


@given(st.dictionaries(NAMES, ROLES, max_size=4), st.dictionaries(NAMES, ROLES, max_size=4))
def test_any_names_survive(before: dict[str, str], after: dict[str, str]) -> None:
    text = edit("k = 5\n", [Change(("columns", name), role) for name, role in before.items()])
    assert tomllib.loads(text).get("columns", {}) == before
    text = edit(text, [Change(("columns", name), role, "\n#x") for name, role in after.items()])
    assert tomllib.loads(text).get("columns", {}) == before | after


def test_ends_of_lines_are_those_of_toml() -> None:
    text = '[columns]\n"a\u2028b" = "quasi"  # x\u2028k = 3\n"c\u0085d" = "kept"\n'
    found = {column.name: column.role for column in read_choices(text).columns}
    assert found == {"a\u2028b": "quasi", "c\u0085d": "kept"}
    assert edit(text, []) == text


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "k = " + "9" * 5_000])
def test_what_cannot_be_held_is_refused(text: str) -> None:
    with pytest.raises(TableError, match="cannot be read"):
        read_choices(text)


TABLE = pa.table(
    {
        "name": [f"Person {i}" for i in range(40)],
        "age": [i // 2 for i in range(40)],
        "zip": [f"{10000 + i}" for i in range(40)],
        "diagnosis": ["a", "b", "c", "d"] * 10,
        "outcome": ["no", "yes"] * 20,
    }
)
TEXT = roles_text(TABLE, "people.csv")


def with_roles(text: str, **roles: str) -> Choices:
    found = read_choices(text)
    columns = (replace(one, role=roles.get(one.name, one.role)) for one in found.columns)
    return replace(found, columns=tuple(columns))


def test_a_draft_is_read_with_its_reasons() -> None:
    found = read_choices(TEXT)
    assert [(one.name, one.role, one.guess) for one in found.columns] == [
        ("outcome", "target", "target"),
        ("name", "identifier", "identifier"),
        ("age", "quasi", "quasi"),
        ("zip", "quasi", "quasi"),
        ("diagnosis", "sensitive", "sensitive"),
    ]
    assert all(one.reason for one in found.columns)
    assert found.positive == "yes"
    assert apply_choices(TEXT, found) == TEXT


def test_a_guess_stays_known_whatever_is_chosen() -> None:
    changed = apply_choices(TEXT, with_roles(TEXT, age="kept"))
    age = next(one for one in read_choices(changed).columns if one.name == "age")
    before = next(one for one in read_choices(TEXT).columns if one.name == "age")
    assert (age.role, age.guess, age.reason) == ("kept", "quasi", before.reason)
    again = apply_choices(changed, with_roles(changed, age="sensitive"))
    assert next(one for one in read_choices(again).columns if one.name == "age").guess == "quasi"
    assert apply_choices(again, with_roles(again, age="quasi")) == apply_choices(
        TEXT, read_choices(TEXT)
    )


def test_another_target() -> None:
    changed = apply_choices(TEXT, with_roles(TEXT, outcome="quasi", diagnosis="target"))
    _, declared = parse_roles(changed, Path())
    assert declared.target == "diagnosis"
    assert "outcome" in declared.quasi
    assert "diagnosis" not in [*declared.quasi, *declared.sensitive]
    assert read_choices(changed).columns[0].guess == "sensitive"
    none = apply_choices(TEXT, with_roles(TEXT, outcome="kept"))
    _, declared = parse_roles(none, Path())
    assert (declared.target, declared.positive, declared.task) == (None, None, "none")
    _, back = parse_roles(apply_choices(none, with_roles(none, outcome="target")), Path())
    assert (back.target, back.task) == ("outcome", None)
    with pytest.raises(TableError, match="one target at most"):
        apply_choices(TEXT, with_roles(TEXT, age="target"))


def test_details_go_with_a_column_that_is_not_sent() -> None:
    found = read_choices(TEXT)
    columns = [
        replace(one, kind="categorical", hierarchy="prefix", priority="coarse")
        if one.name == "zip"
        else one
        for one in found.columns
    ]
    columns = [replace(c, order=("a", "b")) if c.name == "age" else c for c in columns]
    text = apply_choices(TEXT, replace(found, columns=tuple(columns), person="name"))
    _, declared = parse_roles(text, Path())
    assert declared.orders == {"age": ("a", "b")}
    assert declared.hierarchy("zip").kind == "prefix"
    assert declared.person == "name"
    assert tomllib.loads(text)["priorities"] == {"zip": "coarse"}
    assert {c.name: c.priority for c in read_choices(text).columns}["zip"] == "coarse"
    text = apply_choices(text, with_roles(text, age="kept", zip="kept"))
    _, declared = parse_roles(text, Path())
    assert not declared.orders
    assert not declared.hierarchies
    assert "zip" not in declared.kinds
    assert not tomllib.loads(text)["priorities"]


def test_columns_that_the_file_does_not_have_are_refused() -> None:
    found = read_choices(TEXT)
    with pytest.raises(TableError, match="other columns by now"):
        apply_choices(TEXT, replace(found, columns=found.columns[1:]))


def test_what_is_to_be_thought_of(tmp_path: Path) -> None:
    def of(**roles: str) -> str:
        found = advice(TEXT, with_roles(TEXT, **roles), tmp_path, tmp_path)
        assert not found.mistakes
        return "\n".join(found.warnings)

    assert "'name' looks like an identifier" in of(name="kept")
    assert "'diagnosis' looks sensitive" in of(diagnosis="kept")
    assert "'age' may be known to others" in of(age="kept")
    assert "'age' is dropped for good" in of(age="identifier")
    assert "no target is named" in of(outcome="kept")
    assert "looks" not in of()
    found = advice(TEXT, replace(read_choices(TEXT), person="nobody"), tmp_path, tmp_path)
    assert "'nobody' is to tell people apart, but there is no such column" in found.warnings


def test_mistakes_are_those_of_prepare(tmp_path: Path) -> None:
    def of(wanted: Choices) -> str:
        return "\n".join(advice(TEXT, wanted, tmp_path, tmp_path).mistakes)

    assert "no column is declared as a quasi-identifier" in of(
        with_roles(TEXT, age="kept", zip="kept")
    )
    assert "one target at most" in of(with_roles(TEXT, age="target"))


@pytest.mark.parametrize("place", ["../levels.csv", "/etc/passwd", "nothing.csv"])
def test_a_hierarchy_outside_the_folder_is_not_opened(tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    (home / "job").mkdir(parents=True)
    (tmp_path / "levels.csv").write_text("x;y\n")
    (home / "levels.csv").write_text("10000;1*\n")
    found = read_choices(TEXT)

    def of(hierarchy: str) -> tuple[str, ...]:
        columns = (
            replace(one, kind="", hierarchy=hierarchy) if one.name == "zip" else one
            for one in found.columns
        )
        return advice(TEXT, replace(found, columns=tuple(columns)), home / "job", home).mistakes

    assert not of("../levels.csv")
    (mistake,) = of(place if place != "../levels.csv" else "../../levels.csv")
    assert "does not lie in" in mistake or "there is no" in mistake


PROTECTED = """# Mine.
k = 5  # agreed with the board
target = "rich"
[columns]
age = "quasi"
illness = "sensitive"
note = "kept"
[contract]
# rule = "importance-spread"
[diversity]
"rich" = { l = 2 }  # so it was decided
"""
USUAL = {"rule": "importance-spread", "traps": "adaptive", "min_leaf": "k"}


def test_what_a_file_says(tmp_path: Path) -> None:
    found = read_protection(PROTECTED, tmp_path)
    hidden = {"rich": {"l": 2}, "illness": {}}
    assert found == Protection(k=5, contract=USUAL, hidden=hidden, target="rich")
    assert found.point == (5, "importance-spread", 2)
    assert read_protection('[columns]\nage = "quasi"\n', tmp_path) == Protection(contract=USUAL)


def test_what_is_chosen_is_what_commands_read(tmp_path: Path) -> None:
    wanted = Protection(
        k=7,
        contract={"rule": "variance-reduction", "traps": "none", "min_leaf": "14"},
        hidden={"rich": {}, "illness": {"l": 3, "t": 0.25}},
        target="rich",
    )
    text = apply_protection(PROTECTED, wanted, tmp_path)
    assert read_protection(text, tmp_path) == wanted
    (tmp_path / "roles.toml").write_text(text)
    k, declared = read_roles(tmp_path / "roles.toml")
    assert (k, declared.diversity) == (7, {"illness": {"l": 3, "t": 0.25}})
    options = PrepareOptions.of_roles(tmp_path / "roles.toml")
    assert (options.rule, options.traps, options.min_leaf) == ("variance-reduction", "none", 14)
    for kept in ("# Mine.", "# agreed with the board", '# rule = "importance-spread"'):
        assert kept in text


def test_nothing_chosen_changes_nothing(tmp_path: Path) -> None:
    assert apply_protection(PROTECTED, read_protection(PROTECTED, tmp_path), tmp_path) == PROTECTED


@pytest.mark.parametrize(
    "change",
    [
        {"k": 1},
        {"k": 0},
        {"k": 2**40},
        {"hidden": {"rich": {"l": 0.5}}},
        {"hidden": {"rich": {"t": 2.0}}},
        {"hidden": {"age": {"l": 2}}},
        {"hidden": {"none": {"l": 2}}},
    ],
)
def test_what_is_not_within_reason_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    wanted = replace(read_protection(PROTECTED, tmp_path), **change)  # type: ignore[arg-type]
    with pytest.raises(TableError):
        apply_protection(PROTECTED, wanted, tmp_path)


def test_how_a_table_is_read_is_said_and_the_rest_stays() -> None:
    text = "[columns]\n\n[reading]\n# Why.\nskip = 2  # lines\ndecimal = ','\n\n[reading.dates]\n"
    text += "born = 'dd.mm.yyyy'\ndied = 'yyyy'\n"
    wanted = Reading(skip=2, delimiter=";", dates={"born": "mm/dd/yyyy"})
    made = apply_reading(text, wanted, "../people.csv")
    assert parse_reading(made) == wanted
    assert tomllib.loads(made)["table"] == "../people.csv"
    assert "# Why.\nskip = 2  # lines\n" in made
    assert apply_reading(made, wanted) == made
    assert parse_reading(apply_reading(made, Reading())) == Reading()
