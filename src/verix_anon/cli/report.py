"""The command `report`: make the audit report, a page for people, from a verdict."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.options import PageLanguage, Quiet, option
from verix_anon.cli.output import check_outputs, during, say, write_text
from verix_anon.errors import TableError
from verix_anon.fields import printable
from verix_anon.files.job_folder import SHEET


@app.command(
    epilog="Example: [bold]verix-anon report job/verdict.json --release job/sheet.json"
    " --out job/audit.html[/bold]"
)
def report(
    verdict: Annotated[Path, typer.Argument(help="What verify --out wrote.")],
    out: Annotated[
        Path | None, option("The HTML file; else named like the verdict.", "--out", "-o")
    ] = None,
    release: Annotated[
        Path | None,
        option(
            "What release --privacy-sheet wrote; else sheet.json beside the verdict, if it is"
            " there.",
            "--release",
            "-r",
        ),
    ] = None,
    language: PageLanguage = "en",
    overwrite: Annotated[bool, option("Replace a report that is there.")] = False,
    quiet: Quiet = False,
) -> None:
    """Turn a verdict into one HTML page for a data protection officer.

    The page holds aggregates only, loads nothing, and prints on A4. It exits with 0 whatever
    the verdict is.
    """
    from verix_anon.client.owner_files import read_verdict
    from verix_anon.client.privacy_sheet import Sheet
    from verix_anon.client.report import check_installed, render

    check_installed()
    target = verdict.with_suffix(".html") if out is None else out
    beside = verdict.with_name(SHEET)
    check_outputs([target], [verdict, release or beside], overwrite=overwrite)
    found = read_verdict(verdict)
    sheet: Sheet | None = None
    if release is not None:
        sheet = Sheet.read(release)
    elif beside.exists():
        left_out = "it is of another delivery"
        try:
            sheet = Sheet.read(beside)
        except TableError as error:
            left_out = printable(str(error))
        if sheet is None or sheet.root != found.root:
            print(f"Warning: {beside} is left out: {left_out}", file=sys.stderr)
            sheet = None
    page = during("draw", quiet, lambda: render(found, sheet, language))
    write_text(page, target, overwrite=overwrite)
    is_beside = release is None and sheet is not None
    say(f"Written to {target}{f', with the privacy sheet {beside}' if is_beside else ''}.")
