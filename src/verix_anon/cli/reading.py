"""How a table is read: one group of options, the same for init, prepare and release."""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verix_anon.cli.pairs import pairs
from verix_anon.cli.show import printable
from verix_anon.errors import TableError

if TYPE_CHECKING:
    from verix_anon.files.tables import Read, Reading

__all__ = ["Given", "load_open", "load_table", "read_text", "tell_reading", "with_reading"]

PANEL = "Reading the table"
Given = dict[str, object]
"""The fields of `Reading` that were given as options."""


def _option(kind: Any, text: str, *names: str, **more: Any) -> Any:
    option = typer.Option(*names, help=text, rich_help_panel=PANEL, **more)
    return Annotated[kind | None, option]


OPTIONS = {
    "delimiter": _option(str, "What stands between columns, such as ';' or tab."),
    "quote": _option(str, "What stands around fields that need it; or none."),
    "encoding": _option(str, "The encoding, such as windows-1252."),
    "decimal": _option(str, "The decimal mark: a point or a comma."),
    "thousands": _option(str, "What groups digits: . or , or ' or a space; or none."),
    "date_format": _option(
        list[str],
        "The form of dates, such as dd.mm.yyyy, or COLUMN=FORM; may be repeated.",
        metavar="FORM",
    ),
    "skip": _option(int, "So many lines stand above the header.", min=0),
    "footer": _option(int, "So many lines stand below the last row.", min=0),
    "null": _option(
        list[str], "A word that means missing, in place of the usual ones; may be repeated."
    ),
    "leading_zeros": _option(
        bool,
        "A leading zero keeps a column text, as it does if nothing is said.",
        "--leading-zeros/--no-leading-zeros",
    ),
    "sheet": _option(str, "The sheet of a spreadsheet that is the table.", metavar="NAME"),
    "query": _option(str, "What to ask a database for, in place of a table.", metavar="SQL"),
}
FIELDS = {"null": "null_tokens", "leading_zeros": "leading_zeros_are_text"}
"""Options that are called otherwise than the field they fill."""
WORDS = {
    ("delimiter", "tab"): "\t",
    ("delimiter", "\\t"): "\t",
    ("thousands", "none"): "",
    ("quote", "none"): "",
}
"""What a shell makes hard to write."""


def _given(options: dict[str, Any]) -> Given:
    """The fields that were given."""
    forms: list[str] = options.pop("date_format") or []
    found: Given = {
        FIELDS.get(name, name): value
        if isinstance(value, list)
        else WORDS.get((name, value), value)
        for name, value in options.items()
        if value is not None
    }
    if dates := pairs([form for form in forms if "=" in form]):
        found["dates"] = dates
    if plain := [form for form in forms if "=" not in form]:
        found["date_format"] = plain[-1]
    return found


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """The command with these options in place of its parameter `reading`, which gets them all."""
    own = signature(command)
    parameters = [one for name, one in own.parameters.items() if name != "reading"]
    parameters += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in OPTIONS.items()
        # `release --sheet` is the privacy sheet's file; the manifest knows the table's sheet.
        if name not in own.parameters
    ]

    @wraps(command)
    def run(**values: Any) -> None:
        given = {name: values.pop(name) for name in OPTIONS if name not in own.parameters}
        command(**values, reading=_given(given))

    # What typer reads; through __wrapped__ it would find the command's own.
    del run.__wrapped__
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def load_table(path: str, known: "Reading | Path | None", given: Given) -> "Read":
    """The owner's table, read as a manifest or a roles file says, but for what is given; say how.

    The columns of a Parquet file are not read yet.
    """
    from verix_anon.client.table.draft import read_reading

    known = read_reading(known) if isinstance(known, Path) else known
    read = load_open(path, known, given, whole=False).settled()
    tell_reading(path, read)
    return read


def load_open(path: str, known: "Reading | None", given: Given, *, whole: bool = True) -> "Read":
    """The same, though there may be questions."""
    from verix_anon.files.tables import Reading, read_table_as

    return read_table_as(path, (known or Reading()).but(**given), whole=whole)


def tell_reading(path: str, read: "Read") -> None:
    """Say on stderr how the table was read, and what is to be known of it or to be asked."""
    from verix_anon.files.tables import shown_url

    said = read.reading.said()
    lines = [f"Read {shown_url(path)}: {said}."] if said else []
    lines += [f"Note: {note}." for note in read.notes]
    for line in [*lines, *(f"Question: {question}." for question in read.questions)]:
        print(printable(line), file=sys.stderr)


def read_text(path: Path, what: str) -> str:
    """Read a file that an earlier command wrote."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise TableError(f"the {what} {path} cannot be read") from None
