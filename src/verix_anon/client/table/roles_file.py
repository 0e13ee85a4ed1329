"""Draft a roles file of a table's columns, as TOML for the owner to edit, and read it back.

Editing one for the owner is `roles_editor`'s.
"""

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pyarrow as pa

from verix_anon.client.arguments import FilePath, is_path
from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.guess import Guesses, guess_roles
from verix_anon.client.table.hierarchies import DATE, PREFIX, Hierarchy
from verix_anon.client.table.roles import Declared, Missing
from verix_anon.client.table.task import TableRole, Task
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.atomic_write import check_free, write_bytes, written_aside
from verix_anon.files.store import is_url, path_text
from verix_anon.files.tables import Read, Reading, read_table_as, shown_url
from verix_anon.files.tables.table_sources import collected
from verix_anon.protocol.contract import Kind

USUAL_K = 5
SECTIONS = ("columns", "kinds", "orders", "diversity", "hierarchies")
OPTIONAL = ("contract", "report", "reading", "priorities", "derived", "release", "series")
KNOWN = frozenset({"table", "k", "target", "positive", "missing", *OPTIONAL, *SECTIONS})
CONTRACT = frozenset({"rule", "importance", "min_leaf", "traps", "clear", "places"})
"""What the section [contract] may hold beside task and person: options of prepare()."""
REPORT = frozenset({"table_name", "controller", "processor"})
"""What the section [report] may hold: options of prepare() as well."""
KIND_HINT = '# "postcode" = "categorical"   # or "numeric", "datetime"'
HIERARCHY_HINT = '# "postcode" = "prefix"        # or "date", or a file: value;level 1;level 2;...'
ORDER_HINT = '# "education" = ["school", "college", "university"]'
ROUNDED = "the low end of its interval; without this line exact amounts are published"
NAMED = {
    PREFIX: "classes are named by the first characters that they share",
    DATE: "classes are named by months, quarters or years, not by the first and last day",
}
"""What a hierarchy does at release."""
TEMPLATE = Template(
    (files("verix_anon.client.table") / "roles_draft.toml").read_text("utf-8").removesuffix("\n")
)
"""The template of a draft. A part with lines of its own ends in a line break, or is empty."""


def draft(
    table: object,
    *,
    target: str | None = None,
    reading: Reading | None = None,
    out: FilePath | None = None,
) -> str:
    """Draft the roles of a table's columns: a guess and its reason for each, to be edited.

    Args:
        table: What prepare() takes: a table in memory, or the file of one.
        target: The column to preserve, if it is known.
        reading: How to read the file, where that is not what would be recognised.
        out: Write the draft here too; a file that is there is not replaced.

    Returns:
        The text of a roles file. Check every line, and give the file to prepare() as `roles`.

    Raises:
        TableError: The table cannot be read, or the file is there.

    Examples:
        >>> text = verix_anon.draft("people.csv", target="income")
        >>> text.splitlines()[3]
        'k = 5'
    """
    if out is not None:
        check_free(out, overwrite=False)
    if not is_path(table):
        text = roles_text(table, "a table in memory", target)
    else:
        source = path_text(table)
        beside = None if out is None else Path(out).parent
        text = roles_text(read_table_as(source, reading), source, target, beside=beside)
    if out is not None:
        with written_aside(out, overwrite=False, folder=False, private=True) as aside:
            write_bytes(aside, text.encode())
    return text


