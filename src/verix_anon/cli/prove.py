"""The commands `prove` and `prove check`: prove in which class a person's record lies."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from verix_anon.cli.app import REFUSED
from verix_anon.cli.app import app as whole
from verix_anon.cli.options import (
    AsJson,
    DeliveryFolder,
    Given,
    Page,
    PassphraseFile,
    Quiet,
    load_envelopes,
    load_manifest,
    load_table,
    option,
    overwrite_option,
    with_reading,
)
from verix_anon.cli.output import check_outputs, during, quoted, say
from verix_anon.errors import ProofError, TableError
from verix_anon.fields import counted, printable, to_json

if TYPE_CHECKING:
    from verix_anon.protocol.inclusion import Proof
    from verix_anon.protocol.statements import Receipt


DOES_NOT_SHOW = (
    "It does not show whose record this is, nor its values. Only the owner can say whose tracker"
    " it is. Some records of the class may be ones that the owner planted."
)
TRUSTED_ROOT = "The root must come from somebody you trust for it, such as a signed receipt."


class _MakesByDefault(TyperGroup):
    """`prove DELIVERY …` is `prove make DELIVERY …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_MakesByDefault,
    no_args_is_help=True,
    help="Prove to one person in which class a record lies, or check such a proof.",
    epilog="`verix-anon prove DELIVERY …` is short for `verix-anon prove make DELIVERY …`.",
)
whole.add_typer(app, name="prove")

owner_option = partial(option, panel="For the owner")


@app.command(
    epilog="Example: [bold]verix-anon prove make job/delivery --manifest job/manifest.verix"
    " --table people.csv --record 17 --out proof.json[/bold]"
)
@with_reading
def make(
    delivery: DeliveryFolder,
    out: Annotated[Path, option("The proof's file; several are NAME-1, NAME-2 …", "--out", "-o")],
    tracker: Annotated[
        str | None,
        option("Prove the record with this tracker, 64 hexadecimal digits.", metavar="HEX"),
    ] = None,
    submission: Annotated[
        str | None, option("The submission; only its contract is read.", "--submission", "-s")
    ] = None,
    contract: Annotated[
        str | None, option("The contract's file, contract.json.", metavar="PATH")
    ] = None,
    manifest: Annotated[
        Path | None, owner_option("The manifest of the job.", "--manifest", "-m")
    ] = None,
    table: Annotated[
        str | None, owner_option("The table that was prepared.", "--table", "-t")
    ] = None,
    record: Annotated[
        int | None, owner_option("Prove the record in this row; the first is 0.", min=0)
    ] = None,
    person: Annotated[
        str | None,
        owner_option(
            "Prove all records with this value of the person column, or of the only identifier.",
            metavar="ID",
        ),
    ] = None,
    passphrase_file: PassphraseFile = None,
    page: Page = False,
    overwrite: Annotated[bool, overwrite_option("a proof that is there")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    reading: Given,
) -> None:
    """Prove in which class of the delivery a record lies, under its root.

    Name the record by its tracker, with --submission or --contract. The owner can name it by its
    row or person. The proof is for the person concerned: do not publish it.
    """
    from verix_anon.checker import write_page
    from verix_anon.client.prove import prove
    from verix_anon.client.table.columns import reading_of
    from verix_anon.files.proofs import write_proof

    given = [delivery, submission, contract, manifest, table]
    check_outputs([out], given, overwrite=overwrite)
    kept = None if manifest is None else load_manifest(manifest, passphrase_file)
    agreed = [each for each in (kept, submission, contract) if each is not None]
    if len(agreed) != 1:
        raise TableError("give exactly one of --manifest, --submission and --contract")
    loaded = None if table is None or kept is None else load_table(table, reading_of(kept), reading)
    find = partial(prove, tracker=tracker, record=record, person=person, table=loaded)
    made = during("prove", quiet, lambda: find(delivery, agreed[0]))
    n = len(made)
    places = [out.with_name(f"{out.stem}-{i + 1}{out.suffix}") for i in range(n)]
    places = [out] if n == 1 else places
    check_outputs(places, given, overwrite=overwrite)
    checking = write_page(out, overwrite=overwrite) if page else None
    for proof, place in zip(made, places, strict=True):
        write_proof(proof, place, overwrite=overwrite)
    if as_json:
        found = zip(made, places, strict=True)
        say(to_json([{"proof": str(place), **_facts(proof)} for proof, place in found]))
        return
    for proof, place in zip(made, places, strict=True):
        splits = counted(len(proof.path), "split")
        say(f"Written to {place}: a class of {counted(proof.count, 'record')}, {splits}.")
    if checking is not None:
        say(f"Written to {checking}: the page that checks it in a browser.")
    words = (places[0], "--root", made[0].root.hex(), "--tracker", made[0].tracker.hex())
    say(f"Check it: verix-anon prove check {quoted(*words)}")


@app.command(
    epilog="Example: [bold]verix-anon prove check proof.json --root ROOT[/bold]\n\n"
    "Exit codes: 0 it holds, 1 it does not, 2 a mistake in the call, 70 a bug."
)
def check(
    proof: Annotated[Path, typer.Argument(help="The proof that prove make wrote.")],
    root: Annotated[
        str | None,
        option("The root, 64 hexadecimal digits, from somebody you trust for it.", metavar="HEX"),
    ] = None,
    receipt: Annotated[
        Path | None, option("The provider's receipt, to take the root from.")
    ] = None,
    key: Annotated[
        list[Path] | None, option("The provider's public key, or a file of pinned keys.")
    ] = None,
    tracker: Annotated[
        str | None, option("Refuse a proof of another tracker's record.", metavar="HEX")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a proof, offline: neither the delivery nor a secret is needed.

    Give the root, or a receipt whose signature counts. The answer says in words what the proof
    shows, and what it does not.
    """
    from verix_anon.files.proofs import check_proof

    try:
        said, signed = _signed(receipt, key or [], root)
        committed = root if said is None else said.root
        if committed is None:
            raise TableError("give the root: add --root HEX, or --receipt FILE and --key FILE")
        found = check_proof(proof, root=committed, tracker=tracker)
        if said and (said.contract, said.submission) != (found.contract.digest, found.submission):
            # The root binds both, so the signer contradicts itself.
            raise ProofError("the receipt names another contract or submission than its own root")
    except ProofError as error:
        if not as_json:
            raise
        say(to_json({"holds": False, "reason": str(error)}))
        sys.exit(REFUSED)
    if as_json:
        say(to_json({"holds": True, **_facts(found), "signed": signed}))
    else:
        say("\n".join(map(printable, _words(found, signed))))


def _signed(
    receipt: Path | None, keys: list[Path], root: str | None
) -> tuple["Receipt | None", str | None]:
    """Return a receipt that counts and who signed it, or None if no receipt was given."""
    if (receipt is None) is not (not keys):
        raise TableError("--receipt and --key belong together")
    if receipt is None:
        return None, None
    from verix_anon.files.attestation import attested

    load_envelopes()
    found = attested(receipt, keys, root=root)
    if found.receipt is None or not found.is_so:
        raise ProofError(f"the receipt does not count: {' '.join(found.problems)}")
    return found.receipt, found.shown[0]


def _facts(proof: "Proof") -> dict[str, object]:
    contract, names = proof.contract, [column.name for column in proof.contract.quasi]
    return {
        "root": proof.root.hex(),
        "contract": contract.digest.hex(),
        "submission": proof.submission.hex(),
        "tracker": proof.tracker.hex(),
        "k": contract.k,
        "min_leaf": contract.min_leaf,
        "rule": contract.rule.value,
        "count": proof.count,
        "bounds": dict(zip(names, map(list, proof.bounds), strict=True)),
        "splits": [
            {"column": names[turn.column], "threshold": turn.threshold, "side": turn.side.value}
            for turn in reversed(proof.path)
        ],
    }


def _words(proof: "Proof", signed: str | None) -> list[str]:
    """Say what a proof that holds shows, and what it does not."""
    from verix_anon.protocol.contract import show_value

    contract = proof.contract
    lines = [
        f"The proof holds under the root {proof.root.hex()}.",
        f"It is for the contract {contract.digest.hex()}",
        f"and the submission {proof.submission.hex()}.",
        *([] if signed is None else [signed]),
        "",
        f"The record with the tracker {proof.tracker.hex()}",
        f"lies in a class of {proof.count:,} records; at least {contract.min_leaf:,} were agreed.",
        "",
        "The party that committed to the root put it there by these splits, from the top:"
        if proof.path
        else "There was no split: all records are one class.",
    ]
    for turn in reversed(proof.path):
        column = contract.quasi[turn.column]
        word = "at most" if turn.side.value == "left" else "more than"
        lines.append(f"  {column.name}: {word} {show_value(column, turn.threshold)}")
    lines += ["", "The values of the class, by column:"]
    for column, (low, high) in zip(contract.quasi, proof.bounds, strict=True):
        least, greatest = show_value(column, low), show_value(column, high)
        lines.append(f"  {column.name}: {least if low == high else f'{least} to {greatest}'}")
    return [*lines, "", DOES_NOT_SHOW if signed else f"{DOES_NOT_SHOW} {TRUSTED_ROOT}"]
