"""Whether a provider does what the specification demands: conform."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verix_anon.cli.app import REFUSED, app
from verix_anon.cli.show import Quiet, painted, printable, progress_bar, quoted, say
from verix_anon.cli.submit import AuthoritiesFile, InsecureHttp, Token, TokenFile, token_of
from verix_anon.cli.writing import check_outputs, write_text
from verix_anon.conform import Size
from verix_anon.errors import TableError
from verix_anon.fields import to_json

if TYPE_CHECKING:
    from verix_anon.conform.kit import Case, Kit
    from verix_anon.conform.providers import Asked
    from verix_anon.conform.results import Report, Result

__all__ = ["conform"]

LIMITS = {Size.SMALL: 60.0, Size.LARGE: 1800.0}
"""Seconds that a case may take, unless it is said."""


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: [bold]verix-anon conform --html conform.html python provider.py[/bold]",
)
def conform(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="The provider: a command that is given the folder of a submission and that of the"
            " delivery, where it says {submission} and {delivery}, or at its end.",
            metavar="COMMAND...",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this case, or those that fit a pattern such as 'spread*'; may be repeated.",
            rich_help_panel="Cases",
        ),
    ] = None,
    size: Annotated[
        Size,
        typer.Option(
            help="Small tables, or two of a million rows, which take minutes to make.",
            rich_help_panel="Cases",
        ),
    ] = Size.SMALL,
    kit: Annotated[
        Path | None,
        typer.Option(help="Run a kit that was exported.", rich_help_panel="Cases"),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            help="Write the kit as a folder; without a command, that is all.",
            rich_help_panel="Cases",
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="Try a provider's service, such as https://host, in place of a command."),
    ] = None,
    token_file: TokenFile = None,
    token: Token = None,
    insecure_http: InsecureHttp = False,
    ca_file: AuthoritiesFile = None,
    limit: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Seconds that a case may take; 60, or 1,800 with --size large, by default.",
            rich_help_panel="Running",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many cases at a time; as many as there are cores by default.",
            rich_help_panel="Running",
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option("--json", help="Write the results as JSON.", rich_help_panel="Output"),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write the results as a page.", rich_help_panel="Output"),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace results that are there.", rich_help_panel="Output"
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Try whether a provider does what the specification demands, case by case.

    Each case is a submission that must be answered with exactly the delivery that the
    specification gives, or one that must be refused: with an exit code from 1 to 125 that is not
    70, and without a delivery. Cases are made from seeds; nothing is downloaded, and no secret is
    needed.

    Exit codes: 0 all cases passed, 1 some did not, 2 a mistake of the caller's.
    """
    _check_outputs(export, json, html, kit, overwrite)
    if export is None and not command and url is None:
        raise TableError("nothing to try: give a provider's command, --url or --export FOLDER")
    if command and url is not None:
        raise TableError("--url is tried in place of a command; give one of them")
    if kit is not None and export is not None:
        raise TableError("--kit is a kit that was exported already, so it goes without --export")
    with TemporaryDirectory(prefix="verix-kit-") as place:
        found = _kit(kit, export or Path(place) / "kit", size, only or [], overwrite, quiet)
        cases = _chosen(found, only or [])
        if export is not None:
            say(f"{len(found.cases)} cases, kit.json has the SHA-256 {found.digest}.")
            say(f"Written to {export}.")
        limit = limit or LIMITS[found.size]
        if command:
            ask = _command(command, limit)
        elif url is not None:
            options = {"insecure_http": insecure_http, "ca_file": ca_file}
            ask = _service(url, token_of(token, token_file), limit, options)
        else:
            return
        report = _tried(found, cases, ask, url or quoted(*command or []), jobs)
    _tell(report, json, html, overwrite)
    if not report.passed:
        raise typer.Exit(REFUSED)


def _check_outputs(
    export: Path | None, json: Path | None, html: Path | None, kit: Path | None, overwrite: bool
) -> None:
    """Asked before long work."""
    from verix_anon.client.report import check_installed
    from verix_anon.files.aside import check_replaces

    check_outputs([export, json, html], [kit], overwrite=overwrite)
    if export is not None:
        check_replaces(export, "kit.json")
    if html is not None:
        check_installed()


def _kit(
    given: Path | None, place: Path, size: Size, only: Sequence[str], overwrite: bool, quiet: bool
) -> "Kit":
    from verix_anon.conform.kit import read_kit, write_kit
    from verix_anon.conform.recipes import chosen, for_providers

    if given is not None:
        return read_kit(given)
    with progress_bar(quiet) as progress:
        recipes = chosen(for_providers(size), only)
        return write_kit(place, recipes, size, overwrite=overwrite, progress=progress)


def _chosen(kit: "Kit", only: Sequence[str]) -> "list[Case]":
    from verix_anon.conform.recipes import chosen

    return chosen([case for case in kit.cases if case.kind.is_for_provider], only)


def _command(command: Sequence[str], limit: float) -> "Asked":
    from verix_anon.conform.providers import command_provider

    return command_provider(command, limit=limit)


def _service(url: str, token: str, limit: float, options: dict[str, Any]) -> "Asked":
    from verix_anon.client.remote.options import RemoteOptions
    from verix_anon.conform.serving import service_provider

    return service_provider(url, token, RemoteOptions(patience=limit, wait=limit, **options))


def _tried(
    kit: "Kit", cases: "Sequence[Case]", ask: "Asked", subject: str, jobs: int | None
) -> "Report":
    from verix_anon.conform.results import Report
    from verix_anon.conform.trying import try_provider
    from verix_anon.machine import available_cores

    results = try_provider(kit, cases, ask, jobs=jobs or available_cores(), told=_say_result)
    return Report(
        side="provider",
        subject=subject,
        kit=kit,
        results=results,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _say_result(result: "Result") -> None:
    line = result.line()
    say(painted(line[:4], line[:4]) + printable(line[4:]))
    for reason in result.reasons():
        say(printable(reason))


def _tell(report: "Report", json: Path | None, html: Path | None, overwrite: bool) -> None:
    if json is not None:
        write_text(to_json(report.to_json()) + "\n", json, overwrite=overwrite)
    if html is not None:
        from verix_anon.client.report import render_conformance

        write_text(render_conformance(report.to_json()), html, overwrite=overwrite)
    say("")
    say(report.summary())
