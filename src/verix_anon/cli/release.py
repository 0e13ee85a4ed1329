"""The owner's last step: release."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verix_anon.cli.app import app
from verix_anon.cli.pairs import numbers_by_column, pairs, ranges_by_column, steps_by_column
from verix_anon.cli.reading import Given, load_table, with_reading
from verix_anon.cli.secrets import PassphraseFile, load_manifest
from verix_anon.cli.show import AsJson, Quiet, facts, printable, progress_bar, say
from verix_anon.cli.writing import check_outputs, write_text
from verix_anon.errors import TableError

if TYPE_CHECKING:
    from verix_anon.client.manifest import Manifest
    from verix_anon.client.release import Released

__all__ = ["release"]


@app.command(
    epilog="Example: [bold]verix-anon release job/delivery --manifest job/manifest.verix"
    " --verdict job/verdict.json --table people.csv --out released.parquet[/bold]"
)
@with_reading
def release(
    delivery: Annotated[str, typer.Argument(help="The delivery's folder or URL.")],
    manifest: Annotated[Path, typer.Option("--manifest", "-m", help="The manifest of the job.")],
    table: Annotated[str, typer.Option("--table", "-t", help="The table that was prepared.")],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="The table to publish, by its ending: .csv, .parquet, .xlsx, .sav and others.",
        ),
    ] = None,
    preview: Annotated[
        Path | None,
        typer.Option(
            help="Publish nothing: write here what would be published, with ten records before and"
            " after, as JSON."
        ),
    ] = None,
    verdict: Annotated[
        Path | None, typer.Option("--verdict", "-v", help="What verify --out wrote.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(help="The column that tells people apart, or record; else as at prepare."),
    ] = None,
    l: Annotated[  # noqa: E741
        list[str] | None,
        typer.Option(
            "--l",
            help="At least N values of the target in every class; COLUMN=N of a sensitive column.",
            metavar="N",
            rich_help_panel="Privacy",
        ),
    ] = None,
    cap: Annotated[
        list[str] | None,
        typer.Option(
            help="At most this share of one value in every class; COLUMN=SHARE likewise.",
            metavar="SHARE",
            rich_help_panel="Privacy",
        ),
    ] = None,
    t: Annotated[
        list[str] | None,
        typer.Option(
            "--t",
            help="At most this distance of every class to the table; COLUMN=X likewise.",
            metavar="X",
            rich_help_panel="Privacy",
        ),
    ] = None,
    represent: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            help="How values read: interval, set, bounds, midpoint, mean, shares or model; or"
            " COLUMN=FORM.",
            metavar="FORM",
            rich_help_panel="Values",
        ),
    ] = None,
    round_to: Annotated[
        list[str] | None,
        typer.Option(
            "--round",
            help="Round bounds outwards: COLUMN=STEP; for dates days, or month, quarter, year.",
            rich_help_panel="Values",
        ),
    ] = None,
    top_code: Annotated[
        list[str] | None,
        typer.Option(
            help="Publish nothing beyond: COLUMN=LOW:HIGH, dates as 2024-01-31.",
            rich_help_panel="Values",
        ),
    ] = None,
    shuffle: Annotated[
        bool,
        typer.Option("--shuffle", help="Rows in random order.", rich_help_panel="Values"),
    ] = False,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="Publish nothing, with exit code 1, unless NAME=VALUE is reached: k, l, cap, t,"
            " risk, singled-out or ncp; any number of times.",
            metavar="NAME=VALUE",
            rich_help_panel="Privacy",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="The audit log; audit.jsonl beside the manifest if not given."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Without a matching VERIFIED verdict, or once more; says what it is."
        ),
    ] = False,
    passphrase_file: PassphraseFile = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace a table or sheet that is there.", rich_help_panel="Output"
        ),
    ] = False,
    sheet: Annotated[
        Path | None,
        typer.Option(
            help="Write the privacy sheet here as JSON, for report.", rich_help_panel="Output"
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    *,
    reading: Given,
) -> None:
    """Turn a verified delivery into a table to publish, and measure what it reveals.

    Traps are taken out, k is checked again on the genuine records, what --l, --cap and --t ask
    for is enforced, and the rows stand as in the table that was prepared.
    """
    from verix_anon.client.ledger import Ledger, LookedAt
    from verix_anon.client.release import ReleaseOptions
    from verix_anon.client.release import release as publish
    from verix_anon.client.release.gates import refused
    from verix_anon.client.release.preview import Preview

    _check_wanted(out, preview, sheet)
    inputs = [delivery, manifest, verdict, table]
    check_outputs([out, sheet, preview], inputs, overwrite=overwrite)
    kept = load_manifest(manifest, passphrase_file)
    loaded = load_table(table, kept.reading, reading)
    with progress_bar(quiet) as progress:
        options = ReleaseOptions(
            person=person,
            representation=_general(represent or []),
            representations=pairs([o for o in represent or [] if "=" in o]),
            round_to=steps_by_column(round_to or []),
            top_code=ranges_by_column(top_code or [], _moments(kept)),
            shuffle=shuffle,
            force=force,
            l=_asked(l, kept),
            cap=_asked(cap, kept),
            t=_asked(t, kept),
            require=numbers_by_column(require or []),
            progress=progress,
        )
        ledger = Ledger.default()
        released = publish(
            delivery,
            kept,
            verdict,
            table=loaded,
            out=out,
            sheet=sheet,
            overwrite=overwrite,
            # A look is at each record in its place, and at what is not reached, too.
            options=replace(options, shuffle=False, require={}) if preview else options,
            ledger=LookedAt(ledger.path) if preview else ledger,
            log=log or manifest.parent / "audit.jsonl",
        )
    if preview is None:
        _tell(released, kept, f"Written to {out}.", as_json=as_json)
        return
    found = Preview.of(released, options, kept, loaded.table)
    write_text(found.to_json(), preview, overwrite=overwrite)
    _tell(released, kept, f"Nothing is published; what would be is in {preview}.", as_json=as_json)
    if found.missed:
        raise refused(found.missed)


def _check_wanted(out: str | None, preview: Path | None, sheet: Path | None) -> None:
    if (out is None) == (preview is None):
        raise TableError(
            "say with --out where the table goes, or with --preview where a look at it goes"
        )
    if preview is not None and sheet is not None:
        raise TableError("--sheet is for a table that is published; --preview holds its facts")


def _tell(released: "Released[Any]", kept: "Manifest", done: str, *, as_json: bool) -> None:
    from verix_anon.client.seen import taken

    giveaways = released.sheet.giveaways
    for warning in (*released.overridden, *released.warnings):
        if as_json or warning not in giveaways:
            print(f"Warning: {printable(warning)}", file=sys.stderr)
    said = [f"Warning: {printable(line)}" for line in giveaways]
    lines = [*said, *facts(released.sheet.facts()), printable(taken(kept)), done]
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


def _moments(manifest: "Manifest") -> dict[str, str]:
    """The datetime columns, and the unit they count in, as numpy calls it."""
    from verix_anon.protocol.generalize import NUMPY_UNITS

    return {c.name: NUMPY_UNITS[c.unit] for c in manifest.quasi if c.unit is not None}
