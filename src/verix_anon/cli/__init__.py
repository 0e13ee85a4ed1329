"""The command `verix-anon`: a subcommand per stage; what is heavy is imported where it is used."""

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
