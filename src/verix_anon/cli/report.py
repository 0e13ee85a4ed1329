"""A verdict for people who do not read JSON: report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.reading import read_text
from verix_anon.cli.show import say
from verix_anon.cli.writing import check_outputs, write_text

if TYPE_CHECKING:
    from verix_anon.client.verdict import Verdict

__all__ = ["report", "write_report"]


@app.command(
    epilog="Example: [bold]verix-anon report job/verdict.json --release job/sheet.json"
    " --out job/audit.html[/bold]"
)
def report(
    verdict: Annotated[Path, typer.Argument(help="What verify --out wrote.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The HTML file; else named like the verdict."),
    ] = None,
    release: Annotated[
        Path | None,
        typer.Option("--release", "-r", help="The privacy sheet: what release --sheet wrote."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a report that is there.")] = False,
) -> None:
    """Turn a verdict into one HTML page for a data protection officer.

    The page holds aggregates only, loads nothing, and prints on A4. It exits with 0 whatever
    the verdict is.
    """
    from verix_anon.client.report import check_installed, render
    from verix_anon.client.report.sheet import read_sheet
    from verix_anon.client.verdict import read_verdict

    check_installed()
    target = verdict.with_suffix(".html") if out is None else out
    check_outputs([target], [verdict, release], overwrite=overwrite)
    found = read_verdict(verdict)
    sheet = None if release is None else read_sheet(read_text(release, "privacy sheet"))
    write_text(render(found, sheet), target, overwrite=overwrite)
    say(f"Written to {target}.")


def write_report(verdict: "Verdict", out: Path, *, overwrite: bool) -> None:
    """Write the report of a verdict that was just given."""
    from verix_anon.client.report import render

    write_text(render(verdict), out, overwrite=overwrite)
