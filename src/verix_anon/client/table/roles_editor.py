"""Read what a roles file says about columns and privacy, and edit it.

An edit leaves the rest of the file as it was written, with its comments; tomlkit makes this
possible. Commands read the file with tomllib, so each edit is read back with tomllib before it is
returned.

The reason for a guess is a comment on its column's line. It stays there whatever role is chosen. If
the role is not the guessed one, the comment begins with `guessed ` and the guessed role.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable, Item

from verix_anon.client.table.guess import is_naming
from verix_anon.client.table.hierarchies import DATE, PREFIX, Hierarchy
from verix_anon.client.table.owner_table import RECORD, read_owner_table
from verix_anon.client.table.roles import SENT, Asked, check_asked
from verix_anon.client.table.roles_file import USUAL_K, as_comment, parse_roles
from verix_anon.client.table.task import TableRole
from verix_anon.errors import Error, TableError
from verix_anon.files.desk_folder import inside
from verix_anon.files.tables import Reading
from verix_anon.protocol.contract import Rule

GUESSED = "guessed "
IDENTIFIER, KEPT, SENSITIVE, QUASI, TARGET = (role.value for role in TableRole)
USUAL = {"rule": Rule.IMPORTANCE_SPREAD.value, "traps": "adaptive", "min_leaf": "k"}
LARGEST_K = 2**31 - 1


class Change(NamedTuple):
    """A new value for one entry of the file."""

    path: tuple[str, ...]
    """Its sections, if any, and its name."""
    value: object
    """None: the entry is removed."""
    comment: str | None = None
    """None: the comment that is there stays."""


def edit(text: str, changes: Iterable[Change]) -> str:
    """Return the roles file with these changes.

    Raises:
        TableError: The file is not TOML, or has a value where a section is needed.
    """
    wanted, document = _parse(text)
    for change in changes:
        _apply(wanted, change)
        _apply(document, change)
    made = tomlkit.dumps(document)
    try:
        if _without_empty(tomllib.loads(made)) == _without_empty(wanted):
            return made
    except tomllib.TOMLDecodeError:
        pass
    # tomlkit cannot edit the file as it was written, so keep what it says and lose its comments.
    return tomlkit.dumps(wanted)


def _parse(text: str) -> tuple[dict[str, Any], tomlkit.TOMLDocument]:
    """Return the values as commands read them, and the document with its comments."""
    try:
        return tomllib.loads(text), tomlkit.parse(text)
    except (ValueError, RecursionError, TOMLKitError) as error:
        raise TableError(f"the roles file cannot be read ({error})") from None


def _apply(document: MutableMapping[str, Any], change: Change) -> None:
    *sections, name = change.path
    for section in sections:
        if change.value is None and section not in document:
            return
        document = document.setdefault(section, {})
        if not isinstance(document, MutableMapping):
            raise TableError(f"{section} must hold named fields")
    if change.value is None:
        document.pop(name, None)
        return
    value = list(change.value) if isinstance(change.value, tuple) else change.value
    if isinstance(value, Mapping):
        # Otherwise it would become a section of its own.
        inline = tomlkit.inline_table()
        inline.update(value)
        value = inline
    document[name] = value
    item = document[name]
    # A comment cannot stand within an inline table.
    if change.comment is None or not isinstance(item, Item) or isinstance(document, InlineTable):
        return
    said = as_comment(change.comment)
    item.trivia.comment_ws, item.trivia.comment = ("  ", f"# {said}") if said else ("", "")


def _without_empty(document: object) -> object:
    """Leave out empty sections, which say nothing."""
    if not isinstance(document, Mapping):
        return document
    found = {name: _without_empty(value) for name, value in document.items()}
    return {name: value for name, value in found.items() if value != {}}


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChoice:
    """What is chosen for one column."""

    name: str
    role: str
    kind: str = ""
    """Empty: the kind that its values have."""
    order: tuple[str, ...] = ()
    hierarchy: str = ""
    bins: str = ""
    """The common bins of a release, as they are typed; empty: none."""
    priority: str | float = ""
    """Empty: normal."""
    guess: str = ""
    """The role that was guessed; empty if nothing was."""
    reason: str = ""
    is_derived: bool = False
    """Whether a column that is made from it is sent or published, such as rounded amounts."""

    @property
    def is_sent(self) -> bool:
        """Whether a provider gets it, in some form."""
        return self.role in SENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What is chosen for all columns."""

    columns: tuple[ColumnChoice, ...]
    person: str = ""
    """The column that tells people apart, or `record`; empty if not stated."""
    positive: str = ""

    @property
    def target(self) -> ColumnChoice | None:
        """The column to preserve, if there is one."""
        return next((column for column in self.columns if column.role == TARGET), None)


