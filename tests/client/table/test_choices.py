"""What a roles file says of each column, changed by the owner, with the reasons of the guesses."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from verix_anon.client.table.advice import advice
from verix_anon.client.table.choices import Choices, choices, chosen
from verix_anon.client.table.draft import draft, parse_roles
from verix_anon.errors import TableError

TABLE = pa.table(
    {
        "name": [f"Person {i}" for i in range(40)],
        "age": [i // 2 for i in range(40)],
        "zip": [f"{10000 + i}" for i in range(40)],
        "diagnosis": ["a", "b", "c", "d"] * 10,
        "outcome": ["no", "yes"] * 20,
    }
)
TEXT = draft(TABLE, "people.csv")


def with_roles(text: str, **roles: str) -> Choices:
    found = choices(text)
    columns = (replace(one, role=roles.get(one.name, one.role)) for one in found.columns)
    return replace(found, columns=tuple(columns))


def test_a_draft_is_read_with_its_reasons() -> None:
    found = choices(TEXT)
    assert [(one.name, one.role, one.guess) for one in found.columns] == [
        ("outcome", "target", "target"),
        ("name", "identifier", "identifier"),
        ("age", "quasi", "quasi"),
        ("zip", "quasi", "quasi"),
        ("diagnosis", "sensitive", "sensitive"),
    ]
    assert all(one.reason for one in found.columns)
    assert found.positive == "yes"
    assert chosen(TEXT, found) == TEXT.strip("\n") + "\n"


def test_a_guess_stays_known_whatever_is_chosen() -> None:
    changed = chosen(TEXT, with_roles(TEXT, age="kept"))
    age = next(one for one in choices(changed).columns if one.name == "age")
    before = next(one for one in choices(TEXT).columns if one.name == "age")
    assert (age.role, age.guess, age.reason) == ("kept", "quasi", before.reason)
    again = chosen(changed, with_roles(changed, age="sensitive"))
    assert next(one for one in choices(again).columns if one.name == "age").guess == "quasi"
    assert chosen(again, with_roles(again, age="quasi")) == chosen(TEXT, choices(TEXT))


def test_another_target() -> None:
    changed = chosen(TEXT, with_roles(TEXT, outcome="quasi", diagnosis="target"))
    declared = parse_roles(changed, Path())
    assert declared.target == "diagnosis"
    assert "outcome" in declared.quasi
    assert "diagnosis" not in [*declared.quasi, *declared.sensitive]
    assert choices(changed).columns[0].guess == "sensitive"
    none = chosen(TEXT, with_roles(TEXT, outcome="kept"))
    declared = parse_roles(none, Path())
    assert (declared.target, declared.positive, declared.task) == (None, None, "none")
    back = parse_roles(chosen(none, with_roles(none, outcome="target")), Path())
    assert (back.target, back.task) == ("outcome", None)
    with pytest.raises(TableError, match="one target at most"):
        chosen(TEXT, with_roles(TEXT, age="target"))


def test_details_go_with_a_column_that_is_not_sent() -> None:
    found = choices(TEXT)
    columns = [
        replace(one, kind="categorical", hierarchy="prefix") if one.name == "zip" else one
        for one in found.columns
    ]
    columns = [replace(c, order=("a", "b")) if c.name == "age" else c for c in columns]
    text = chosen(TEXT, replace(found, columns=tuple(columns), person="name"))
    declared = parse_roles(text, Path())
    assert declared.orders == {"age": ("a", "b")}
    assert declared.hierarchy("zip").kind == "prefix"
    assert declared.person == "name"
    text = chosen(text, with_roles(text, age="kept", zip="kept"))
    declared = parse_roles(text, Path())
    assert not declared.orders
    assert not declared.hierarchies
    assert "zip" not in declared.kinds


def test_columns_that_the_file_does_not_have_are_refused() -> None:
    found = choices(TEXT)
    with pytest.raises(TableError, match="other columns by now"):
        chosen(TEXT, replace(found, columns=found.columns[1:]))


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
    found = advice(TEXT, replace(choices(TEXT), person="nobody"), tmp_path, tmp_path)
    assert "'nobody', which is to tell people apart, is no column" in found.warnings


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
    found = choices(TEXT)

    def of(hierarchy: str) -> tuple[str, ...]:
        columns = (
            replace(one, kind="", hierarchy=hierarchy) if one.name == "zip" else one
            for one in found.columns
        )
        return advice(TEXT, replace(found, columns=tuple(columns)), home / "job", home).mistakes

    assert not of("../levels.csv")
    (mistake,) = of(place if place != "../levels.csv" else "../../levels.csv")
    assert "does not lie in" in mistake or "there is no" in mistake
