"""The owner's first step: a draft of the roles."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.reading import Given, load_open, tell_reading, with_reading
from verix_anon.cli.show import AsJson, Quiet, during, printable, quoted, say
from verix_anon.cli.writing import write_roles
from verix_anon.fields import to_json

if TYPE_CHECKING:
    from verix_anon.client.table.guess import Guesses

__all__ = ["init"]

NARROWEST = 100
"""A table of reasons is not squeezed into less, whatever the terminal says."""


@app.command(epilog="Example: [bold]verix-anon init people.csv --out roles.toml[/bold]")
@with_reading
def init(
    table: Annotated[str, typer.Argument(help="The table: a file by its ending, or a URL.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the draft here; else to stdout.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The column to preserve, if you know it.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show the reason for each guess, and what else it may be."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is there.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    reading: Given,
) -> None:
    """Draft the roles of a table's columns, with a guess and a reason for each, to be edited."""
    from verix_anon.client.table.columns import arrow_columns
    from verix_anon.client.table.draft import drafted
    from verix_anon.client.table.guess import guess_roles
    from verix_anon.files.tables import shown_url

    read = during("read", quiet, lambda: load_open(table, None, reading))
    guesses = during("guess", quiet, lambda: guess_roles(read.table, target))
    beside = None if out is None else out.parent
    text = drafted(guesses, arrow_columns(read.table), table, read, beside)
    tell_reading(table, read)
    if out is not None:
        write_roles(text, out, overwrite=overwrite)
    if as_json:
        say(to_json(guesses.to_json()))
    elif explain:
        say(_explained(guesses))
    elif out is None:
        say(text)
    if out is not None and not as_json:
        given = quoted(shown_url(table), "--roles", out)
        if not explain:
            say(_preserved(guesses))
        say(f"Drafted {out}. Check every line, then: verix-anon prepare {given} --out job")


def _preserved(guesses: "Guesses") -> str:
    """The target and its class 1, and how sure that is."""
    target = guesses.target
    if target is None:
        return "No target was found; name one in the file, if there is one."
    said = f"Target {target.name!r}: {target.reason}"
    said += "" if said.endswith("?") else "."
    if guesses.positive is not None:
        said += f" {guesses.positive!r} is {guesses.why_positive}."
    return printable(said)


def _explained(guesses: "Guesses") -> str:
    """The guesses as a table, and the target below it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from verix_anon.client.table.guess import explained

    shown = Table("column", "role", "kind", "why", "or else", box=None, pad_edge=False)
    for row in explained(guesses):
        shown.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(file=io.StringIO(), width=max(NARROWEST, Console().width))
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return "\n".join([*lines, "", _preserved(guesses)])