def read_choices(text: str) -> Choices:
    """Return what a roles file says of the columns."""
    values, document = _parse(text)
    columns = [
        _column(values, name, str(role), _comment(_section(document, "columns")[name]))
        for name, role in _section(values, "columns").items()
    ]
    if "target" in values:
        comment = _comment(document["target"])
        columns.insert(0, _column(values, str(values["target"]), TARGET, comment))
    return Choices(
        columns=tuple(columns),
        person=_text(_section(values, "contract"), "person"),
        positive=_text(values, "positive"),
    )


def _comment(item: object) -> str:
    return item.trivia.comment.removeprefix("#").strip() if isinstance(item, Item) else ""


def _text(values: Mapping[str, object], name: str) -> str:
    found = values.get(name)
    return found if isinstance(found, str) else ""


def _column(values: dict[str, Any], name: str, role: str, comment: str) -> ColumnChoice:
    guess, reason = role if comment else "", comment
    if comment.startswith(GUESSED):
        guess, _, reason = comment.removeprefix(GUESSED).partition(": ")
    order = _section(values, "orders").get(name)
    priority = _section(values, "priorities").get(name)
    derived = _section(values, "derived")
    return ColumnChoice(
        name=name,
        role=role,
        kind=_text(_section(values, "kinds"), name),
        order=tuple(map(str, order)) if isinstance(order, list) else (),
        hierarchy=_text(_section(values, "hierarchies"), name),
        bins=str(_section(_section(values, "release"), "bins").get(name, "")),
        is_derived=any(name in (new, *_section(derived, new).values()) for new in derived),
        priority=priority if isinstance(priority, str | float | int) else "",
        guess=guess,
        reason=reason,
    )


def apply_choices(text: str, wanted: Choices) -> str:
    """Return the roles file with what is chosen in it.

    Raises:
        TableError: Two targets are chosen, or other columns than the file has.
    """
    before = read_choices(text)
    if sorted(c.name for c in wanted.columns) != sorted(c.name for c in before.columns):
        raise TableError("the roles file has other columns by now; look at it again")
    targets = [column for column in wanted.columns if column.role == TARGET]
    if len(targets) > 1:
        names = " and ".join(repr(column.name) for column in targets)
        raise TableError(f"there can be one target at most, but {names} are chosen")
    return edit(text, _changed_choices(before, wanted))


def _changed_choices(before: Choices, wanted: Choices) -> Iterator[Change]:
    known = {column.name: column for column in before.columns}
    if wanted.target is None:
        yield Change(("target",), None)
    for column in wanted.columns:
        old = known[column.name]
        if column.role != old.role:
            is_target, comment = column.role == TARGET, old.reason
            if comment and column.role != old.guess:
                comment = f"{GUESSED}{old.guess}: {comment}"
            if is_target:
                yield Change(("target",), column.name, comment)
            yield Change(("columns", column.name), None if is_target else column.role, comment)
        # Only columns that are sent have these.
        for section, said, value in (
            ("kinds", old.kind, column.kind if column.is_sent else ""),
            ("orders", old.order, column.order if column.is_sent else ()),
            ("hierarchies", old.hierarchy, column.hierarchy if column.role == QUASI else ""),
            ("priorities", old.priority, column.priority if column.role == QUASI else ""),
        ):
            if value != said:
                yield Change((section, column.name), value or None)
        if column.bins != old.bins:
            yield Change(("release", "bins", column.name), _number(column.bins) or None)
    was, now = (each.target.name if each.target else None for each in (before, wanted))
    if now != was:
        # The task was stated for another target, or for having no target.
        yield Change(("contract", "task"), "none" if now is None else None)
    positive = wanted.positive if wanted.target is not None else ""
    if positive != before.positive:
        yield Change(("positive",), positive or None, "")
    if wanted.person != before.person:
        yield Change(("contract", "person"), wanted.person or None, "")


