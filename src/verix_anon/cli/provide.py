"""The provider's commands: anonymize, and inspect for everybody."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.secrets import KeyPassphraseFile, load_key
from verix_anon.cli.show import AsJson, Quiet, during, facts, progress_bar, say
from verix_anon.fields import to_json
from verix_anon.progress import Progress

if TYPE_CHECKING:
    from verix_anon.protocol.contract import Rule
    from verix_anon.protocol.envelopes import SigningKey
    from verix_anon.protocol.statements import Receipt

__all__ = ["anonymize", "inspect"]


@app.command(epilog="Example: [bold]verix-anon anonymize job/submission --out job/delivery[/bold]")
def anonymize(
    submission: Annotated[str, typer.Argument(help="The submission's folder or URL.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Where the delivery goes.")],
    threads: Annotated[
        int | None, typer.Option(min=1, help="How many threads; all cores by default.")
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            help="Put a receipt into the delivery, signed with this private key.",
            rich_help_panel="Receipt",
        ),
    ] = None,
    key_passphrase_file: KeyPassphraseFile = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace a delivery that is there.", rich_help_panel="Output"
        ),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Anonymize a submission: the provider's whole work.

    The delivery appears under its name when it is complete, and is the same to the byte for
    any number of threads, but for the time it took.
    """
    from verix_anon.files.aside import check_apart, check_free, check_replaces
    from verix_anon.files.deliveries import RECEIPT_FILE, write_delivery
    from verix_anon.files.submissions import read_submission
    from verix_anon.machine import available_cores, begin_import

    check_apart(out, [submission])
    check_free(out, overwrite=overwrite)
    check_replaces(out, "delivery.json")
    key = None if sign is None else load_key(sign, key_passphrase_file)
    began = datetime.now(UTC)
    with progress_bar(quiet) as progress:
        progress("read", 0, 1)
        begin_import("verix_anon.kernels.ready", "verix_anon.provider.local")
        loaded = read_submission(submission)
        progress("read", 1, 1)
        from verix_anon.provider.local import LocalProvider

        _load_kernels(loaded.contract.rule, progress)
        delivery = LocalProvider(threads=threads or available_cores(), progress=progress).anonymize(
            loaded
        )
        progress("write", 0, 1)
        finish = None if key is None else _signing(key, began)
        write_delivery(delivery, out, overwrite=overwrite, finish=finish)
        progress("write", 1, 1)
    header = delivery.header
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


def _signing(key: "SigningKey", began: datetime) -> "Callable[[Path], Receipt]":
    from verix_anon.provider.receipts import write_receipt

    return partial(write_receipt, key=key, began=began, finished=datetime.now(UTC))


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
