"""The command `submit`: send a submission to a provider's service, and fetch the delivery."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from verix_anon.cli.app import INTERRUPTED, app
from verix_anon.cli.options import AsJson, Overwrite, Quiet, option, service_option
from verix_anon.cli.output import progress_bar, quoted, say, tree_line
from verix_anon.errors import TableError
from verix_anon.fields import to_json

VARIABLE = "VERIX_TOKEN"
NEXT = (
    "Verify it:\n  verix-anon verify {given} --manifest {manifest} --submission {sent}"
    " --out {verdict}{keys}"
)

Url = Annotated[str, option("The provider's service, such as https://host.")]
TokenFile = Annotated[
    Path | None, service_option(f"A file whose first line is the token; else ${VARIABLE}.")
]
Token = Annotated[
    str | None,
    service_option(
        "The token itself, which others on this machine can see in the list of processes."
    ),
]
InsecureHttp = Annotated[
    bool, service_option("Send the token unencrypted to another machine.", "--insecure-http")
]
AuthoritiesFile = Annotated[
    Path | None,
    service_option("Certificates to trust in place of the system's, in PEM.", "--ca-file"),
]


@app.command(
    epilog="Example: [bold]verix-anon submit job/submission --url https://host"
    " --token-file token --out job/delivery[/bold]"
)
def submit(
    submission: Annotated[str, typer.Argument(help="The submission's folder or URL.")],
    url: Url,
    out: Annotated[str, option("Where the delivery goes.", "--out", "-o")],
    token_file: TokenFile = None,
    token: Token = None,
    keep: Annotated[
        bool, option("Leave the job at the service after the download.", "--keep")
    ] = False,
    wait: Annotated[
        float | None, option("Give up waiting after so many seconds; the job stays there.", min=0)
    ] = None,
    provider_key: Annotated[
        list[Path] | None,
        service_option(
            "The provider's public key, which must have signed the delivery. May be repeated."
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
    deleted at the service when the delivery is here. With --provider-key the receipt is checked
    before that: if none of the keys signed the files, the job stays and the command fails.
    """
    from verix_anon.client.remote import RemoteOptions, RemoteProvider
    from verix_anon.files.job_folder import MANIFEST, RECEIPT_FILE, VERDICT

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
            provider = RemoteProvider(url, token_of(token, token_file), options=options)
            done = provider.anonymize_folder(
                submission, out, overwrite=overwrite, began=begun.append
            )
        except KeyboardInterrupt:
            job = f"the job {begun[0]} stays at the service" if begun else "no job was begun"
            then = ", and the same command goes on with it" if begun else ""
            print(f"verix-anon: interrupted; {job}{then}", file=sys.stderr)
            sys.exit(INTERRUPTED)
    if as_json:
        result = {
            "delivery": out,
            "job": done.job,
            "kept": done.kept,
            "rows": done.rows,
            "leaves": done.leaves,
            "root": done.root.hex(),
        }
        say(to_json(result))
        return
    say(tree_line(done.rows, done.leaves, done.root))
    there = "is kept" if done.kept else "was deleted"
    say(f"Written to {out}. The job {done.job} {there} at the service.")
    if not (Path(out) / RECEIPT_FILE).exists():
        say("The service signed no receipt.")
    beside = Path(submission).parent / MANIFEST
    manifest = quoted(beside) if beside.is_file() else "MANIFEST"
    keys = "".join(f" --provider-key {quoted(key)}" for key in provider_key or [])
    verdict = quoted(Path(out).parent / VERDICT)
    found = {"given": quoted(out), "manifest": manifest, "sent": quoted(submission)}
    say(NEXT.format(**found, verdict=verdict, keys=keys))


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
        raise TableError(f"the service needs a token: add --token-file FILE, or set ${VARIABLE}")
    return found
