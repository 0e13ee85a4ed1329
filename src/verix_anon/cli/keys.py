"""The commands `keys` and `receipt`: keys to sign with, and what was signed with them."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from verix_anon.cli.app import REFUSED, app
from verix_anon.cli.options import (
    AsJson,
    KeyPassphraseFile,
    Page,
    load_envelopes,
    load_key,
    option,
    passphrase,
    secrets_option,
)
from verix_anon.cli.output import facts, painted, quoted, say
from verix_anon.errors import TableError
from verix_anon.fields import printable, to_json

keys = typer.Typer(
    help="Make keys that sign receipts and verdicts, and keep the list of those that count.",
    no_args_is_help=True,
)
app.add_typer(keys, name="keys")

TrustFile = Annotated[Path, option("The file of pinned keys, such as keys.json.", "--trust")]


@keys.command(epilog="Example: [bold]verix-anon keys new provider.key[/bold]")
def new(
    name: Annotated[
        Path, typer.Argument(help="Where to write the private key. The public key gets .pub added.")
    ],
    seal: Annotated[
        bool,
        secrets_option("Encrypt the private key. --key-passphrase-file does so too.", "--seal"),
    ] = False,
    key_passphrase_file: KeyPassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a pair of keys: the private half to sign with, the public half to hand out.

    Do not send the keyid along with the files: tell it to the other party in another way, for
    example by telephone. An existing key is never replaced.
    """
    from verix_anon.files.keys import new_key, public_path, write_key

    is_sealed = seal or key_passphrase_file is not None
    secret = passphrase(key_passphrase_file, confirm=True, of="key") if is_sealed else None
    key = new_key()
    write_key(key, name, passphrase=secret)
    found = {"private": str(name), "public": str(public_path(name)), "keyid": key.public.keyid}
    say(to_json(found) if as_json else "\n".join(facts(found)))


@keys.command(epilog="Example: [bold]verix-anon keys show provider.key.pub[/bold]")
def show(
    file: Annotated[Path, typer.Argument(help="A public key, or a private one.")],
    key_passphrase_file: KeyPassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a key's keyid and its public half, never the private one."""
    from verix_anon.files.keys import is_private
    from verix_anon.files.trust import read_public_key

    is_public = not is_private(file)
    key = read_public_key(file) if is_public else load_key(file, key_passphrase_file).public
    if as_json:
        say(to_json({"keyid": key.keyid, "public": key.pem}))
    else:
        say(f"keyid: {key.keyid}\n{key.pem}".rstrip())


@keys.command(
    epilog="Example: [bold]verix-anon keys pin provider.key.pub --trust keys.json"
    " --name provider-2026[/bold]"
)
def pin(
    public: Annotated[Path, typer.Argument(help="The public key.")],
    trust: TrustFile,
    name: Annotated[str, option("Your name for the key.")] = "",
    not_before: Annotated[str | None, option("The key counts from this time, in UTC.")] = None,
    not_after: Annotated[str | None, option("The key counts until this time, in UTC.")] = None,
) -> None:
    """Pin a key: from now on its signatures count, like those of other pinned keys.

    First compare its keyid with the one that its holder tells you, for example by telephone.
    """
    from verix_anon.files.keys import pin as pin_key
    from verix_anon.files.keys import write_trust
    from verix_anon.files.trust import NO_TRUST, Pinned, read_public_key, read_trust

    known, key = read_trust(trust) if trust.exists() else NO_TRUST, read_public_key(public)
    pinned = Pinned(
        key=key,
        name=name,
        pinned=_now(),
        not_before=_moment(not_before, "--not-before"),
        not_after=_moment(not_after, "--not-after"),
    )
    write_trust(pin_key(known, pinned), trust)
    say(f"Pinned in {trust}: {key.keyid}")
    say(f"Verify with it: verix-anon verify DELIVERY ... --provider-key {quoted(trust)}")


@keys.command(
    epilog="Example: [bold]verix-anon keys revoke 3f9a --trust keys.json --reason stolen[/bold]"
)
def revoke(
    key: Annotated[str, typer.Argument(help="The keyid, its first digits, or the key's file.")],
    trust: TrustFile,
    reason: Annotated[str, option("The reason, which later verdicts show.")],
) -> None:
    """Revoke a key for good: nothing that it signed counts any more, whatever time it states.

    The time in a receipt is only the claim of the key's holder, so no one can tell which receipts
    were signed before the key was lost.
    """
    from verix_anon.files.keys import revoke as revoke_key
    from verix_anon.files.keys import write_trust
    from verix_anon.files.trust import read_public_key, read_trust

    keyid = read_public_key(key).keyid if Path(key).is_file() else key
    write_trust(revoke_key(read_trust(trust), keyid, _now(), reason), trust)
    say(f"Revoked in {trust}: receipts signed with it do not count any more.")


@keys.command("list", epilog="Example: [bold]verix-anon keys list --trust keys.json[/bold]")
def list_keys(trust: TrustFile, as_json: AsJson = False) -> None:
    """List the keys that were pinned, and whether each counts now."""
    from verix_anon.files.keys import pinned_to_json
    from verix_anon.files.trust import read_trust

    known, now = read_trust(trust), datetime.now(UTC)
    if as_json:
        found = [{**pinned_to_json(each), "counts": not each.refusal(now)} for each in known.keys]
        say(to_json(found))
        return
    for each in known.keys:
        said = each.refusal(now) or "counts"
        say(f"{each.key.keyid}  {printable(each.name) or '(no name)'}: {printable(said)}")


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _moment(text: str | None, option: str) -> datetime | None:
    """Read a time; one without a time zone is in UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise TableError(
            f"{option} must be a time such as 2026-01-31T12:00, not {text!r}"
        ) from None
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)


receipt = typer.Typer(help="Check signed receipts and verdicts, offline.", no_args_is_help=True)
app.add_typer(receipt, name="receipt")


@receipt.command(
    epilog="Example: [bold]verix-anon receipt check receipt.dsse.json --key provider.key.pub"
    " --verdict verdict.dsse.json --owner-key owner.key.pub[/bold]\n\n"
    "Exit codes: 0 everything holds, 1 something does not, 2 a mistake in the call, 70 a bug."
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
        str | None, option("The root that the receipt must state, in hexadecimal digits.")
    ] = None,
    files: Annotated[
        list[str] | None,
        option(
            "A file that the receipt must name: NAME=PATH, as in records.parquet=copy.parquet.",
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
    from verix_anon.files.attestation import attested

    load_envelopes()
    if page:
        from verix_anon.checker import write_page

        write_page(file)
    found = attested(
        file,
        key,
        verdict=verdict,
        owner_keys=owner_key or (),
        root=root,
        files=dict(map(_pair, files or [])),
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
    sys.exit(0 if found.is_so else REFUSED)


def _pair(text: str) -> tuple[str, Path]:
    name, is_pair, path = text.partition("=")
    if not (name and is_pair and path):
        raise TableError(f"--file takes NAME=PATH, not {text!r}")
    return name, Path(path)
