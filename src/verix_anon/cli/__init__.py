"""The command `verix-anon`: a subcommand per stage; what is heavy is imported where it is used."""

import re

from verix_anon.cli import (  # noqa: F401
    anonymize,
    conform,
    desk,
    init,
    keys,
    prepare,
    prove,
    release,
    run,
    series,
    serve,
    verify,
)
from verix_anon.cli.app import app, main

__all__ = ["app", "main"]

JOURNEY = (
    *("init", "explore", "run", "prepare", "anonymize", "submit", "verify", "release"),
    *("convert", "report", "inspect", "demo", "desk", "serve", "conform"),
)
# Help lists the commands in the order of the journey, not of the imports above.
app.registered_commands.sort(key=lambda command: JOURNEY.index(command.callback.__name__))  # type: ignore[union-attr]
for group in (app, *(each.typer_instance for each in app.registered_groups)):
    for command in group.registered_commands:  # type: ignore[union-attr]
        # A paragraph fills the terminal's width, whatever its lines in the source.
        command.help = re.sub(r"(?<!\n)\n(?!\n) *", " ", command.callback.__doc__ or "")
