"""The command explains itself, and its reference is what it says."""

import re
import shlex
from typing import Any, cast

import pytest
import typer.main

from tools.documents.__main__ import MADE, REFERENCE
from tools.documents.reference import commands_of
from verix_anon.cli import app

COMMANDS: dict[str, Any] = dict(commands_of(cast(Any, typer.main.get_command(app))))


@pytest.mark.parametrize("name", MADE)
def test_reference_is_up_to_date(name: str) -> None:
    stored = (REFERENCE / name).read_text(encoding="utf-8")
    assert stored == MADE[name](), "run `make reference`"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_a_purpose_and_an_example_that_fits(name: str) -> None:
    command = COMMANDS[name]
    assert re.match(r"[A-Z][^\n]+[.:]", command.help)
    (example,) = re.findall(r"Example: \[bold\](.*?)\[/bold\]", command.epilog, re.DOTALL)
    words = shlex.split(example)
    assert f"{shlex.join(words)} ".startswith(f"verix-anon {name} ")
    known = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
    assert {word for word in words if word.startswith("-")} <= known
    required = {p.opts[0] for p in command.params if p.required and p.opts[0].startswith("-")}
    assert required <= set(words)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if parameter.name != "help":
            assert parameter.help, parameter.name
            assert parameter.help[0].isupper() or parameter.help.startswith("..."), parameter.help
