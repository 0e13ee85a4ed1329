"""Define the options that several commands share, and read their values.

First come the options, by their panel in the help, and then the options with a value for each
column. Last come those that say how a table is read: init, explore, prepare, release and prove
share them as one group.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verix_anon.cli.app import left_out
from verix_anon.errors import TableError
from verix_anon.fields import printable

if TYPE_CHECKING:
    from verix_anon.client.manifest import Manifest
    from verix_anon.client.series import Series as ClientSeries
    from verix_anon.files.tables import Read, Reading
    from verix_anon.protocol.signing import SigningKey

VARIABLE = "VERIX_PASSPHRASE"
KEY_VARIABLE = "VERIX_KEY_PASSPHRASE"


def passphrase(file: Path | None, *, confirm: bool, of: str = "manifest") -> str:
    """The passphrase of a manifest, series or key: from a file, the environment or a prompt.

    An empty one is refused.
    """
    variable = KEY_VARIABLE if of == "key" else VARIABLE
    if file is not None:
        found = first_line(file, "passphrase")
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
        why = "--seal needs a passphrase" if confirm else f"the {of} is sealed"
        given = "--key-passphrase-file" if of == "key" else "--passphrase-file"
        raise TableError(f"{why}; give {given} or ${variable}")
    if not found:
        raise TableError("the passphrase is empty")
    return found


def first_line(file: Path, what: str) -> str:
    """Read a secret from the first line of its file; it may be empty."""
    try:
        return file.read_text(encoding="utf-8").split("\n", 1)[0].rstrip("\r")
    except (OSError, UnicodeDecodeError):
        raise TableError(f"the {what} file {file} cannot be read") from None


_HELD: dict[str, Any] | None = None


@contextmanager
def read_once() -> Iterator[dict[str, Any]]:
    """Keep manifests and tables that are read in the block, by their paths; `run` adds its own."""
    global _HELD
    _HELD = {}
    try:
        yield _HELD
    finally:
        _HELD = None


def load_manifest(path: Path, file: Path | None) -> "Manifest":
    """Read a manifest, asking for the passphrase only if it is sealed."""
    from verix_anon.client.manifest import read_manifest
    from verix_anon.client.owner_files import is_sealed

    if not path.is_file():
        raise TableError(f"there is no manifest {path}; prepare wrote it as manifest.verix")
    held = {} if _HELD is None else _HELD
    if str(path) not in held:
        secret = passphrase(file, confirm=False) if is_sealed(path) else None
        held[str(path)] = read_manifest(path, passphrase=secret)
    found: Manifest = held[str(path)]
    return found


def load_key(path: Path, file: Path | None) -> "SigningKey":
    """Read a private key, asking for the passphrase only if it is sealed."""
    from verix_anon.files.keys import is_sealed, read_signing_key

    load_envelopes()
    secret = passphrase(file, confirm=False, of="key") if is_sealed(path) else None
    return read_signing_key(path, passphrase=secret)


def load_series(folder: Path, file: Path | None, key: "SigningKey | None" = None) -> "ClientSeries":
    """Return a series, asking for the passphrase only if it is sealed."""
    from verix_anon.client.series import MEMORY
    from verix_anon.client.series import Series as ClientSeries
    from verix_anon.client.series.memory import is_sealed

    secret = passphrase(file, confirm=False, of="series") if is_sealed(folder / MEMORY) else None
    return ClientSeries(folder, passphrase=secret, key=key)


def load_envelopes() -> None:
    """Import the library of signed envelopes without the client of a cloud.

    When imported, it looks for the clients of all clouds, for ways to sign that we do not use.
    """
    with left_out("boto3"):
        import securesystemslib.dsse  # noqa: F401


def option(text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """An option with this help; it is called as its parameter unless names are given."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


output_option = partial(option, panel="Output")
receipt_option = partial(option, panel="Receipt")
secrets_option = partial(option, panel="Secrets")
service_option = partial(option, panel="Service")
spark_option = partial(option, panel="Spark")


