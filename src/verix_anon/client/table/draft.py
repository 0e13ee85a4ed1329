"""A first guess at the roles of a table's columns, with a reason for each, to be edited.

The guess is written as TOML; `read_roles` reads it back after the owner corrected it.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.client.table.encode import arrow_columns
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.table.person import repeats
from verix_anon.client.table.roles import Declared, Missing, TableRole
from verix_anon.client.table.sections import comment, reading_lines, toml
from verix_anon.client.table.task import Task
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.store import path_text
from verix_anon.files.tables import Read, Reading, shown_url
from verix_anon.files.tables.memory import held
from verix_anon.protocol.contract import Kind

__all__ = ["USUAL_K", "Guess", "draft", "guess_roles", "read_options", "read_reading", "read_roles"]

IDENTIFIER_NAME = re.compile(
    r"(^|_)(id|uuid|name|surname|email|e_?mail|phone|ssn|passport|iban|nr|number)($|_)", re.I
)
SENSITIVE_NAME = re.compile(
    r"(diagnos|disease|condition|religio|salary|wage|hiv|treatment|medication|crime|politic)", re.I
)
TARGET_NAME = re.compile(r"^(target|label|class|y|outcome|income|default|churn|readmitted)$", re.I)
USUAL_K = 5
FEW = 50
"""Numbers with no more values than this are not taken for those of people, whatever their name."""
SECTIONS = ("columns", "kinds", "orders", "diversity", "hierarchies")
OPTIONAL = ("contract", "report", "reading")
KNOWN = frozenset({"k", "target", "positive", "missing", *OPTIONAL, *SECTIONS})
HINTS = (
    "[report]                       # what the audit report names; never sent",
    '# table_name = "Admissions 2024"',
    '# controller = "..."           # who answers for the table',
    '# processor = "..."            # who anonymizes it',
    "",
    "[kinds]",
    '# "postcode" = "categorical"   # or "numeric", "datetime"',
    "",
    "[hierarchies]",
    '# "postcode" = "prefix"        # or "date", or a file: value;level 1;level 2;...',
    "",
    "[orders]",
    '# "education" = ["school", "college", "university"]',
)
"""Sections that most tables do not need, each with an example."""
ASKED = "every class has l values of it; or cap, or t"
CONTRACT = frozenset({"rule", "importance", "min_leaf", "traps", "clear", "places"})
"""What the section [contract] may hold beside task and person: options of prepare()."""
REPORT = frozenset({"table_name", "controller", "processor"})
"""What the section [report] may hold: options of prepare() as well."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The guessed role of one column, and why."""

    name: str
    role: TableRole
    reason: str


def guess_roles(table: object, target: str | None = None) -> list[Guess]:
    """A role for every column; the target is the one named, or the likeliest binary one, if any."""
    arrays = arrow_columns(table)
    reason = "as you said"
    if target is None:
        target, reason = _likeliest_target(arrays)
    elif target not in arrays:
        raise TableError(f"there is no column {target!r}")
    elif (n := _n_distinct(arrays[target])) is not None and n < 2:
        raise TableError(f"the target must have two values or more; {target!r} has {n:,}")
    return [
        Guess(name, TableRole.TARGET, reason) if name == target else _guess(name, array)
        for name, array in arrays.items()
    ]


def _likeliest_target(arrays: Mapping[str, pa.Array]) -> tuple[str | None, str]:
    """A binary column, and why it may be the target."""
    binary = [name for name, array in arrays.items() if _n_distinct(array) == 2]
    if not binary:
        return None, "no column has exactly two values"
    named = [name for name in binary if TARGET_NAME.match(name)]
    if named:
        return named[-1], "named like a target, with two values"
    return binary[-1], "a mere guess: the last column with two values; is it what to preserve?"


def _n_distinct(array: pa.Array) -> int | None:
    """How many values a column has; None for a type whose values are not told apart."""
    try:
        return len(pc.unique(array.drop_null()))
    except pa.ArrowNotImplementedError:
        return None


def _guess(name: str, array: pa.Array) -> Guess:
    n_rows = len(array)
    if array.null_count == n_rows:
        return Guess(name, TableRole.KEPT, "has no values, so there is nothing to anonymize")
    n_distinct = _n_distinct(array)
    if n_distinct is None:
        return Guess(name, TableRole.KEPT, f"type {array.type} cannot be a quasi-identifier")
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    is_whole = pa.types.is_integer(array.type)
    if is_text and IDENTIFIER_NAME.search(name):
        return Guess(name, TableRole.IDENTIFIER, "named like something that names people")
    if is_text and 2 * n_distinct > n_rows:
        return Guess(name, TableRole.IDENTIFIER, f"text, {n_distinct:,} values in {n_rows:,} rows")
    if IDENTIFIER_NAME.search(name) and is_whole and n_distinct > FEW:
        reason = f"named like an identifier, {n_distinct:,} values in {n_rows:,} rows"
        return Guess(name, TableRole.IDENTIFIER, reason)
    if is_whole and n_distinct == n_rows and n_rows > 1:
        return Guess(name, TableRole.IDENTIFIER, "a different whole number in every row")
    if SENSITIVE_NAME.search(name):
        return Guess(name, TableRole.SENSITIVE, "named like something people keep to themselves")
    return Guess(name, TableRole.QUASI, f"{array.type}, {n_distinct:,} values")