def roles_text(
    table: object,
    source: str,
    target: str | None = None,
    *,
    guesses: Guesses | None = None,
    beside: Path | None = None,
) -> str:
    """Return a roles file with a guess and its reason for every column, and how it was read.

    Args:
        table: A table, or what was read and how.
        source: Where the table came from; a URL's password is not repeated.
        target: The column to preserve, if it is known.
        guesses: The guesses, if they were made before.
        beside: The folder that the roles file will lie in, if it names the table.
    """
    read = table if isinstance(table, Read) else None
    # A stream of Arrow data can be read once only.
    table = collected(table) if read is None else read.table
    guesses = guesses or guess_roles(table, target)
    chosen, placed = guesses.target, []
    if beside is not None and not is_url(source):
        # A URL, which may hold a password, is not repeated.
        place = _toml(place_from(source, beside))
        placed = [f"table = {place}  # from the folder of this file; the desk finds it so"]
    columns, kinds, hierarchies, derived = [], [], [], []
    for guess in guesses.columns:
        if guess.role is not TableRole.TARGET:
            columns.append(_line(guess.name, guess.role.value, guess.reason))
        if guess.is_kind_said and guess.kind is not None:
            kinds.append(_line(guess.name, guess.kind.value, guess.reason))
        if guess.width is not None:
            made = f"{{ from = {_toml(guess.name)}, width = {guess.width} }}"
            derived.append(f"{_toml(guess.name)} = {made}  # {ROUNDED}")
        if guess.hierarchy is not None:
            line = _line(guess.name, guess.hierarchy, NAMED[guess.hierarchy])
            hierarchies.append(line if guess.is_hierarchy_likely else f"# {line}")
    task = '# task = "classes"             # or "quantity"; else what the target looks like'
    if chosen is None:
        task = 'task = "none"                  # leave this out once a target is named'
    person = '# person = "record"            # or the column that tells people apart'
    if guesses.person is not None:
        person = f"person = {_toml(guesses.person)}  # {as_comment(guesses.why_person)}"
    reading = [] if read is None else _reading_lines(read)
    return TEMPLATE.substitute(
        source=as_comment(shown_url(source)),
        placed=_block(placed),
        k=USUAL_K,
        target=_block(_target_lines(guesses)),
        columns=_block(columns),
        task=task,
        person=person,
        kinds=_block(kinds or [KIND_HINT]),
        hierarchies=_block(hierarchies or [HIERARCHY_HINT]),
        orders=_block(_order_lines(guesses, columns_of(table)) or [ORDER_HINT]),
        derived=_block(derived),
        hidden=_toml(chosen.name if chosen else "diagnosis"),
        reading="\n".join(["", *reading]) if reading else "",
    )