def overwrite_option(what: str) -> Any:
    """--overwrite, which replaces such a result."""
    return output_option(f"Replace {what}.", "--overwrite")


DeliveryFolder = Annotated[str, typer.Argument(help="The delivery's folder or URL.")]
SourceTable = Annotated[str, typer.Argument(help="The table: a file such as people.csv, or a URL.")]
ManifestFile = Annotated[Path, option("The job's manifest.verix.", "--manifest", "-m")]
Series = Annotated[
    Path | None, option("The folder of the series that the table belongs to.", metavar="FOLDER")
]
AsJson = Annotated[bool, output_option("Print the result as JSON.", "--json")]
Page = Annotated[
    bool, output_option("Also write check.html beside it: a page that checks it.", "--page")
]
PageLanguage = Annotated[
    str,
    output_option("The language of the page, such as en or de.", "--language", metavar="LANGUAGE"),
]
Overwrite = Annotated[bool, overwrite_option("a delivery that is there")]
Priority = Annotated[
    list[str] | None,
    option("How fine a column stays: COLUMN=fine, normal, coarse or a number; several by commas."),
]
FormOption = Annotated[
    str | None,
    output_option(
        "The form of a .csv: plain, excel, excel-de, or parts such as"
        " delimiter=semicolon,decimal=comma,encoding=utf-8-bom. Default: that of the input.",
        "--form",
    ),
]
Quiet = Annotated[bool, output_option("Show no progress.", "--quiet", "-q")]
PassphraseFile = Annotated[
    Path | None,
    secrets_option(f"A file with the passphrase in line 1. Default: ${VARIABLE}, or a question."),
]
KeyPassphraseFile = Annotated[
    Path | None,
    secrets_option(
        f"A file with the key's passphrase in line 1. Default: ${KEY_VARIABLE}, or a question."
    ),
]


def pairs(options: Sequence[str]) -> dict[str, str]:
    """COLUMN=VALUE, split at the last equals sign: a name may hold one, a value does not."""
    found = {}
    for option in options:
        name, equals, value = option.rpartition("=")
        if not equals:
            raise TableError(f"{option!r} is not of the form COLUMN=VALUE")
        found[name] = value
    return found


def several(options: Sequence[str]) -> list[str]:
    """COLUMN=VALUE,COLUMN=VALUE in parts; a name may hold commas and equals signs."""
    parts = (re.findall(r".+?=[^=,]*(?:,|$)|.+", option) for option in options)
    return [part.removesuffix(",") for found in parts for part in found]


def numbers_by_column(options: Sequence[str]) -> dict[str, float]:
    """COLUMN=NUMBER."""
    return {name: _number(name, value) for name, value in pairs(options).items()}


def share_of(text: str) -> float:
    """A share: 2% or 0.02."""
    return _number("--suppress", text.removesuffix("%")) / (100 if text.endswith("%") else 1)


def steps_by_column(options: Sequence[str] | None) -> dict[str, float | str]:
    """COLUMN=NUMBER, or COLUMN=WORD; several with commas between them."""
    return {
        name: value if value.isalpha() else _number(name, value)
        for name, value in pairs(several(options or [])).items()
    }


def bins_by_column(options: Sequence[str], quasi: Sequence[str]) -> dict[str, float | str]:
    """COLUMN=WIDTH, several with commas between them; `auto` is for all quasi-identifiers."""
    parts = several([re.sub("^auto,(.+)", r"\1,auto", option) for option in options])
    every = dict.fromkeys(quasi, "auto") if "auto" in parts else {}
    return {**every, **pairs([part for part in parts if part != "auto"])}


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TableError(f"{text!r} for {name!r} is not a number") from None


Given = dict[str, object]
"""The fields of `Reading` that were given as options."""


def _reads(kind: Any, text: str, *names: str, **more: Any) -> Any:
    return Annotated[kind | None, option(text, *names, panel="Reading the table", **more)]


