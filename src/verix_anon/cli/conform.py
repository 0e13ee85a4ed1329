"""The command `conform`: check a provider, a verifier or a checker against the specification."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verix_anon.cli.anonymize import AuthoritiesFile, InsecureHttp, Token, TokenFile, token_of
from verix_anon.cli.app import REFUSED, app
from verix_anon.cli.options import Quiet, option, output_option, overwrite_option
from verix_anon.cli.output import check_outputs, painted, progress_bar, quoted, say, write_text
from verix_anon.errors import TableError
from verix_anon.fields import counted, printable, to_json

if TYPE_CHECKING:
    from verix_anon.conform.results import Result

    Trial = Callable[..., list[Result]]

cases_option = partial(option, panel="Cases")
running_option = partial(option, panel="Running")


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: [bold]verix-anon conform --html conform.html python provider.py[/bold]",
)
def conform(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="The provider's command. The folders of a submission and of the delivery take the"
            " places of {submission} and {delivery}, or are added at its end. Or the command of a"
            " verifier or checker.",
            metavar="COMMAND...",
        ),
    ] = None,
    verifier: Annotated[
        bool,
        option(
            "The command is a verifier. It gets a delivery, --manifest, --submission and --profile,"
            " or these in place of {delivery}, {manifest}, {submission} and {profile}.",
            "--verifier",
        ),
    ] = False,
    checker: Annotated[
        bool,
        option(
            "The command is a checker. The words of prove check, receipt check or series check are"
            " added at its end.",
            "--checker",
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        cases_option(
            "Run only this case, or those that fit a pattern such as 'spread*'; may be repeated."
        ),
    ] = None,
    kit: Annotated[Path | None, cases_option("Run a kit that was exported to this folder.")] = None,
    export: Annotated[
        Path | None, cases_option("Write the kit to this folder. Without a command, do no more.")
    ] = None,
    url: Annotated[
        str | None, option("Test a provider's service, such as https://host, not a command.")
    ] = None,
    token_file: TokenFile = None,
    token: Token = None,
    insecure_http: InsecureHttp = False,
    ca_file: AuthoritiesFile = None,
    limit: Annotated[
        float | None,
        running_option(
            "Seconds that a case may take. Default: 60, or 1,800 for a kit of large tables.",
            min=0.1,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        running_option("How many cases at a time. Default: as many as there are cores.", min=1),
    ] = None,
    json: Annotated[Path | None, output_option("Write the results as JSON.", "--json")] = None,
    html: Annotated[Path | None, output_option("Write the results as a page.", "--html")] = None,
    overwrite: Annotated[bool, overwrite_option("results that are there")] = False,
    quiet: Quiet = False,
) -> None:
    """Test a provider, a verifier or a checker against the specification.

    Each case is a submission that must be answered with exactly the delivery that the
    specification gives, or one that must be refused: with an exit code from 1 to 125 that is not
    70, and without a delivery. A verifier is shown honest deliveries, those of every adversary and
    malformed ones, and must leave with the exit code of `verix-anon verify`. A checker is shown
    proofs, receipts, signed verdicts and logs of series, true and forged ones, and must leave with
    the exit code of `prove check`, `receipt check` and `series check`. A crash, such as with a
    traceback, counts as no answer, whatever its exit code. The cases are part of this package;
    nothing is downloaded, and no secret is needed.

    Exit codes: 0 all cases passed, 1 some did not, 2 a mistake in the call.
    """
    from verix_anon.client.report import check_installed, render_conformance
    from verix_anon.conform.kit import chosen, export_kit, read_kit, unpack_kit
    from verix_anon.conform.results import Report
    from verix_anon.files.atomic_write import check_replaces
    from verix_anon.machine import available_cores

    check_outputs([export, json, html], [kit], overwrite=overwrite)
    if export is not None:
        check_replaces(export, "kit.json")
    if html is not None:
        check_installed()
    if export is None and not command and url is None:
        raise TableError("nothing to test: give a command, --url or --export FOLDER")
    if verifier and checker:
        raise TableError("a command is a verifier or a checker; give one of --verifier, --checker")
    if (command or verifier or checker) and url is not None:
        raise TableError("--url is a provider in place of a command; give one of them")
    if kit is not None and export is not None:
        raise TableError("--kit is a kit that was exported already, so it goes without --export")
    side = "verifier" if verifier else "checker" if checker else "provider"
    with _interruptible(), TemporaryDirectory(prefix="verix-kit-") as place:
        if kit is None:
            with progress_bar(quiet) as progress:
                found = unpack_kit(Path(place) / "kit", progress)
        else:
            found = read_kit(kit)
        if export is not None:
            cases = chosen(found.cases, only or [])
            found = export_kit(found, cases, export, overwrite=overwrite)
            n = counted(len(found.cases), "case")
            say(f"{n}; kit.json has the SHA-256 {found.digest}.")
            say(f"Written to {export}.")
        limit = limit or found.size.limit
        if command:
            trial = _command(command, limit, side)
        elif url is not None:
            options = {"insecure_http": insecure_http, "ca_file": ca_file}
            trial = _service(url, token_of(token, token_file), limit, options)
        else:
            return
        cases = [case for case in found.cases if case.kind.side == side]
        if not cases:
            raise TableError(f"the kit has no case for a {side}")
        cases = chosen(cases, only or [])
        report = Report(
            side=side,
            subject=url or quoted(*command or []),
            kit=found,
            results=trial(found, cases, jobs=jobs or available_cores(), told=_say_result),
            time=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    if json is not None:
        write_text(to_json(report.to_json()) + "\n", json, overwrite=overwrite)
    if html is not None:
        write_text(render_conformance(report.to_json()), html, overwrite=overwrite)
    say("")
    say(report.summary())
    if not report.passed:
        raise typer.Exit(REFUSED)


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM interrupts, as Ctrl-C does: else commands would go on, and their folders be left."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _command(command: Sequence[str], limit: float, side: str) -> "Trial":
    from verix_anon.conform import trials

    if side == "verifier":
        return partial(trials.try_verifier, judge=trials.command_verifier(command, limit=limit))
    if side == "checker":
        return partial(trials.try_checker, check=trials.command_checker(command, limit=limit))
    return partial(trials.try_provider, ask=trials.command_provider(command, limit=limit))


def _service(url: str, token: str, limit: float, options: dict[str, Any]) -> "Trial":
    from verix_anon.client.remote.connection import RemoteOptions
    from verix_anon.conform.trials import service_provider, try_provider

    waiting = RemoteOptions(patience=limit, wait=limit, **options)
    return partial(try_provider, ask=service_provider(url, token, waiting))


def _say_result(result: "Result") -> None:
    line = result.line()
    say(painted(line[:4], line[:4]) + printable(line[4:]))
    for reason in result.reasons():
        say(printable(reason))
