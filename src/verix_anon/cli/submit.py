"""The owner's way to a provider's service: submit."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from verix_anon.cli.app import INTERRUPTED, app
from verix_anon.cli.show import AsJson, Overwrite, Quiet, progress_bar, quoted, say
from verix_anon.errors import TableError
from verix_anon.fields import to_json

if TYPE_CHECKING:
    from verix_anon.client.remote.submitting import Submitted

__all__ = ["AuthoritiesFile", "InsecureHttp", "Token", "TokenFile", "Url", "submit", "token_of"]

VARIABLE = "VERIX_TOKEN"
NEXT = (
    "Judge it: verix-anon verify {given} --manifest {manifest} --submission {sent}"
    " --out verdict.json"
)

Url = Annotated[str, typer.Option(help="The provider's service, such as https://host.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help=f"A file whose first line is the token; else ${VARIABLE}.", rich_help_panel="Service"
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        help="The token itself, which others on this machine can see in the list of processes.",
        rich_help_panel="Service",
    ),
]
InsecureHttp = Annotated[
    bool,
    typer.Option(
        "--insecure-http",
        help="Send the token unencrypted to another machine.",
        rich_help_panel="Service",
    ),
]
AuthoritiesFile = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        help="Certificates to trust in place of the system's, in PEM.",
        rich_help_panel="Service",
    ),
]


@app.command(
    epilog="Example: [bold]verix-anon submit job/submission --url https://host"
    " --token-file token --out job/delivery[/bold]"
)
def submit(
    submission: Annotated[str, typer.Argument(help="The submission's folder or URL.")],
    url: Url,
    out: Annotated[str, typer.Option("--out", "-o", help="Where the delivery goes.")],
    token_file: TokenFile = None,
    token: Token = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave the job at the service after the download."),
    ] = False,
    wait: Annotated[
        float | None,
        typer.Option(min=0, help="Give up waiting after so many seconds; the job stays there."),
    ] = None,
    provider_key: Annotated[
        list[Path] | None,
        typer.Option(
            help="The provider's public key; a service that shows another is refused."
            " May be repeated.",
            rich_help_panel="Service",
        ),
    ] = None,
    insecure_http: InsecureHttp = False,
    ca_file: AuthoritiesFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Have a submission anonymized by a provider's service, and fetch the delivery.

    What was interrupted goes on with the same job: run the same command again. The job is
    deleted at the service when the delivery is here.
    """
    from verix_anon.client.remote.connection import Connection
    from verix_anon.client.remote.options import RemoteOptions
    from verix_anon.client.remote.submitting import submit_folder
    from verix_anon.files.listing import list_submission

    begun: list[str] = []
    with progress_bar(quiet) as progress:
        options = RemoteOptions(
            keep=keep,
            provider_keys=provider_key or (),
            insecure_http=insecure_http,
            ca_file=ca_file,
            wait=float("inf") if wait is None else wait,
            progress=progress,
        )
        try:
            with Connection(url, token_of(token, token_file), options) as connection:
                done = submit_folder(
                    connection,
                    list_submission(submission),
                    out,
                    overwrite=overwrite,
                    began=begun.append,
                )
        except KeyboardInterrupt:
            _leave(begun)
    _say_done(done, submission, out, as_json=as_json)


def token_of(given: str | None, file: Path | None) -> str:
    """The token from a file, the command line or the environment."""
    if file is not None:
        try:
            first = file.read_text(encoding="utf-8").split("\n", 1)[0].strip()
        except (OSError, UnicodeDecodeError):
            raise TableError(f"the token file {file} cannot be read") from None
        if not first:
            raise TableError(f"the token file {file} is empty")
        return first
    found = given or os.environ.get(VARIABLE)
    if not found:
        raise TableError(f"the service wants a token; give --token-file, --token or ${VARIABLE}")
    return found


def _leave(begun: list[str]) -> NoReturn:
    """End, as interrupted, with a word on what becomes of the job."""
    where = "no job was begun"
    if begun:
        where = f"the job {begun[0]} stays at the service, and the same command goes on with it"
    print(f"verix-anon: interrupted; {where}", file=sys.stderr)
    sys.exit(INTERRUPTED)


def _say_done(done: "Submitted", submission: str, out: str, *, as_json: bool) -> None:
    from verix_anon.files.deliveries import RECEIPT_FILE, read_header

    header = read_header(out)
    if as_json:
        result = {
            "delivery": out,
            "job": done.job,
            "kept": done.kept,
            "rows": header.rows,
            "leaves": header.leaves,
            "root": header.root.hex(),
        }
        say(to_json(result))
        return
    say(f"{header.rows:,} records in {header.leaves:,} leaves, root {header.root.hex()}")
    there = "still lies at the service" if done.kept else "is deleted at the service"
    say(f"Written to {out}; the job {done.job} {there}.")
    if not (Path(out) / RECEIPT_FILE).exists():
        say("The service signed no receipt.")
    beside = Path(submission).parent / "manifest.verix"
    manifest = quoted(beside) if beside.is_file() else "MANIFEST"
    say(NEXT.format(given=quoted(out), manifest=manifest, sent=quoted(submission)))
