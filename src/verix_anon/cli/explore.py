"""The command `explore`: try several k on a table, before anything is sent."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from verix_anon.cli.app import app
from verix_anon.cli.options import (
    AsJson,
    Given,
    PageLanguage,
    Priority,
    Quiet,
    SourceTable,
    load_table,
    option,
    output_option,
    overwrite_option,
    steps_by_column,
    with_reading,
)
from verix_anon.cli.output import check_outputs, loss_lines, progress_bar, say, write_text
from verix_anon.errors import TableError
from verix_anon.fields import printable

if TYPE_CHECKING:
    from verix_anon.client.explore import Exploration


@app.command(
    epilog="Example: [bold]verix-anon explore people.csv --roles roles.toml"
    " --out explore.html[/bold]"
)
@with_reading
def explore(
    table: SourceTable,
    roles: Annotated[Path, option("The file that init drafted, edited.")],
    k: Annotated[
        str | None, option("Which k to try, such as 5,10; else 2, 5, 10, 25 and the file's.")
    ] = None,
    rule: Annotated[
        str | None,
        option("Which rules: importance-spread, variance-reduction or both; else the file's."),
    ] = None,
    l: Annotated[  # noqa: E741
        str | None, option("Which l of the target; else 1, 2 and the file's.", "--l")
    ] = None,
    priority: Priority = None,
    out: Annotated[
        Path | None,
        output_option(
            "Write one HTML page with plots here, or JSON if the name ends so.", "--out", "-o"
        ),
    ] = None,
    language: PageLanguage = "en",
    overwrite: Annotated[bool, overwrite_option("a page that is there")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    reading: Given,
) -> None:
    """Try k, rules and diversity on a table: risk, what is lost, and what a model is still worth.

    Everything is grown on this machine, without planted records: nothing is sent, kept or counted
    as a release. The setting of the roles file is marked.
    """
    from verix_anon.client.explore import ExploreOptions
    from verix_anon.client.explore import explore as compare
    from verix_anon.client.explore.exploration import basis_of
    from verix_anon.client.report import check_installed, render_exploration
    from verix_anon.translation import known

    is_page = out is not None and out.suffix != ".json"
    if is_page:
        check_installed()
        known(language)
    check_outputs([out], [table, roles], overwrite=overwrite)
    rules = None if rule is None else [name.strip() for name in rule.split(",")]
    priorities = steps_by_column(priority)
    options = ExploreOptions(
        k=_numbers(k, "k"), rule=rules, l=_numbers(l, "l"), priorities=priorities
    )
    # With other priorities the curves are not those of the roles file.
    basis = {} if priorities else basis_of(roles, table)
    loaded = load_table(table, roles, reading)
    with progress_bar(quiet) as progress:
        from verix_anon.provider.local import LocalProvider

        wanted = replace(options, progress=progress)
        found = compare(loaded, roles, provider=LocalProvider(), options=wanted)
        found = replace(found, basis=basis)
        if out is not None:
            text = render_exploration(found, language) if is_page else found.to_json()
            write_text(text, out, overwrite=overwrite)
    if as_json:
        say(found.to_json())
        return
    _show(found)
    if out is not None:
        say(f"Written to {out}.")


def _numbers(given: str | None, what: str) -> list[int] | None:
    try:
        return None if given is None else [int(number) for number in given.split(",")]
    except ValueError:
        raise TableError(f"--{what} takes whole numbers such as 5,10, not {given!r}") from None


def _show(found: "Exploration") -> None:
    """The table, as wide as it needs to be where no one looks."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", *found.head):
        shown.add_column(title, justify="left" if title in ("", "rule") else "right", no_wrap=True)
    for row, cells in zip(found.rows, found.cells(), strict=True):
        mark = "chosen" if row.is_chosen else ""
        shown.add_row(mark, *map(Text, cells), style="bold" if row.is_chosen else "")
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200)
    with console.capture() as captured:
        console.print(shown)
    say("\n".join(line.rstrip() for line in captured.get().splitlines()))
    for note in found.notes():
        say(printable(note))
    row = found.chosen or found.rows[0]
    say(f"What is left of each column with k {row.k:,}, {row.rule}, l {row.l:,}:")
    say("\n".join(loss_lines(row.losses)))
