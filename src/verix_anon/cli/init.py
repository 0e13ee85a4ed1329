"""The commands `init` and `explore`: draft roles and try settings, before anything is sent."""

import io
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
    load_open,
    load_table,
    option,
    output_option,
    overwrite_option,
    steps_by_column,
    tell_reading,
    with_reading,
)
from verix_anon.cli.output import (
    check_outputs,
    during,
    loss_lines,
    progress_bar,
    quoted,
    say,
    write_text,
)
from verix_anon.errors import TableError
from verix_anon.fields import printable, to_json
from verix_anon.files.job_folder import SAMPLE
from verix_anon.parent_process import seen_roles

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from verix_anon.client.explore import Exploration
    from verix_anon.client.table.guess import Guesses


NARROWEST = 100
"""The table of reasons is never narrower, even in a narrow terminal."""


@app.command(epilog="Example: [bold]verix-anon init people.csv --out roles.toml[/bold]")
@with_reading
def init(
    table: SourceTable,
    out: Annotated[
        Path | None, option("Write the draft here. Default: stdout.", "--out", "-o")
    ] = None,
    target: Annotated[str | None, option("The target, if you know it.")] = None,
    explain: Annotated[
        bool, option("Show the reason for each guess, and the second-best guess.", "--explain")
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
    """Draft a roles file: a guess and a reason for each column, for you to check and edit."""
    from verix_anon.client.table import overview as looking
    from verix_anon.client.table.guess import guess_roles
    from verix_anon.client.table.roles_file import roles_text
    from verix_anon.files.tables import shown_url

    sample = None if overview is None else overview.parent / SAMPLE
    check_outputs([out, overview, sample], [table], overwrite=overwrite)
    read = during("read", quiet, lambda: load_open(table, None, reading))
    if not read.table.num_rows:
        raise TableError("the table has no rows")
    guesses = during("guess", quiet, lambda: guess_roles(read.table, target))
    beside = None if out is None else out.parent
    text = roles_text(read, table, guesses=guesses, beside=beside)
    tell_reading(table, read)
    if out is not None:
        _write(text, out, overwrite=overwrite)
    if overview is not None and sample is not None:
        looked = during("look", quiet, lambda: looking.overview(read.table))
        write_text(looked.to_json(), overview, overwrite=overwrite)
        write_text(looking.sample_of(read.table), sample, overwrite=overwrite)
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
    return f"{_drawn(shown, console)}\n\n{_preserved(guesses)}"


def _drawn(table: "Table", console: "Console") -> str:
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


@app.command(
    epilog="Example: [bold]verix-anon explore people.csv --roles roles.toml"
    " --out explore.html[/bold]"
)
@with_reading
def explore(
    table: SourceTable,
    roles: Annotated[Path, option("The roles file: the draft of init, checked by you.")],
    k: Annotated[
        str | None, option("The k to try, such as 5,10. Default: 2, 5, 10, 25 and the file's.")
    ] = None,
    rule: Annotated[
        str | None, option("The rules to try, such as importance-spread,variance-reduction.")
    ] = None,
    l: Annotated[  # noqa: E741
        str | None, option("The l of the target to try. Default: 1, 2 and the roles file's.", "--l")
    ] = None,
    priority: Priority = None,
    out: Annotated[
        Path | None,
        output_option(
            "Write one HTML page with plots here, or JSON if the name ends in .json.", "--out", "-o"
        ),
    ] = None,
    language: PageLanguage = "en",
    overwrite: Annotated[bool, overwrite_option("a page that is there")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    reading: Given,
) -> None:
    """Try settings on a table: the risk, what is lost, and how well a model still predicts.

    It grows all trees on this machine, without planted records. Nothing is sent, kept or counted
    as a release. The setting of the roles file is marked.
    """
    from verix_anon.client.explore import ExploreOptions, basis_of
    from verix_anon.client.explore import explore as compare
    from verix_anon.client.report import check_installed, render_exploration
    from verix_anon.files.tables import shown_url

    is_page = out is not None and out.suffix != ".json"
    if is_page:
        check_installed(language)
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
    given = quoted(shown_url(table), "--roles", roles)
    say(f"Put the k you choose into {roles}, and prepare:\n  verix-anon prepare {given} --out job")


def _numbers(given: str | None, what: str) -> list[int] | None:
    try:
        return None if given is None else [int(number) for number in given.split(",")]
    except ValueError:
        raise TableError(f"--{what} takes whole numbers such as 5,10, not {given!r}") from None


def _show(found: "Exploration") -> None:
    """Print the table; outside a terminal it is as wide as it needs to be."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", *found.head):
        shown.add_column(title, justify="left" if title in ("", "rule") else "right", no_wrap=True)
    for row, cells in zip(found.rows, found.cells(), strict=True):
        mark = "chosen" if row.is_chosen else ""
        shown.add_row(mark, *map(Text, cells), style="bold" if row.is_chosen else "")
    say(_drawn(shown, Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200)))
    say("risk: the greatest chance to pick a person's record. NCP: the share of detail lost.")
    if found.target is not None:
        say("one label: the share of the records whose class has a single value of the target.")
    for note in found.notes():
        say(printable(note))
    row = found.chosen or found.rows[0]
    say(f"What is left of each column with k {row.k:,}, {row.rule}, l {row.l:,}:")
    say("\n".join(loss_lines(row.losses)))
