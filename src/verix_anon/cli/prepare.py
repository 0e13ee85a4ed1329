"""The command `prepare`: a submission to send and a manifest to keep, from the owner's table."""

import os
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from verix_anon.cli.app import app, left_out
from verix_anon.cli.options import (
    AsJson,
    Given,
    PassphraseFile,
    Priority,
    Quiet,
    Series,
    SourceTable,
    load_series,
    load_table,
    option,
    pairs,
    passphrase,
    receipt_option,
    secrets_option,
    steps_by_column,
    with_reading,
)
from verix_anon.cli.output import progress_bar, quoted, say
from verix_anon.errors import TableError
from verix_anon.fields import counted, printable, to_json
from verix_anon.files.job_folder import DELIVERY, MANIFEST, SUBMISSION, VERDICT
from verix_anon.parent_process import seen_roles

if TYPE_CHECKING:
    from verix_anon.client.manifest import Manifest
    from verix_anon.client.prepare import Prepared, PrepareOptions

PARTS = (SUBMISSION, MANIFEST)
"""What prepare writes into a job's folder; the last one completes it."""

roles_option = partial(option, panel="Roles")
contract_option = partial(option, panel="Contract")
protection_option = partial(option, panel="Protection")
report_option = partial(option, panel="Report")


@app.command(
    epilog="Example: [bold]verix-anon prepare people.csv --target income --quasi all"
    " --identifier name --k 5 --out job[/bold]"
)
@with_reading
def prepare(
    table: SourceTable,
    out: Annotated[str, option("The job's new folder.", "--out", "-o")],
    k: Annotated[
        int | None, option("Every class holds at least this many people; 5 by default.")
    ] = None,
    roles: Annotated[Path | None, roles_option("The roles file, drafted by init.")] = None,
    target: Annotated[str | None, roles_option("The column to predict, if any.")] = None,
    task: Annotated[
        str | None,
        roles_option("What the target is: classes, quantity or none; guessed by default."),
    ] = None,
    person: Annotated[
        str | None,
        roles_option("The column that tells people apart, or record if rows are people."),
    ] = None,
    positive: Annotated[str | None, roles_option("The target's class 1.")] = None,
    quasi: Annotated[
        list[str] | None,
        roles_option("Columns to make coarser: COLUMN, or a,b,c, or all for all the others."),
    ] = None,
    identifier: Annotated[
        list[str] | None, roles_option("Columns that name people. They are left out.")
    ] = None,
    kept: Annotated[
        list[str] | None, roles_option("Columns that are not sent, and come back at release.")
    ] = None,
    sensitive: Annotated[
        list[str] | None, roles_option("Like kept, and the privacy sheet measures them.")
    ] = None,
    kinds: Annotated[
        list[str] | None, roles_option("A column's kind: COLUMN=numeric, categorical or datetime.")
    ] = None,
    orders: Annotated[
        list[str] | None, roles_option("The order of a column's categories: COLUMN=a,b,c.")
    ] = None,
    hierarchies: Annotated[
        list[str] | None,
        roles_option(
            "Names for groups of values: COLUMN=prefix, date or a file in ARX's form.",
            "--hierarchy",
        ),
    ] = None,
    missing: Annotated[
        str | None, roles_option("Missing values: mark (the default), impute or error.")
    ] = None,
    series: Series = None,
    preset: Annotated[
        str | None,
        contract_option(
            "A preset: paper is the system of the VeriX-Anon paper. Other options override it."
        ),
    ] = None,
    rule: Annotated[
        str | None,
        contract_option("How the tree is grown: importance-spread or variance-reduction."),
    ] = None,
    importance: Annotated[
        str | None,
        contract_option("The columns' weights: uniform (the default), or auto, by a model."),
    ] = None,
    priority: Priority = None,
    min_leaf: Annotated[
        str | None, contract_option("How many records a leaf has at least: a number, or k, 2k, …")
    ] = None,
    clear: Annotated[
        bool | None, contract_option("Send values and names, or positions only.", "--clear/--coded")
    ] = None,
    places: Annotated[
        int | None, contract_option("Send at most this many positions per column, by quantiles.")
    ] = None,
    traps: Annotated[
        str | None, protection_option("Test records: adaptive (the default), paper or none.")
    ] = None,
    witnesses: Annotated[
        int, protection_option("How many honest paths to keep, to verify without the submission.")
    ] = 20,
    calibrate: Annotated[
        int, protection_option("How many honest runs calibrate the fingerprint; slow.")
    ] = 0,
    commitment: Annotated[
        str | None, protection_option("What the root covers: binding, or paper to reproduce it.")
    ] = None,
    table_name: Annotated[str | None, report_option("The table's name.")] = None,
    controller: Annotated[str | None, report_option("Who is responsible for the table.")] = None,
    processor: Annotated[str | None, report_option("Who anonymizes the table.")] = None,
    provider_key: Annotated[
        list[Path] | None,
        receipt_option(
            "The provider's public key, or a file of pinned keys. verify then demands a receipt."
        ),
    ] = None,
    seal: Annotated[
        bool, secrets_option("Encrypt the manifest. --passphrase-file does so too.", "--seal")
    ] = False,
    passphrase_file: PassphraseFile = None,
    unsafe_seed: Annotated[
        int | None, secrets_option("For experiments only: the same seed makes the same secrets.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    reading: Given,
) -> Any:
    """Prepare a table for a provider: a submission to send, and a manifest to keep.

    Every column needs a role: from the file that `verix-anon init` drafted, or from the options
    below. Only quasi-identifiers are sent, and the target if the rule needs it.
    """
    from verix_anon.client.ledger import Ledger
    from verix_anon.client.prepare import prepare as make
    from verix_anon.files.tables import shown_url

    growing = None if series is None else load_series(series, passphrase_file)
    if growing is not None and roles is None:
        roles = growing.roles
    _check_out(Path(out), roles)
    _check_roles(roles)
    secret = passphrase(passphrase_file, confirm=True) if seal or passphrase_file else None
    loaded = load_table(table, roles, reading)
    named: Any = {"quasi": quasi, "identifier": identifier, "kept": kept, "sensitive": sensitive}
    options = prepare_options(
        preset,
        roles,
        rule=rule,
        importance=importance,
        priorities=steps_by_column(priority) or None,
        min_leaf=int(min_leaf) if min_leaf and min_leaf.isdecimal() else min_leaf,
        clear=clear,
        places=places,
        traps=traps,
        commitment=commitment,
        witnesses=witnesses,
        calibrate=calibrate,
        table_name=table_name,
        controller=controller,
        processor=processor,
        provider_keys=provider_key,
        unsafe_seed=unsafe_seed,
    )
    # xgboost would import it: more than half a second. Only the paper's forest is made by it.
    unused = () if options.traps == "paper" else ("sklearn",)
    with left_out(*unused), progress_bar(quiet) as progress:
        prepared = make(
            loaded,
            target=target,
            **{role: _split(names, loaded.table.column_names) for role, names in named.items()},
            kinds=pairs(kinds or []) or None,
            orders={c: labels.split(",") for c, labels in pairs(orders or []).items()} or None,
            hierarchies=pairs(hierarchies or []) or None,
            positive=positive,
            missing=missing,
            task=task,
            person=person,
            roles=roles,
            k=k,
            options=replace(options, progress=progress),
            ledger=Ledger.default(),
            series=growing,
        )
        _check_roles(roles)
        _write(prepared, Path(out), secret)
    for warning in prepared.warnings:
        print(f"Warning: {printable(warning)}", file=sys.stderr)
    if as_json:
        say(to_json({"job": out, **prepared.facts()}))
    else:
        say("\n".join([*planted_lines(prepared.manifest), *sent_lines(prepared.manifest)]))
        say(_next_steps(prepared.manifest, quoted(shown_url(table)), out, passphrase_file))
    return prepared.manifest


def prepare_options(preset: str | None, roles: Path | None, **given: Any) -> "PrepareOptions":
    """Return the options: of the preset or the roles file, then those of the command line."""
    from verix_anon.client.prepare import PrepareOptions

    wanted = {name: value for name, value in given.items() if value is not None}
    if preset not in (None, "paper"):
        raise TableError(f"the only preset is paper, not {preset!r}")
    if preset is not None:
        return PrepareOptions.paper(**wanted)
    return PrepareOptions(**wanted) if roles is None else PrepareOptions.of_roles(roles, **wanted)


def _next_steps(manifest: "Manifest", table: str, out: str, passphrase_file: Path | None) -> str:
    from verix_anon.protocol.contract import Commitment

    options = f" {quoted('--passphrase-file', passphrase_file)}" if passphrase_file else ""
    sign = " --sign KEY" if manifest.provider_keys else ""
    paper = " --profile paper" if manifest.contract.commitment is Commitment.PAPER else ""
    names = (SUBMISSION, DELIVERY, MANIFEST, VERDICT)
    sent, back, kept, verdict = (quoted(f"{out}/{name}") for name in names)
    return f"""
Send {sent} to the provider, who runs:
  verix-anon anonymize {sent} --out {back}{sign}
Keep {kept} to yourself. Verify what comes back:
  verix-anon verify {back} --manifest {kept} --submission {sent} --out {verdict}{options}{paper}
If it is VERIFIED, release it:
  verix-anon release {back} --manifest {kept} --verdict {verdict} --table {table}\
 --out released.csv{options}"""


def _split(options: Sequence[str] | None, columns: Sequence[str]) -> Sequence[str] | str | None:
    """Names given one by one or as a list a,b,c; a column whose name has a comma is one name."""
    names = [
        name
        for option in options or []
        for name in ([option] if option in columns else option.split(","))
    ]
    return "all" if names == ["all"] else names or None


def _check_out(out: Path, roles: Path | None) -> None:
    """The folder is made, or it is the one of the roles file, and neither part is there yet.

    A folder is made there and removed: before the work, and before the ledger has its line.
    """
    from verix_anon.files.atomic_write import begun, check_free

    place = out
    if os.path.lexists(out):
        if roles is None or not out.is_dir() or out.resolve() != roles.parent.resolve():
            raise TableError(f"{out} exists already; choose another name for the job's folder")
        for part in PARTS:
            check_free(out / part, overwrite=False)
        place = out / "prepared"
    with begun(place, overwrite=False, folder=True, private=True):
        pass


def _check_roles(roles: Path | None) -> None:
    """Raise if the roles file is not the one that the desk showed; call it around reading."""
    from verix_anon.files.text_versions import check_version

    if roles is not None and (was := seen_roles()):
        check_version(roles, was)


def _write(prepared: "Prepared", out: Path, secret: str | None) -> None:
    from verix_anon.client.owner_files import write_manifest
    from verix_anon.files.atomic_write import begun
    from verix_anon.files.folder_writer import write_submission

    is_there = out.is_dir()
    place = out / "prepared" if is_there else out
    with begun(place, overwrite=False, folder=True, private=True) as aside:
        with ThreadPoolExecutor(1) as beside:
            submission, manifest = (aside.path / part for part in PARTS)
            writing = beside.submit(write_submission, prepared.submission, submission)
            write_manifest(prepared.manifest, manifest, passphrase=secret)
            writing.result()
        if not is_there:
            aside.take_name()
            return
        aside.settle()
        for part in PARTS:
            (aside.path / part).rename(out / part)


def sent_lines(manifest: "Manifest") -> list[str]:
    """Lines on what happens to each column and the target, and what the provider will see."""
    from verix_anon.client.audit_subject import parted, seen, taken

    columns = [f"{w}: {', '.join(names) or 'nothing'}." for w, names in parted(manifest).items()]
    said = [*columns, taken(manifest), *seen(manifest.contract)]
    return [line for text in said for line in textwrap.wrap(printable(text), 100)]


def planted_lines(manifest: "Manifest") -> list[str]:
    """Lines on what was planted, how likely it catches a provider, and which values are missing."""
    planted = manifest.planted
    evasion = planted["evasion_at_drop"]
    assert isinstance(evasion, dict)
    sentinels, twins = int(manifest.sentinel_row.size), len(manifest.twin_row)
    n_tests = manifest.n_rows - manifest.n_genuine
    lines = [
        f"{counted(n_tests, 'test record')} mixed in ({counted(sentinels, 'sentinel')},"
        f" {counted(twins, 'twin')}): {counted(manifest.n_rows, 'record')} to send."
        if n_tests
        else f"{counted(manifest.n_rows, 'record')} to send, without test records."
    ]
    if sentinels:
        share, chance = next(iter([*evasion.items()][1:2] or evasion.items()))
        lines.append(
            f"If the provider drops {float(share):.0%} of them at random, the sentinels miss it"
            f" with a chance of {_one_in(float(chance))}."
        )
    watched = counted(manifest.watch_row.size, "watch record")
    witnesses = counted(len(manifest.witnesses), "witness", "witnesses")
    lines.append(f"Kept for verifying without the submission: {watched}, {witnesses}.")
    if manifest.imputed:
        then = (
            'Cells of their classes will end in "or missing".'
            if manifest.missing == "mark"
            else "Likely values take their place."
        )
        rows = [f"{printable(name)} ({n:,})" for name, n in manifest.imputed.items()]
        lines.append(f"Values are missing in {', '.join(rows)}. {then}")
    if manifest.unsafe_seed:
        lines.append(
            "UNSAFE SEED: anyone who knows it can find the test records. Experiments only."
        )
    return lines


def _one_in(chance: float) -> str:
    """A chance in words: 40 %, or 1 in 180,000."""
    if chance >= 0.1:
        return f"{chance:.0%}"
    return f"1 in {1 / chance:,.0f}" if chance > 1e-9 else "less than 1 in a billion"
