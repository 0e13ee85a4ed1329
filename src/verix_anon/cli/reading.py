"""How a CSV table is read; the same options must be given to prepare and to release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LeadingZeros", "NullTokens", "load_table", "read_text"]

NullTokens = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        help="A word that means missing, in place of the usual ones; may be repeated.",
        rich_help_panel="Reading CSV",
    ),
]
LeadingZeros = Annotated[
    bool,
    typer.Option(
        "--leading-zeros/--no-leading-zeros",
        help="A leading zero keeps a column text.",
        rich_help_panel="Reading CSV",
    ),
]


def load_table(path: str, null: list[str] | None, leading_zeros: bool) -> "pa.Table":
    """Read the owner's table."""
    from verix_anon.files.tables import NULL_TOKENS, Reading, read_table

    reading = Reading(null_tokens=null or NULL_TOKENS, leading_zeros_are_text=leading_zeros)
    return read_table(path, reading)


def read_text(path: Path, what: str) -> str:
    """Read a file that an earlier command wrote."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise TableError(f"the {what} {path} cannot be read") from None