def draft(table: object, source: str, target: str | None = None) -> str:
    """The guess as a TOML file with a comment for every column, and how the table was read."""
    read = table if isinstance(table, Read) else None
    # A stream of Arrow data can be read once only.
    table = held(table) if read is None else read.table
    arrays = arrow_columns(table)
    guesses = guess_roles(table, target)
    chosen = next((guess for guess in guesses if guess.role is TableRole.TARGET), None)
    named = '# target = "..."  # no column has two values; name the one to preserve, if any'
    if chosen is not None:
        named = f"target = {toml(chosen.name)}  # {chosen.reason}"
    lines = [
        f"# Drafted by `verix-anon init` from {comment(shown_url(source))}. Check every line.",
        "# identifier: dropped for good. kept, sensitive: never sent, joined back at release.",
        "# quasi: sent, as positions, and generalized. target: what is to be preserved.",
        f"k = {USUAL_K}",
        named,
        '# positive = "..."   # which of the target\'s values is class 1',
        'missing = "mark"      # said in every cell of their class; or "impute", or "error"',
        "",
        "[columns]",
        *_column_lines(guesses),
        "",
        "[contract]",
        '# rule = "importance-spread"   # or "variance-reduction", the paper\'s',
        'task = "none"                  # leave this out once a target is named'
        if chosen is None
        else '# task = "classes"             # or "quantity"; else what the target looks like',
        _person_line([g for g in guesses if g.role is TableRole.IDENTIFIER], arrays),
        '# importance = "auto"          # or "uniform", or { "age" = 1.0, "zip" = 0.5, ... }',
        "",
        *HINTS,
        *_order_lines(guesses, arrays),
        "",
        "[diversity]",
        f"# {toml(chosen.name if chosen else 'diagnosis')} = {{ l = 2 }}   # {ASKED}",
        "",
        *([] if read is None else reading_lines(read)),
    ]
    return "\n".join(lines)


def _column_lines(guesses: list[Guess]) -> list[str]:
    return [
        f"{toml(guess.name)} = {toml(guess.role.value)}  # {comment(guess.reason)}"
        for guess in guesses
        if guess.role is not TableRole.TARGET
    ]


def _order_lines(guesses: list[Guess], arrays: Mapping[str, pa.Array]) -> list[str]:
    """The orders that columns have of their own, such as that of the codes of an SPSS file."""
    lines = []
    for guess in guesses:
        array = arrays[guess.name]
        is_ordered = pa.types.is_dictionary(array.type) and array.type.ordered
        if is_ordered and guess.role is TableRole.QUASI:
            labels = array.dictionary.cast(pa.large_string()).to_pylist()
            shown = ", ".join(toml(label) for label in labels if label is not None)
            lines.append(f"{toml(guess.name)} = [{shown}]  # the column's own order")
    return lines


def _person_line(identifiers: list[Guess], arrays: Mapping[str, pa.Array]) -> str:
    """Who is a person, as far as identifiers tell."""
    repeated = next((g.name for g in identifiers if repeats(arrays[g.name])), None)
    if repeated is None:
        return '# person = "record"            # or the column that tells people apart'
    why = 'fewer values than rows: k counts people; or "record" if each row is one'
    return f"person = {toml(repeated)}  # {why}"


def read_roles(path: str | os.PathLike[str]) -> tuple[int, Declared]:
    """Read k and the declared roles from a file that `verix-anon init` drafted."""
    return _declared(_read(path), Path(path_text(path)).parent)


def read_options(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the options of prepare() that stand in the file's sections [contract] and [report]."""
    fields = _read(path)
    contract, report = (_section(fields, name).values for name in ("contract", "report"))
    return {name: value for name, value in contract.items() if name in CONTRACT} | dict(report)


def read_reading(path: str | os.PathLike[str]) -> Reading:
    """Read how the table is read, from the file's section [reading]."""
    return Reading.from_json(_section(_read(path), "reading"))


def _read(path: str | os.PathLike[str]) -> Fields:
    try:
        document = tomllib.loads(Path(path_text(path)).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TableError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"{path} cannot be read ({error})") from None
    fields = Fields(document, str(path), TableError)
    fields.only((), optional=KNOWN)
    _section(fields, "contract").only((), optional={*CONTRACT, "task", "person"})
    _section(fields, "report").only((), optional=REPORT)
    return fields


def _declared(fields: Fields, beside: Path) -> tuple[int, Declared]:
    columns, kinds, orders, diversity, hierarchies = (_section(fields, name) for name in SECTIONS)
    contract = _section(fields, "contract")
    roles = {name: columns.choice(name, TableRole) for name in columns.values}
    if TableRole.TARGET in roles.values():
        raise fields.fail(f'{columns.where}: the target is named by target = "..."')

    def named(role: TableRole) -> list[str]:
        return [name for name, found in roles.items() if found is role]

    k = fields.whole("k") if fields.has("k") else USUAL_K
    return k, Declared(
        target=fields.text("target") if fields.has("target") else None,
        quasi=named(TableRole.QUASI),
        identifier=named(TableRole.IDENTIFIER),
        kept=named(TableRole.KEPT),
        sensitive=named(TableRole.SENSITIVE),
        kinds={name: kinds.choice(name, Kind) for name in kinds.values},
        orders={name: orders.texts(name) for name in orders.values},
        hierarchies={
            name: Hierarchy.of(hierarchies.text(name), beside) for name in hierarchies.values
        },
        diversity={name: diversity.inner(name).all_numbers() for name in diversity.values},
        positive=fields.text("positive") if fields.has("positive") else None,
        missing=fields.choice("missing", Missing) if fields.has("missing") else Missing.MARK,
        task=contract.choice("task", Task) if contract.has("task") else None,
        person=contract.text("person") if contract.has("person") else None,
    )


def _section(fields: Fields, name: str) -> Fields:
    return fields.inner(name) if fields.has(name) else Fields({}, name, fields.fail)
