"""The command `init`: draft a role for each column of a table, with reasons."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from verix_anon.cli.app import app
from verix_anon.cli.options import (
    AsJson,
    Given,
    Quiet,
    SourceTable,
    load_open,
    option,
    tell_reading,
    with_reading,
)
from verix_anon.cli.output import check_outputs, during, quoted, say, write_data, write_text
from verix_anon.fields import printable, to_json
from verix_anon.parent_process import seen_roles

if TYPE_CHECKING:
    from verix_anon.client.table.guess import Guesses


NARROWEST = 100
"""A table of reasons is not squeezed into less, whatever the terminal says."""


@app.command(epilog="Example: [bold]verix-anon init people.csv --out roles.toml[/bold]")
@with_reading
def init(
    table: SourceTable,
    out: Annotated[
        Path | None, option("Write the draft here; else to stdout.", "--out", "-o")
    ] = None,
    target: Annotated[str | None, option("The column to preserve, if you know it.")] = None,
    explain: Annotated[
        bool, option("Show the reason for each guess, and what else it may be.", "--explain")
    ] = False,
    overview: Annotated[
        Path | None,
        option(
            "Write examples, counts and shares of each column here, for the desk to show, and some"
            " rows beside it."
        ),
    ] = None,
    overwrite: Annotated[bool, option("Replace a file that is there.", "--overwrite")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    reading: Given,
) -> None:
    """Draft the roles of a table's columns, with a guess and a reason for each, to be edited."""
    from verix_anon.client.table.guess import guess_roles
    from verix_anon.client.table.roles_file import roles_text
    from verix_anon.files.tables import shown_url

    check_outputs([out, overview], [table], overwrite=overwrite)
    read = during("read", quiet, lambda: load_open(table, None, reading))
    guesses = during("guess", quiet, lambda: guess_roles(read.table, target))
    beside = None if out is None else out.parent
    text = roles_text(read, table, guesses=guesses, beside=beside)
    tell_reading(table, read)
    if out is not None:
        _write(text, out, overwrite=overwrite)
    if overview is not None:
        from verix_anon.client.table import overview as looking

        looked = during("look", quiet, lambda: looking.overview(read.table))
        write_text(looked.to_json(), overview, overwrite=overwrite)
        sample = overview.with_name(looking.SAMPLE)
        write_data(looking.sample_of(read.table), sample, overwrite=overwrite)
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
        say(
            f"The draft is {out}. Check every line of it. Then see what k costs, and prepare:\n"
            f"  verix-anon explore {given}\n"
            f"  verix-anon prepare {given} --out job"
        )


def _write(text: str, out: Path, *, overwrite: bool) -> None:
    """Write the draft; if a page started this, only what the page showed is replaced."""
    from verix_anon.files.text_versions import other_version, replace_version

    was = seen_roles()
    if not (overwrite and was):
        write_text(text, out, overwrite=overwrite)
    elif replace_version(out, text, was) is not None:
        raise other_version(out)


def _preserved(guesses: "Guesses") -> str:
    """The target and its positive class, with the reasons."""
    target = guesses.target
    if target is None:
        return "No target was found. If there is one, name it in the file."
    said = f"Target: {target.name!r} ({target.reason})."
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
