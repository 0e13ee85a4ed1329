"""The owner's last step: release."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.pairs import numbers_by_column, ranges_by_column
from verix_anon.cli.reading import LeadingZeros, NullTokens, load_table
from verix_anon.cli.secrets import PassphraseFile, load_manifest
from verix_anon.cli.show import AsJson, facts, printable, say
from verix_anon.cli.writing import check_outputs, write_text

if TYPE_CHECKING:
    from verix_anon.client.manifest import Manifest
    from verix_anon.client.release import Released

__all__ = ["release"]


@app.command(
    epilog="Example: [bold]verix-anon release job/delivery --manifest job/manifest.verix"
    " --verdict job/verdict.json --table people.csv --out released.parquet[/bold]"
)
def release(
    delivery: Annotated[str, typer.Argument(help="The delivery's folder or URL.")],
    manifest: Annotated[Path, typer.Option("--manifest", "-m", help="The manifest of the job.")],
    table: Annotated[str, typer.Option("--table", "-t", help="The table that was prepared.")],
    out: Annotated[
        str, typer.Option("--out", "-o", help="The table to publish: .csv, .tsv or .parquet.")
    ],
    verdict: Annotated[
        Path | None, typer.Option("--verdict", "-v", help="What verify --out wrote.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(help="The column that names people, if one may have several records."),
    ] = None,
    representation: Annotated[
        str,
        typer.Option(
            "--as",
            help="How values read: interval, bounds, midpoint or mean.",
            rich_help_panel="Values",
        ),
    ] = "interval",
    round_to: Annotated[
        list[str] | None,
        typer.Option(
            "--round",
            help="Round bounds outwards: COLUMN=STEP; days for dates.",
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
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Without a matching VERIFIED verdict, or once more; says what it is."
        ),
    ] = False,
    null: NullTokens = None,
    leading_zeros: LeadingZeros = True,
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
) -> None:
    """Turn a verified delivery into a table to publish, and measure what it reveals.

    Traps are taken out, k is checked again on the genuine records, and the rows stand as in
    the table that was prepared.
    """
    from verix_anon.client.ledger import Ledger
    from verix_anon.client.release import ReleaseOptions
    from verix_anon.client.release import release as publish

    check_outputs([out, sheet], [delivery, manifest, verdict, table], overwrite=overwrite)
    kept = load_manifest(manifest, passphrase_file)
    released = publish(
        delivery,
        kept,
        verdict,
        table=load_table(table, null, leading_zeros),
        out=out,
        overwrite=overwrite,
        options=ReleaseOptions(
            person=person,
            representation=representation,
            round_to=numbers_by_column(round_to or []),
            top_code=ranges_by_column(top_code or [], _moments(kept)),
            shuffle=shuffle,
            force=force,
        ),
        ledger=Ledger.default(),
    )
    for warning in (*released.overridden, *released.warnings):
        print(f"Warning: {printable(warning)}", file=sys.stderr)
    if sheet is not None:
        write_text(released.to_json() + "\n", sheet, overwrite=overwrite)
    say(released.to_json() if as_json else "\n".join([*_lines(released), f"Written to {out}."]))


def _lines(released: "Released[object]") -> Iterator[str]:
    """The privacy sheet, and what reaching k took."""
    yield from facts(released.sheet.facts())
    if released.n_coarsened:
        yield (
            f"{released.n_coarsened:,} records were coarsened to reach k without the traps; the"
            f" largest class so made holds {released.largest_coarsened:,}."
        )


def _moments(manifest: "Manifest") -> dict[str, str]:
    """The datetime columns, and the unit they count in, as numpy calls it."""
    from verix_anon.protocol.generalize import NUMPY_UNITS

    return {c.name: NUMPY_UNITS[c.unit] for c in manifest.quasi if c.unit is not None}
