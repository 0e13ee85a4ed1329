"""A verdict for people who do not read JSON: report."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.reading import read_text
from verix_anon.cli.show import Quiet, during, printable, say
from verix_anon.cli.writing import check_outputs, write_text
from verix_anon.errors import TableError

if TYPE_CHECKING:
    from verix_anon.client.report.sheet import SheetView
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
        typer.Option(
            "--release",
            "-r",
            help="What release --sheet wrote; else sheet.json beside the verdict, if it is there.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a report that is there.")] = False,
    quiet: Quiet = False,
) -> None:
    """Turn a verdict into one HTML page for a data protection officer.

    The page holds aggregates only, loads nothing, and prints on A4. It exits with 0 whatever
    the verdict is.
    """
    from verix_anon.client.report import check_installed, render
    from verix_anon.client.verdict import read_verdict

    check_installed()
    target = verdict.with_suffix(".html") if out is None else out
    beside = verdict.with_name("sheet.json")
    check_outputs([target], [verdict, release or beside], overwrite=overwrite)
    found = read_verdict(verdict)
    sheet = _beside(beside, found) if release is None else _sheet(release)
    page = during("draw", quiet, lambda: render(found, sheet))
    write_text(page, target, overwrite=overwrite)
    is_beside = release is None and sheet is not None
    say(f"Written to {target}{f', with the privacy sheet {beside}' if is_beside else ''}.")


def _sheet(path: Path) -> "SheetView":
    from verix_anon.client.report.sheet import read_sheet

    return read_sheet(read_text(path, "privacy sheet"))


def _beside(path: Path, verdict: "Verdict") -> "SheetView | None":
    """The sheet that lies beside the verdict, if it is that of the same delivery."""
    if not path.exists():
        return None
    try:
        sheet = _sheet(path)
    except TableError as error:
        print(f"Warning: {path} is left out: {printable(str(error))}", file=sys.stderr)
        return None
    if sheet.root == verdict.root.hex():
        return sheet
    print(f"Warning: {path} is left out: it is of another delivery", file=sys.stderr)
    return None


def write_report(
    verdict: "Verdict", out: Path, *, overwrite: bool, sheet: str | None = None
) -> None:
    """Write the report of a verdict that was just given, and of its release if there is one."""
    from verix_anon.client.report import render
    from verix_anon.client.report.sheet import read_sheet

    view = None if sheet is None else read_sheet(sheet)
    write_text(render(verdict, view), out, overwrite=overwrite)
