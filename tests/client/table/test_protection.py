"""What is asked of privacy is read from a roles file and written into it, and the rest stays."""

from dataclasses import replace
from pathlib import Path

import pytest

from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.table.draft import read_roles
from verix_anon.client.table.protection import Protection, protected, protection
from verix_anon.errors import TableError

TEXT = """# Mine.
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
    found = protection(TEXT, tmp_path)
    hidden = {"rich": {"l": 2}, "illness": {}}
    assert found == Protection(k=5, contract=USUAL, hidden=hidden, target="rich")
    assert found.of_target == 2
    assert protection('[columns]\nage = "quasi"\n', tmp_path) == Protection(contract=USUAL)


def test_what_is_chosen_is_what_commands_read(tmp_path: Path) -> None:
    wanted = Protection(
        k=7,
        contract={"rule": "variance-reduction", "traps": "none", "min_leaf": "14"},
        hidden={"rich": {}, "illness": {"l": 3, "t": 0.25}},
        target="rich",
    )
    text = protected(TEXT, wanted, tmp_path)
    assert protection(text, tmp_path) == wanted
    (tmp_path / "roles.toml").write_text(text)
    k, declared = read_roles(tmp_path / "roles.toml")
    assert (k, declared.diversity) == (7, {"illness": {"l": 3, "t": 0.25}})
    options = PrepareOptions.of_roles(tmp_path / "roles.toml")
    assert (options.rule, options.traps, options.min_leaf) == ("variance-reduction", "none", 14)
    for kept in ("# Mine.", "# agreed with the board", '# rule = "importance-spread"'):
        assert kept in text


def test_nothing_chosen_changes_nothing(tmp_path: Path) -> None:
    assert protected(TEXT, protection(TEXT, tmp_path), tmp_path) == TEXT


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
    wanted = replace(protection(TEXT, tmp_path), **change)  # type: ignore[arg-type]
    with pytest.raises(TableError):
        protected(TEXT, wanted, tmp_path)
