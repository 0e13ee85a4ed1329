"""Where a passphrase comes from: a file, the environment, or the person at the keyboard."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.errors import TableError

if TYPE_CHECKING:
    from verix_anon.client.manifest import Manifest
    from verix_anon.protocol.envelopes import SigningKey

__all__ = [
    "KeyPassphraseFile",
    "PassphraseFile",
    "key_passphrase",
    "load_envelopes",
    "load_key",
    "load_manifest",
    "passphrase",
]

VARIABLE = "VERIX_PASSPHRASE"
KEY_VARIABLE = "VERIX_KEY_PASSPHRASE"
CLOUD = "boto3"

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        help=f"A file whose first line is the manifest's passphrase; else ${VARIABLE}, else asked.",
        rich_help_panel="Secrets",
    ),
]

KeyPassphraseFile = Annotated[
    Path | None,
    typer.Option(
        help=f"A file whose first line is the key's passphrase; else ${KEY_VARIABLE}, else asked.",
        rich_help_panel="Secrets",
    ),
]


def passphrase(file: Path | None, *, confirm: bool) -> str:
    """The manifest's passphrase."""
    why = "--seal needs a passphrase" if confirm else "the manifest is sealed"
    refusal = f"{why}; give --passphrase-file or ${VARIABLE}"
    return _secret(file, VARIABLE, refusal, confirm=confirm)


def key_passphrase(file: Path | None, *, confirm: bool) -> str:
    """The passphrase of a key."""
    why = "--seal needs a passphrase" if confirm else "the key is sealed"
    refusal = f"{why}; give --key-passphrase-file or ${KEY_VARIABLE}"
    return _secret(file, KEY_VARIABLE, refusal, confirm=confirm)


def _secret(file: Path | None, variable: str, refusal: str, *, confirm: bool) -> str:
    """A passphrase from a file, the environment or a prompt; an empty one is refused."""
    if file is not None:
        try:
            found = file.read_text(encoding="utf-8").split("\n", 1)[0].rstrip("\r")
        except (OSError, UnicodeDecodeError):
            raise TableError(f"the passphrase file {file} cannot be read") from None
    elif variable in os.environ:
        found = os.environ[variable]
    elif sys.stdin.isatty():
        try:
            found = typer.prompt(
                "Passphrase", hide_input=True, confirmation_prompt=confirm, err=True
            )
        except typer.Abort:
            # Left to the framework this would be exit code 1, which means VIOLATION.
            raise KeyboardInterrupt from None
    else:
        raise TableError(refusal)
    if not found:
        raise TableError("the passphrase is empty")
    return found


def load_manifest(path: Path, file: Path | None) -> "Manifest":
    """Read a manifest, asking for the passphrase only if it is sealed."""
    from verix_anon.client.manifest import is_sealed, read_manifest

    if not path.is_file():
        raise TableError(f"there is no manifest {path}")
    return read_manifest(
        path, passphrase=passphrase(file, confirm=False) if is_sealed(path) else None
    )


def load_key(path: Path, file: Path | None) -> "SigningKey":
    """Read a private key, asking for the passphrase only if it is sealed."""
    from verix_anon.files.keys import is_sealed, read_signing_key

    load_envelopes()
    return read_signing_key(
        path, passphrase=key_passphrase(file, confirm=False) if is_sealed(path) else None
    )


def load_envelopes() -> None:
    """Load the library of signed envelopes without a cloud's client, which takes most of a second.

    It looks for those of all clouds when it is imported, for ways to sign that are not ours. Only
    a command may do so: in another's process it would take away what others may want.
    """
    is_free = CLOUD not in sys.modules
    if is_free:
        sys.modules[CLOUD] = None  # type: ignore[assignment]
    try:
        import securesystemslib.dsse  # noqa: F401
    finally:
        if is_free:
            del sys.modules[CLOUD]
