"""The provider's commands: anonymize, and inspect for everybody."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from verix_anon.cli.app import app
from verix_anon.cli.secrets import KeyPassphraseFile, load_key
from verix_anon.cli.show import AsJson, Overwrite, Quiet, during, facts, progress_bar, say
from verix_anon.errors import TableError
from verix_anon.fields import to_json
from verix_anon.progress import Progress

if TYPE_CHECKING:
    from verix_anon.protocol.contract import Rule
    from verix_anon.protocol.envelopes import SigningKey
    from verix_anon.protocol.messages import Header

__all__ = ["Engine", "anonymize", "inspect"]


class Engine(StrEnum):
    """Where the provider's work is done."""

    LOCAL = "local"
    SPARK = "spark"


SparkSettings = Annotated[
    list[str] | None,
    typer.Option(
        help="A setting of Spark's, such as spark.master=local[4]; may be given several times.",
        metavar="NAME=VALUE",
        rich_help_panel="Spark",
    ),
]


@app.command(epilog="Example: [bold]verix-anon anonymize job/submission --out job/delivery[/bold]")
def anonymize(
    submission: Annotated[str, typer.Argument(help="The submission's folder or URL.")],
    out: Annotated[
        str, typer.Option("--out", "-o", help="Where the delivery goes; by Spark, a URL as well.")
    ],
    threads: Annotated[
        int | None, typer.Option(min=1, help="How many threads; all cores by default.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Where the work is done: on this machine, or on Spark.")
    ] = Engine.LOCAL,
    spark: SparkSettings = None,
    task_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many records a task finishes at most; by the executors' memory by default.",
            rich_help_panel="Spark",
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            help="Put a receipt into the delivery, signed with this private key.",
            rich_help_panel="Receipt",
        ),
    ] = None,
    key_passphrase_file: KeyPassphraseFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize a submission: the provider's whole work.

    The delivery appears under its name when it is complete, and is the same to the byte for
    any number of threads, but for the time it took. On Spark the root is the same.
    """
    from verix_anon.files.aside import check_apart, check_free, check_replaces
    from verix_anon.files.deliveries import RECEIPT_FILE
    from verix_anon.files.store import is_url, without_scheme

    if engine is Engine.SPARK:
        submission, out = without_scheme(submission), without_scheme(out)
    configuration = _configuration(engine, spark or [], task_rows)
    if not (engine is Engine.SPARK and is_url(out)):
        check_apart(out, [submission])
        check_free(out, overwrite=overwrite)
        check_replaces(out, "delivery.json")
    key = None if sign is None else load_key(sign, key_passphrase_file)
    write = _Written(submission, out, overwrite, None if key is None else _signing(key))
    with progress_bar(quiet) as progress:
        if engine is Engine.SPARK:
            header = _on_spark(write, configuration, task_rows, progress)
        else:
            header = _on_this_machine(write, threads, progress)
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
        say(f"{header.rows:,} records in {header.leaves:,} leaves, root {header.root.hex()}")
        say(f"Written to {out} after {header.seconds:.2f} s of work.")
        if key is not None:
            say(f"Its receipt {RECEIPT_FILE} is signed with the key {key.public.keyid}.")


class _Written(NamedTuple):
    """What is anonymized, where the delivery goes, and what is done before it takes its name."""

    submission: str
    out: str
    overwrite: bool
    finish: Callable[[Path], object] | None


def _on_this_machine(write: _Written, threads: int | None, progress: Progress) -> "Header":
    from verix_anon.files.deliveries import write_delivery
    from verix_anon.files.submissions import read_submission
    from verix_anon.machine import available_cores, begin_import

    progress("read", 0, 1)
    begin_import("verix_anon.kernels.ready", "verix_anon.provider.local")
    loaded = read_submission(write.submission)
    progress("read", 1, 1)
    from verix_anon.provider.local import LocalProvider

    _load_kernels(loaded.contract.rule, progress)
    provider = LocalProvider(threads=threads or available_cores(), progress=progress)
    delivery = provider.anonymize(loaded)
    progress("write", 0, 1)
    write_delivery(delivery, write.out, overwrite=write.overwrite, finish=write.finish)
    progress("write", 1, 1)
    return delivery.header


def _on_spark(
    write: _Written, configuration: dict[str, str], task_rows: int | None, progress: Progress
) -> "Header":
    from verix_anon.provider.spark import SparkProvider

    provider = SparkProvider(configuration=configuration, task_rows=task_rows, progress=progress)
    return provider.anonymize_folder(
        write.submission, write.out, overwrite=write.overwrite, finish=write.finish
    )


def _configuration(engine: Engine, spark: list[str], task_rows: int | None) -> dict[str, str]:
    """Settings as names and values; those of Spark are for Spark."""
    if engine is not Engine.SPARK and (spark or task_rows is not None):
        raise TableError("--spark and --task-rows go with --engine spark")
    return spark_settings(spark)


def spark_settings(spark: list[str]) -> dict[str, str]:
    """Spark's own settings, each given as its name and value."""
    found = {}
    for each in spark:
        name, equals, value = each.partition("=")
        if not equals or not name.startswith("spark."):
            raise TableError(f"--spark {each!r} is not of the form spark.NAME=VALUE")
        found[name] = value
    return found


def _signing(key: "SigningKey") -> Callable[[Path], object]:
    from verix_anon.provider.receipts import write_receipt

    began = datetime.now(UTC)
    return lambda folder: write_receipt(folder, key=key, began=began, finished=datetime.now(UTC))


def _load_kernels(rule: "Rule", progress: Progress) -> None:
    """Load the kernels of a rule, or compile them, so that this is not booked on the work."""
    from verix_anon.provider.local import warm_up

    progress("load", 0, 1)
    warm_up(rule)
    progress("load", 1, 1)


@app.command(epilog="Example: [bold]verix-anon inspect job/delivery[/bold]")
def inspect(
    path: Annotated[str, typer.Argument(help="A submission's or delivery's folder or URL.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show what a submission or delivery holds: contract, counts, digests, sizes.

    A submission is read whole and checked against its contract. Of a delivery only the
    header is read; that it is well-formed, let alone true, is for `verix-anon verify` to say.
    """
    from verix_anon.files.inspect import inspect_folder

    found = during("read", quiet, lambda: inspect_folder(path))
    if as_json:
        say(to_json(found))
    else:
        say("\n".join(facts(found)))
