"""The command `receipt`: check what was signed about a delivery, without data or secrets."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.options import AsJson, Page, load_envelopes, option
from verix_anon.cli.output import painted, say
from verix_anon.errors import TableError
from verix_anon.fields import printable, to_json

NOT_SO = 1

receipt = typer.Typer(help="Check signed receipts and verdicts, offline.", no_args_is_help=True)
app.add_typer(receipt, name="receipt")


@receipt.callback()
def _group() -> None:
    """Check signed receipts and verdicts, offline."""


@receipt.command(
    epilog="Example: [bold]verix-anon receipt check receipt.dsse.json --key provider.key.pub"
    " --verdict verdict.dsse.json --owner-key owner.key.pub[/bold]\n\n"
    "Exit codes: 0 all of it is so, 1 something is not, 2 a mistake of the caller's, 70 a bug."
)
def check(
    file: Annotated[Path, typer.Argument(metavar="RECEIPT", help="The provider's receipt.")],
    key: Annotated[list[Path], option("The provider's public key, or a file of pinned keys.")],
    verdict: Annotated[
        Path | None, option("The owner's signed verdict on the same delivery.")
    ] = None,
    owner_key: Annotated[
        list[Path] | None, option("The owner's public key, or a file of pinned keys.")
    ] = None,
    root: Annotated[
        str | None, option("The root that it must be about, in hexadecimal digits.")
    ] = None,
    files: Annotated[
        list[str] | None,
        option(
            "A file that it must be about: NAME=PATH, such as records.parquet=copy.parquet.",
            "--file",
        ),
    ] = None,
    page: Page = False,
    as_json: AsJson = False,
) -> None:
    """Check who vouches for a delivery: the provider by its receipt, the owner by its verdict.

    It needs neither the delivery nor a secret. It says what was shown, and what was not.
    """
    if (verdict is None) is not (not owner_key):
        raise TableError("--verdict and --owner-key belong together")
    from verix_anon.files.attestation import Asked, attested

    load_envelopes()
    if page:
        from verix_anon.checker import write_page

        write_page(file)
    found = attested(
        Asked(
            receipt=file,
            keys=tuple(key),
            verdict=verdict,
            owner_keys=tuple(owner_key or ()),
            root=root,
            files=dict(map(_pair, files or [])),
        )
    )
    if as_json:
        say(to_json(found.to_json()))
    for title, sentences in (
        ("Shown", found.shown),
        ("NOT SO", found.problems),
        ("Not shown", found.not_shown),
    ):
        if sentences and not as_json:
            say(f"{painted(title, 'fail') if title == 'NOT SO' else title}:")
            say("\n".join(f"  - {printable(sentence)}" for sentence in sentences))
    sys.exit(0 if found.is_so else NOT_SO)


def _pair(text: str) -> tuple[str, Path]:
    name, is_pair, path = text.partition("=")
    if not (name and is_pair and path):
        raise TableError(f"--file takes NAME=PATH, not {text!r}")
    return name, Path(path)