def _number(text: str) -> int | float | str:
    """A number if it is one, else the text."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


class Advice(NamedTuple):
    """The mistakes in a choice of roles, and what may be one."""

    mistakes: tuple[str, ...]
    warnings: tuple[str, ...]
    about: Mapping[str, tuple[str, ...]]
    """The columns that a sentence is about, unless it is about all."""


def advice(text: str, wanted: Choices, beside: Path, home: Path, rows: object = None) -> Advice:
    """Return why the roles file would be refused with these choices, and what to think about.

    The file lies in the folder `beside`. Files of hierarchies are read only if they lie in `home`.
    `rows` are all rows of the table, if they are at hand. That their values do not fit is only a
    warning: they may have been read before some words were said to mean missing.
    """
    about: dict[str, tuple[str, ...]] = {}
    for each in wanted.columns:
        about |= dict.fromkeys(_column_warnings(each), (each.name,))
    warnings, is_right = (*about, *_warnings(wanted)), False
    names: tuple[str, ...] = ()
    try:
        for column in wanted.columns:
            if column.hierarchy not in ("", PREFIX, DATE):
                names = (column.name,)
                Hierarchy.of(str(inside(home, str(beside / column.hierarchy))))
        names = ()
        _, declared = parse_roles(apply_choices(text, wanted), beside)
        declared.roles([column.name for column in wanted.columns])
        is_right = True
        if rows is not None:
            read_owner_table(rows, declared)
    except Error as error:
        said = str(error)
        if names := names or tuple(c.name for c in wanted.columns if repr(c.name) in said):
            about[said] = names
        mistakes, doubts = ((), (said,)) if is_right else ((said,), ())
        return Advice(mistakes, (*doubts, *warnings), about)
    return Advice((), warnings, about)


def _warnings(wanted: Choices) -> Iterator[str]:
    if wanted.target is None:
        yield "no target is named: nothing is preserved on purpose, and models are not measured"
    roles = {column.name: column.role for column in wanted.columns}
    if not wanted.person and IDENTIFIER in roles.values():
        yield (
            "it is not stated who a person is: if an identifier repeats, prepare will ask whether"
            " each record is a person"
        )
    if wanted.person not in ("", RECORD) and wanted.person not in roles:
        yield f"{wanted.person!r} is to tell people apart, but there is no such column"


def _column_warnings(column: ColumnChoice) -> Iterator[str]:
    name, role = column.name, column.role
    is_published = role != IDENTIFIER
    if column.guess == IDENTIFIER and is_published:
        yield f"{name!r} looks like an identifier ({column.reason}); as {role} it is published"
    elif is_published and role != QUASI and is_naming(name):
        yield f"{name!r} sounds like a name of people; as {role} it is published as it stands"
    if column.guess == SENSITIVE and role in (KEPT, QUASI):
        yield f"{name!r} looks sensitive; as {role} the privacy sheet does not measure it"
    if column.guess == QUASI and role in (KEPT, SENSITIVE):
        yield (
            f"{name!r} may be known to others; as {role} it is published as it stands, and people"
            " may be singled out by it"
        )
    if role == IDENTIFIER and column.guess in (QUASI, SENSITIVE, TARGET):
        yield f"{name!r} is dropped for good as an identifier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """The privacy asked for: k, the contract's rule, traps and leaves, and what classes hide."""

    k: int = USUAL_K
    contract: Mapping[str, str] = field(default_factory=lambda: dict(USUAL))
    """`rule`, `traps` and `min_leaf`."""
    hidden: Asked = field(default_factory=dict)
    """What every class must hide of the target and of sensitive columns, if anything."""
    target: str | None = None

    @property
    def point(self) -> tuple[int, str, int]:
        """The k, the rule and the l of the target, as explore() tries them."""
        of_target = self.hidden.get(self.target or "", {})
        return self.k, self.contract["rule"], int(of_target.get("l", 1))


def read_protection(text: str, beside: Path) -> Protection:
    """Return the privacy that a roles file asks for; the file lies in the folder `beside`."""
    k, declared = parse_roles(text, beside)
    contract = _section(_parse(text)[0], "contract")
    columns = [name for role, name in declared.named() if role.value in (TARGET, SENSITIVE)]
    return Protection(
        k=k,
        contract={name: str(contract.get(name, usual)) for name, usual in USUAL.items()},
        hidden={name: dict(declared.diversity.get(name, {})) for name in columns},
        target=declared.target,
    )


def apply_protection(text: str, wanted: Protection, beside: Path) -> str:
    """Return the roles file with this privacy in it.

    Raises:
        TableError: A value is out of range.
    """
    if not 2 <= wanted.k <= LARGEST_K:
        raise TableError("k must be a whole number, 2 or more")
    before = read_protection(text, beside)
    _, declared = parse_roles(text, beside)
    check_asked(wanted.hidden, {name: role.value for role, name in declared.named()})
    return edit(text, _changed_protection(before, wanted))


def _changed_protection(before: Protection, wanted: Protection) -> Iterator[Change]:
    if wanted.k != before.k:
        yield Change(("k",), wanted.k)
    for name, value in wanted.contract.items():
        if value != before.contract[name]:
            is_number = name == "min_leaf" and value.isdecimal()
            yield Change(("contract", name), int(value) if is_number else value)
    for name, measures in wanted.hidden.items():
        if measures != before.hidden.get(name, {}):
            asked = {m: int(v) if m == "l" else v for m, v in measures.items()}
            yield Change(("diversity", name), asked or None)


def apply_reading(text: str, reading: Reading, table: str | None = None) -> str:
    """Return the roles file with how the table is read, and where it lies if that is given."""
    old = dict(_fields(_section(_parse(text)[0], "reading")))
    new = dict(_fields(reading.to_json()))
    changes = [] if table is None else [Change(("table",), table)]
    for path in {**old, **new}:
        if old.get(path) != new.get(path):
            changes.append(Change(("reading", *path), new.get(path)))
    return edit(text, changes)


def _fields(values: Mapping[str, object]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Each field by its path; some have a value for each column."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from (((name, column), each) for column, each in value.items())
        else:
            yield (name,), value
