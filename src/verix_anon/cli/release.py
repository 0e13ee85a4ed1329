"""The commands `release` and `convert`: publish a verified delivery, in several kinds of file."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verix_anon.cli.app import app
from verix_anon.cli.options import (
    AsJson,
    DeliveryFolder,
    FormOption,
    Given,
    KeyPassphraseFile,
    ManifestFile,
    PassphraseFile,
    Quiet,
    Series,
    bins_by_column,
    load_key,
    load_manifest,
    load_series,
    load_table,
    numbers_by_column,
    option,
    output_option,
    overwrite_option,
    pairs,
    share_of,
    steps_by_column,
    with_reading,
)
from verix_anon.cli.output import (
    check_outputs,
    facts,
    loss_lines,
    progress_bar,
    quoted,
    say,
    write_text,
)
from verix_anon.errors import TableError
from verix_anon.fields import printable
from verix_anon.files.job_folder import AUDIT_LOG, VERDICT

if TYPE_CHECKING:
    from verix_anon.client.manifest import Manifest
    from verix_anon.client.release import Released

privacy_option = partial(option, panel="Privacy")
values_option = partial(option, panel="Values")


@app.command(
    epilog="Example: [bold]verix-anon release job/delivery --manifest job/manifest.verix"
    " --verdict job/verdict.json --table people.csv --out released.parquet[/bold]"
)
@with_reading
def release(
    delivery: DeliveryFolder,
    manifest: ManifestFile,
    table: Annotated[str, option("The table that was prepared.", "--table", "-t")],
    out: Annotated[
        str | None,
        option("The table to publish: a .csv, .parquet, .xlsx, .sav or other file.", "--out", "-o"),
    ] = None,
    preview: Annotated[
        Path | None,
        option(
            "Publish nothing, but write a preview here as JSON, with ten records before and after."
        ),
    ] = None,
    verdict: Annotated[
        Path | None, option("The verdict, from verify --out.", "--verdict", "-v")
    ] = None,
    person: Annotated[
        str | None, option("The column that tells people apart, or record; as for prepare.")
    ] = None,
    pseudonym: Annotated[
        str | None,
        option(
            "Add a column of this name with a random number for each person, fresh for this"
            " release, so that the rows of a person stay together.",
            metavar="NAME",
        ),
    ] = None,
    l: Annotated[  # noqa: E741
        list[str] | None,
        privacy_option(
            "Each class has at least N values of the target, or with COLUMN=N of that column.",
            "--l",
            metavar="N",
        ),
    ] = None,
    cap: Annotated[
        list[str] | None,
        privacy_option(
            "No value of the target has more than this share of a class; COLUMN=SHARE likewise.",
            metavar="SHARE",
        ),
    ] = None,
    t: Annotated[
        list[str] | None,
        privacy_option(
            "No class is further than this from the whole table; COLUMN=X likewise.",
            "--t",
            metavar="X",
        ),
    ] = None,
    represent: Annotated[
        list[str] | None,
        values_option(
            "How values are written: interval, set, bounds, midpoint, mean, shares, model; or"
            " COLUMN=FORM.",
            "--as",
            metavar="FORM",
        ),
    ] = None,
    round_to: Annotated[
        list[str] | None,
        values_option(
            "Round bounds outwards, and other values to the nearest: COLUMN=STEP. For dates: days,"
            " month, quarter or year.",
            "--round",
        ),
    ] = None,
    top_code: Annotated[
        list[str] | None,
        values_option("Hide how far values go beyond LOW or HIGH: COLUMN=LOW:HIGH."),
    ] = None,
    bins: Annotated[
        list[str] | None,
        values_option(
            "Make cells end at shared boundaries: COLUMN=WIDTH, as in age=10,born=5y,zip=2; or"
            " auto.",
            metavar="COLUMN=WIDTH",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, values_option("Leave this column out; may be repeated.", metavar="COLUMN")
    ] = None,
    form: FormOption = None,
    exact_ends: Annotated[
        bool,
        values_option(
            "Publish the least and the greatest value of every column, even if fewer than k people"
            " reach it.",
            "--exact-ends",
        ),
    ] = False,
    keep_order: Annotated[
        bool,
        values_option(
            "Keep the rows in the order of the table. A warning says what that gives away.",
            "--keep-order",
        ),
    ] = False,
    suppress: Annotated[
        str | None,
        privacy_option(
            "Leave out the records that cost most detail, of at most this share of the people.",
            metavar="2%",
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        privacy_option(
            "Publish nothing, and exit with 1, unless NAME=VALUE is met. Names: k, l, cap, t,"
            " risk, singled-out, bound-owners, linked-k, over-time-l, ncp; may be repeated.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    series: Series = None,
    sign: Annotated[
        Path | None, option("Sign the new head of the series' log with this private key.")
    ] = None,
    key_passphrase_file: KeyPassphraseFile = None,
    log: Annotated[
        Path | None, option("The audit log. Default: audit.jsonl beside the manifest.")
    ] = None,
    force: Annotated[
        bool,
        option("Release even without a VERIFIED verdict, or a second time; it warns.", "--force"),
    ] = False,
    passphrase_file: PassphraseFile = None,
    overwrite: Annotated[bool, overwrite_option("a table or sheet that is there")] = False,
    privacy_sheet: Annotated[
        Path | None, output_option("Write the privacy sheet here, as JSON. report reads it.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    reading: Given,
) -> None:
    """Turn a verified delivery into a table to publish, and measure what it reveals.

    It removes the traps, checks k again on the genuine records, enforces --l, --cap and --t, and
    puts the rows in random order.
    """
    from verix_anon.client.ledger import Ledger, LookedAt
    from verix_anon.client.privacy_sheet import gate_error
    from verix_anon.client.release import ReleaseOptions
    from verix_anon.client.release import release as publish
    from verix_anon.client.release.preview import Preview
    from verix_anon.client.table.columns import reading_of
    from verix_anon.files.tables.file_kinds import SHEET_SUFFIXES

    if (out is None) == (preview is None):
        raise TableError(
            "add either --out FILE to publish the table, or --preview FILE to look at it first"
        )
    if preview is not None and privacy_sheet is not None:
        raise TableError(
            "--privacy-sheet goes with --out; what --preview writes holds the same figures"
        )
    is_spreadsheet = table.lower().endswith(SHEET_SUFFIXES)
    if "sheet" in reading and not is_spreadsheet:
        # It once was the privacy sheet's file, which a table of text would not miss.
        raise TableError(
            "--sheet is for a table that is a spreadsheet; --privacy-sheet says where the privacy"
            " sheet goes"
        )
    inputs = [delivery, manifest, verdict, table]
    check_outputs([out, privacy_sheet, preview], inputs, overwrite=overwrite)
    kept = load_manifest(manifest, passphrase_file)
    if sign is not None and series is None:
        raise TableError("--sign signs the log of a series: add --series FOLDER")
    key = None if sign is None else load_key(sign, key_passphrase_file)
    growing = None if series is None else load_series(series, passphrase_file, key)
    if verdict is None and not force and (beside := manifest.parent / VERDICT).is_file():
        raise TableError(f"the verdict is missing: add --verdict {quoted(beside)}")
    loaded = load_table(table, reading_of(kept), reading)
    with progress_bar(quiet) as progress:
        options = ReleaseOptions(
            person=person,
            pseudonym=pseudonym,
            representation=_general(represent or []),
            representations=pairs([o for o in represent or [] if "=" in o]),
            exact_ends=exact_ends,
            keep_order=keep_order,
            # A sheet has a form only once it is text, and then it is for Excel.
            form=("excel," if is_spreadsheet else "") + (form or ""),
            force=force,
            l=_asked(l, kept),
            cap=_asked(cap, kept),
            t=_asked(t, kept),
            require=numbers_by_column(require or []),
            progress=progress,
        )
        # As a roles file says it: caps of dates are days, and auto is for all columns.
        remedies = {
            "round": steps_by_column(round_to),
            "top_code": pairs(top_code or []),
            "bins": bins_by_column(bins or [], [column.name for column in kept.quasi]),
            "drop": drop or [],
            "suppress": share_of(suppress) if suppress else 0.0,
        }
        options = options.beside(remedies, kept.quasi)
        ledger = Ledger.default()
        released = publish(
            delivery,
            kept,
            verdict,
            table=loaded,
            out=out,
            sheet=privacy_sheet,
            overwrite=overwrite,
            # A look is at what is not reached, too.
            options=replace(options, require={}) if preview else options,
            ledger=LookedAt(ledger.path) if preview else ledger,
            log=log or manifest.parent / AUDIT_LOG,
            series=growing,
        )
    if preview is None:
        _tell(released, kept, f"Written to {out}.", as_json=as_json)
        return
    found = Preview.of(released, options, kept, loaded.table)
    write_text(found.to_json(), preview, overwrite=overwrite)
    _tell(released, kept, f"Nothing is published; what would be is in {preview}.", as_json=as_json)
    if found.missed:
        raise gate_error(found.missed)


def _tell(released: "Released[Any]", kept: "Manifest", done: str, *, as_json: bool) -> None:
    """The warnings, the worst first, then what was measured and where it was written."""
    from verix_anon.client.audit_subject import taken

    for warning in (*released.overridden, *released.warnings):
        print(f"Warning: {printable(warning)}", file=sys.stderr)
    sheet = released.sheet
    lines = [*facts(sheet.facts()), *loss_lines(sheet.losses), printable(taken(kept)), done]
    say(released.to_json() if as_json else "\n".join(lines))


def _general(options: list[str]) -> str:
    """The form that is for all columns."""
    found = [option for option in options if "=" not in option]
    if len(found) > 1:
        raise TableError(f"--as is given twice for all columns: {found[0]} and {found[1]}")
    return found[0] if found else "interval"


def _asked(options: list[str] | None, kept: "Manifest") -> dict[str, float]:
    """COLUMN=NUMBER, or NUMBER for the target."""
    if kept.target is None and not all("=" in option for option in options or []):
        raise TableError("there is no target: write COLUMN=VALUE, for a sensitive column")
    return numbers_by_column([o if "=" in o else f"{kept.target}={o}" for o in options or []])


@app.command(epilog="Example: [bold]verix-anon convert released.csv --out released.xlsx[/bold]")
def convert(
    table: Annotated[str, typer.Argument(help="A released table, beside its NAME.schema.json.")],
    out: Annotated[
        str, option("The other file: a .csv, .parquet, .xlsx, .sav or other file.", "--out", "-o")
    ],
    form: FormOption = None,
    overwrite: Annotated[bool, overwrite_option("a table that is there")] = False,
) -> None:
    """Write a released table as another kind of file: the same cells in the same order.

    This is not another release. It needs neither the manifest nor the delivery.
    """
    from verix_anon.client.release.read_back import convert_released

    convert_released(table, out, form=form or "", overwrite=overwrite)
    say(f"Written to {out}.")