def _block(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _toml(value: object) -> str:
    """Text, a number or a list as TOML; JSON's escapes are TOML's too, except for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def as_comment(text: str) -> str:
    """Text within one line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _line(name: str, value: str, reason: str) -> str:
    return f"{_toml(name)} = {_toml(value)}  # {as_comment(reason)}"


def place_from(source: str | Path, beside: Path) -> str:
    """Return where a table lies, from the folder of the roles file."""
    try:
        return Path(os.path.relpath(source, beside)).as_posix()
    except ValueError:  # It lies on another drive.
        return Path(source).absolute().as_posix()


def _target_lines(guesses: Guesses) -> list[str]:
    target, positive = guesses.target, guesses.positive
    if target is None:
        return ['# target = "..."  # no column has two values; name the one to preserve, if any']
    named = f"target = {_toml(target.name)}  # {as_comment(target.reason)}"
    if positive is None:
        return [named, '# positive = "..."   # which of the target\'s values is class 1, if of two']
    return [named, f"positive = {_toml(positive)}  # {as_comment(guesses.why_positive)}"]


def _order_lines(guesses: Guesses, arrays: Mapping[str, pa.Array]) -> list[str]:
    """The orders that columns have of their own, such as that of the codes of an SPSS file."""
    lines = []
    for guess in guesses.columns:
        array = arrays[guess.name]
        is_ordered = pa.types.is_dictionary(array.type) and array.type.ordered
        if is_ordered and guess.role is TableRole.QUASI:
            # Of the labels that rows have: the others may be those of people who are not here.
            used = np.unique(array.indices.drop_null())
            labels = array.dictionary.take(pa.array(used)).cast(pa.large_string()).to_pylist()
            shown = ", ".join(_toml(label) for label in labels if label is not None)
            lines.append(f"{_toml(guess.name)} = [{shown}]  # the column's own order")
    return lines


def _reading_lines(read: Read) -> list[str]:
    """The section [reading], with what is still to be answered as comments."""
    fields = read.reading.to_json()
    if not fields and not read.questions:
        return []
    lines = ["[reading]", *(f"# Note: {as_comment(note)}." for note in read.notes)]
    lines += [f"{name} = {_toml(v)}" for name, v in fields.items() if not isinstance(v, dict)]
    lines += _question_lines(read, None)
    for name in ("dates", "missing"):
        entries = fields.get(name)
        given = entries if isinstance(entries, dict) else {}
        inner = [f"{_toml(column)} = {_toml(value)}" for column, value in given.items()]
        inner += _question_lines(read, name)
        lines += ["", f"[reading.{name}]", *inner] if inner else []
    return [*lines, ""]


def _question_lines(read: Read, section: str | None) -> list[str]:
    """The questions that a section answers, each answer on a line to be uncommented."""
    lines = []
    for question in read.questions:
        if (question.name if question.column is not None else None) == section:
            name = question.name if question.column is None else _toml(question.column)
            lines.append(f"# QUESTION: {as_comment(question.sentence)}; uncomment what is right:")
            lines += [f"# {name} = {_toml(answer)}" for answer in question.answers]
    return lines


def read_roles(path: FilePath) -> tuple[int, Declared]:
    """Read k and the declared roles from a file that `verix-anon init` drafted."""
    return _declared(_read(path), Path(path_text(path)).parent)


def read_options(path: FilePath) -> dict[str, Any]:
    """Read the options of prepare(): the file's sections [contract], [report] and [priorities]."""
    fields = _read(path)
    contract, report = (_section(fields, name).values for name in ("contract", "report"))
    agreed = {name: value for name, value in contract.items() if name in CONTRACT}
    return agreed | dict(report) | {"priorities": _section(fields, "priorities").values}


def read_reading(path: FilePath) -> Reading:
    """Read how the table is read, from the file's section [reading]."""
    return Reading.from_json(_section(_read(path), "reading"))


def read_changing(path: FilePath) -> tuple[str, ...]:
    """Read which columns change from release to release, from the file's section [series]."""
    series = _section(_read(path), "series")
    return series.texts("changes") if series.has("changes") else ()


def parse_roles(text: str, beside: Path) -> tuple[int, Declared]:
    """Return k and the declared roles of a roles file's text, which lies in that folder."""
    return _declared(_parsed(text, "the roles file"), beside)


def parse_reading(text: str) -> Reading:
    """Return how the table is read, by a roles file's text."""
    return Reading.from_json(_section(_parsed(text, "the roles file"), "reading"))


def _read(path: FilePath) -> Fields:
    try:
        return _parsed(Path(path_text(path)).read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise TableError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"{path} cannot be read ({error})") from None


def _parsed(text: str, where: str) -> Fields:
    try:
        fields = Fields(tomllib.loads(text), where, TableError)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{where} cannot be read ({error})") from None
    fields.only((), optional=KNOWN)
    if fields.has("table"):
        fields.text("table")
    _section(fields, "contract").only((), optional={*CONTRACT, "task", "person", "pseudonym"})
    _section(fields, "report").only((), optional=REPORT)
    _section(fields, "series").only((), optional={"changes"})
    return fields


def _declared(fields: Fields, beside: Path) -> tuple[int, Declared]:
    columns, kinds, orders, diversity, hierarchies = (_section(fields, name) for name in SECTIONS)
    contract, derived = (_section(fields, name) for name in ("contract", "derived"))
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
        derived={name: derived.inner(name).values for name in derived.values},
        diversity={name: diversity.inner(name).all_numbers() for name in diversity.values},
        positive=fields.text("positive") if fields.has("positive") else None,
        missing=fields.choice("missing", Missing) if fields.has("missing") else Missing.MARK,
        task=contract.choice("task", Task) if contract.has("task") else None,
        person=contract.text("person") if contract.has("person") else None,
        pseudonym=contract.text("pseudonym") if contract.has("pseudonym") else None,
        release=dict(_section(fields, "release").values),
    )


def _section(fields: Fields, name: str) -> Fields:
    return fields.inner(name) if fields.has(name) else Fields({}, name, fields.fail)
