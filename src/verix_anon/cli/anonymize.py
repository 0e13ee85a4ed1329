"""The commands `anonymize` and `submit`, from a submission to a delivery, and `inspect`.

A provider anonymizes on this machine or on Spark. An owner submits to a provider's service.
"""

import os
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from verix_anon.cli.app import INTERRUPTED, app, load_kernels
from verix_anon.cli.options import (
    AsJson,
    KeyPassphraseFile,
    Overwrite,
    Quiet,
    first_line,
    load_key,
    option,
    receipt_option,
    service_option,
    spark_option,
)
from verix_anon.cli.output import during, facts, progress_bar, quoted, say, tree_line
from verix_anon.errors import TableError
from verix_anon.fields import to_json


class Engine(StrEnum):
    """Where the provider's work is done."""

    LOCAL = "local"
    SPARK = "spark"


SparkSettings = Annotated[
    list[str] | None,
    spark_option(
        "A setting of Spark's, such as spark.master=local[4]; may be repeated.",
        metavar="NAME=VALUE",
    ),
]


@app.command(epilog="Example: [bold]verix-anon anonymize job/submission --out job/delivery[/bold]")
def anonymize(
    submission: Annotated[str, typer.Argument(help="The submission's folder or URL.")],
    out: Annotated[str, option("The delivery's folder; with Spark, also a URL.", "--out", "-o")],
    threads: Annotated[int | None, option("How many threads; all cores by default.", min=1)] = None,
    engine: Annotated[
        Engine, option("Where the work is done: on this machine, or on Spark.")
    ] = Engine.LOCAL,
    spark: SparkSettings = None,
    task_rows: Annotated[
        int | None,
        spark_option(
            "How many records a task finishes at most. Default: by the executors' memory.", min=1
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        receipt_option("Put a receipt into the delivery, signed with this private key."),
    ] = None,
    key_passphrase_file: KeyPassphraseFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize a submission: the provider's whole work.

    The delivery appears under its name when it is complete. Its bytes are the same for any
    number of threads, except for the time it took. On Spark the root is the same.
    """
    from verix_anon.files.atomic_write import check_apart, check_replaces, check_writable
    from verix_anon.files.folder_writer import without_scheme, write_receipt
    from verix_anon.files.job_folder import DELIVERY_HEADER, RECEIPT_FILE
    from verix_anon.files.store import is_url

    if engine is Engine.SPARK:
        submission, out = without_scheme(submission), without_scheme(out)
    elif spark or task_rows is not None:
        raise TableError("--spark and --task-rows go with --engine spark")
    configuration = spark_settings(spark or []) if engine is Engine.SPARK else None
    if not (engine is Engine.SPARK and is_url(out)):
        check_apart(out, [submission])
        check_writable(out, overwrite=overwrite)
        check_replaces(out, DELIVERY_HEADER)
    key = None if sign is None else load_key(sign, key_passphrase_file)
    began = datetime.now(UTC)

    def sign_delivery(folder: Path) -> None:
        assert key is not None
        write_receipt(folder, key=key, began=began, finished=datetime.now(UTC))

    finish = None if key is None else sign_delivery
    load_kernels()
    from verix_anon.provider import folder_provider

    with progress_bar(quiet) as progress:
        provider = folder_provider(
            spark=configuration, threads=threads, task_rows=task_rows, progress=progress
        )
        header = provider.anonymize_folder(submission, out, overwrite=overwrite, finish=finish)
    result = {
        "delivery": out,
        "rows": header.rows,
        "leaves": header.leaves,
        "nodes": header.nodes,
        "root": header.root.hex(),
        "seconds": header.seconds,
        "signed": None if key is None else key.public.keyid,
    }
    if as_json:
        say(to_json(result))
    else:
        say(tree_line(header.rows, header.leaves, header.root))
        say(f"Written to {out} after {header.seconds:.2f} s of work.")
        if key is not None:
            say(f"Its receipt {RECEIPT_FILE} is signed with the key {key.public.keyid}.")


def spark_settings(spark: list[str]) -> dict[str, str]:
    """Spark's own settings, each given as its name and value."""
    found = {}
    for each in spark:
        name, equals, value = each.partition("=")
        if not equals or not name.startswith("spark."):
            raise TableError(f"--spark {each!r} is not of the form spark.NAME=VALUE")
        found[name] = value
    return found


TOKEN_VARIABLE = "VERIX_TOKEN"

TokenFile = Annotated[
    Path | None, service_option(f"A file with the token in line 1. Default: ${TOKEN_VARIABLE}.")
]
Token = Annotated[
    str | None,
    service_option("The token itself. Others on this machine can see it in the list of processes."),
]
InsecureHttp = Annotated[
    bool, service_option("Send the token unencrypted to another machine.", "--insecure-http")
]
AuthoritiesFile = Annotated[
    Path | None,
    service_option("Certificates to trust instead of the system's, in PEM.", "--ca-file"),
]


@app.command(
    epilog="Example: [bold]verix-anon submit job/submission --url https://host"
    " --token-file token --out job/delivery[/bold]"
)
def submit(
    submission: Annotated[str, typer.Argument(help="The submission's folder or URL.")],
    url: Annotated[str, option("The provider's service, such as https://host.")],
    out: Annotated[str, option("The delivery's folder.", "--out", "-o")],
    token_file: TokenFile = None,
    token: Token = None,
    keep: Annotated[
        bool, option("Do not delete the job at the service afterwards.", "--keep")
    ] = False,
    wait: Annotated[
        float | None, option("Stop waiting after this many seconds; the job stays there.", min=0)
    ] = None,
    provider_key: Annotated[
        list[Path] | None,
        service_option(
            "The provider's public key, which must have signed the delivery; may be repeated."
        ),
    ] = None,
    insecure_http: InsecureHttp = False,
    ca_file: AuthoritiesFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Have a submission anonymized by a provider's service, and fetch the delivery.

    If it is interrupted, run the same command again, and it goes on with the same job. The job is
    deleted at the service when the delivery is here. With --provider-key the receipt is checked
    first. If none of the keys signed the files, the job stays and the command fails.
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
    verdict = quoted("--out", Path(out).parent / VERDICT)
    say(
        f"Verify it:\n  verix-anon verify {quoted(out)} --manifest {manifest}"
        f" {quoted('--submission', submission)} {verdict}{keys}"
    )


def token_of(given: str | None, file: Path | None) -> str:
    """The token from a file, the command line or the environment."""
    if file is not None:
        if not (first := first_line(file, "token").strip()):
            raise TableError(f"the token file {file} is empty")
        return first
    found = given or os.environ.get(TOKEN_VARIABLE)
    if not found:
        raise TableError(
            f"the service needs a token: add --token-file FILE, or set ${TOKEN_VARIABLE}"
        )
    return found


@app.command(epilog="Example: [bold]verix-anon inspect job/delivery[/bold]")
def inspect(
    path: Annotated[str, typer.Argument(help="A submission's or delivery's folder or URL.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show what a submission or delivery holds: contract, counts, digests, sizes.

    A submission is read as a whole and checked against its contract. Of a delivery only the
    header is read, which is only the provider's claim: check it with `verix-anon verify`.
    """
    from verix_anon.files.folder_facts import inspect_folder

    found = during("read", quiet, lambda: inspect_folder(path))
    if as_json:
        say(to_json(found))
    else:
        say("\n".join(facts(found)))
