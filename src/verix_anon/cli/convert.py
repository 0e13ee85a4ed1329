"""The command `convert`: write a released table as another kind of file."""

from typing import Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.options import FormOption, option, overwrite_option
from verix_anon.cli.output import say


@app.command(
    epilog="Example: [bold]verix-anon convert released.csv --out released.xlsx[/bold]",
)
def convert(
    table: Annotated[str, typer.Argument(help="What release wrote, beside its NAME.schema.json.")],
    out: Annotated[
        str, option("The other file, by its ending: .csv, .parquet, .xlsx, .sav.", "--out", "-o")
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