OPTIONS = {
    "delimiter": _reads(str, "The character between columns, such as ';' or tab."),
    "quote": _reads(str, "The quote around fields, such as '\"', or none."),
    "encoding": _reads(str, "The encoding, such as windows-1252."),
    "decimal": _reads(str, "The decimal mark: a point or a comma."),
    "thousands": _reads(str, "The mark between groups of digits: . or , or ' or a space; or none."),
    "date_format": _reads(
        list[str],
        "The form of dates, such as dd.mm.yyyy, or COLUMN=FORM; may be repeated.",
        metavar="FORM",
    ),
    "skip": _reads(int, "How many lines stand above the header.", min=0),
    "footer": _reads(int, "How many lines stand below the last row.", min=0),
    "null": _reads(
        list[str], "A word for a missing value, instead of the usual ones; may be repeated."
    ),
    "leading_zeros": _reads(
        bool,
        "Whether a column with values such as 007 stays text; by default it does.",
        "--leading-zeros/--no-leading-zeros",
    ),
    "sheet": _reads(str, "The sheet of the spreadsheet to read.", metavar="NAME"),
    "query": _reads(str, "A query to a database, instead of one of its tables.", metavar="SQL"),
}
FIELDS = {"null": "null_tokens", "leading_zeros": "leading_zeros_are_text"}
"""Options whose name is not that of the field they fill."""


def _given(options: dict[str, Any]) -> Given:
    from verix_anon.files.table_form import from_typed

    forms: list[str] = options.pop("date_format") or []
    found: Given = {
        FIELDS.get(name, name): from_typed(name, value) if isinstance(value, str) else value
        for name, value in options.items()
        if value is not None
    }
    if dates := pairs([form for form in forms if "=" in form]):
        found["dates"] = dates
    if plain := [form for form in forms if "=" not in form]:
        found["date_format"] = plain[-1]
    return found


def taking(parameters: Iterable[Parameter], command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with these parameters, as typer reads them."""
    given = [*parameters]
    # With __wrapped__, typer would find the parameters of the inner function.
    command.__dict__.pop("__wrapped__", None)
    command.__signature__ = Signature(given)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in given}
    return command


def with_reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Replace the command's parameter `reading` by the options, and pass their values in it."""
    own = signature(command).parameters
    parameters = [one for name, one in own.items() if name != "reading"]
    parameters += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in OPTIONS.items()
    ]

    @wraps(command)
    def run(**values: Any) -> Any:
        given = {name: values.pop(name) for name in OPTIONS}
        import pyarrow as pa

        # Arrow looks for pandas once, when it is given values: a quarter of a second.
        with left_out("pandas"):
            pa.array([0])
        return command(**values, reading=_given(given))

    return taking(parameters, run)


def load_table(path: str, known: "Reading | Path | None", given: Given) -> "Read":
    """Load the owner's table as a manifest or a roles file says, and say on stderr how.

    Options in `given` win over both. The columns of a Parquet file are not read yet.
    """
    from verix_anon.client.table.roles_file import read_reading

    held = {} if _HELD is None else _HELD
    if path not in held:
        known = read_reading(known) if isinstance(known, Path) else known
        held[path] = load_open(path, known, given, whole=False).settled()
        tell_reading(path, held[path])
    found: Read = held[path]
    return found


def load_open(path: str, known: "Reading | None", given: Given, *, whole: bool = True) -> "Read":
    """Load a table that may still have questions, without saying how it was read."""
    from verix_anon.files.tables import Reading, read_table_as

    return read_table_as(path, (known or Reading()).but(**given), whole=whole)


def tell_reading(path: str, read: "Read") -> None:
    """Say on stderr how the table was read, with its notes and open questions."""
    from verix_anon.files.tables import shown_url

    said = read.reading.said()
    lines = [f"Read {shown_url(path)}: {said}."] if said else []
    lines += [f"Note: {note}." for note in read.notes]
    for line in [*lines, *(f"Question: {question}." for question in read.questions)]:
        print(printable(line), file=sys.stderr)
