"""Changes in a roles file: what is not changed stays, and what is written is what was meant."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verix_anon.client.table.edited import Change, edited, entries
from verix_anon.errors import TableError

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
    made = edited(FILE, {("columns", "a#b"): Change("kept"), ("k",): Change(7)})
    assert made == FILE.replace('"a#b" = "quasi"', '"a#b" = "kept"').replace("k = 5", "k = 7")


def test_a_comment_can_be_another() -> None:
    made = edited(FILE, {("target",): Change("z", "as you said")})
    assert 'target = "z"  # as you said\n' in made
    made = edited(FILE, {("target",): Change("z", "")})
    assert 'target = "z"\n' in made


def test_entries_go_and_come() -> None:
    made = edited(
        FILE,
        {
            ("target",): Change(None),
            ("positive",): Change("yes"),
            ("orders", "age"): Change(("old", "young")),
            ("columns", "new one"): Change("quasi", "a reason"),
            ("empty", "rule"): Change("importance-spread"),
            ("reading", "dates", "born"): Change("dd.mm.yyyy"),
            ("nothing",): Change(None),
        },
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

["reading"."dates"]
"born" = "dd.mm.yyyy"
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
    made = tomllib.loads(edited(text, {("columns", "age"): Change("kept")}))
    assert made["columns"]["age"] == "kept"
    assert made["columns"].get("sex") == tomllib.loads(text).get("columns", {}).get("sex")


def test_what_is_no_toml_is_refused() -> None:
    with pytest.raises(TableError, match="cannot be read"):
        entries("k = ")
    with pytest.raises(TableError, match="must hold named fields"):
        edited("columns = 3", {("columns", "age"): Change("kept")})


NAMES = st.text(min_size=1, max_size=8).filter(str.strip)
ROLES = st.sampled_from(["quasi", "kept"])


@given(st.dictionaries(NAMES, ROLES, max_size=4), st.dictionaries(NAMES, ROLES, max_size=4))
def test_any_names_survive(before: dict[str, str], after: dict[str, str]) -> None:
    text = edited("k = 5\n", {("columns", name): Change(role) for name, role in before.items()})
    assert tomllib.loads(text).get("columns", {}) == before
    text = edited(text, {("columns", name): Change(role, "\n#x") for name, role in after.items()})
    assert tomllib.loads(text).get("columns", {}) == before | after


def test_ends_of_lines_are_those_of_toml() -> None:
    text = '[columns]\n"a\u2028b" = "quasi"  # x\u2028k = 3\n"c\u0085d" = "kept"\n'
    found = {entry.name: entry.value for entry in entries(text) if entry.name is not None}
    assert found == {"a\u2028b": "quasi", "c\u0085d": "kept"}


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "k = " + "9" * 5_000])
def test_what_cannot_be_held_is_refused(text: str) -> None:
    with pytest.raises(TableError, match="cannot be read"):
        entries(text)
