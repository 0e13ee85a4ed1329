"""What a roles file says of each column, and what the file becomes when somebody chooses otherwise.

The reason of a guess is the comment of its line, and stays with the column whatever is chosen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from verix_anon.client.table.draft import place_from
from verix_anon.client.table.edited import Change, Changes, Entry, edited, entries
from verix_anon.client.table.roles import SENT, TableRole
from verix_anon.errors import TableError
from verix_anon.files.tables import Reading

__all__ = ["Choices", "Column", "choices", "chosen", "reading_changes", "table_changes"]

GUESSED = "guessed "
TARGET = TableRole.TARGET.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What is chosen for one column."""

    name: str
    role: str
    kind: str = ""
    """Empty: what its values are."""
    order: tuple[str, ...] = ()
    hierarchy: str = ""
    guess: str = ""
    """The role that was guessed; empty if nothing was."""
    reason: str = ""

    @property
    def is_sent(self) -> bool:
        """Whether a provider gets it, in some form."""
        return self.role in SENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What is chosen for all columns."""

    columns: tuple[Column, ...]
    person: str = ""
    """Empty: nothing is said."""
    positive: str = ""

    @property
    def target(self) -> Column | None:
        """The column to preserve, if there is one."""
        return next((column for column in self.columns if column.role == TARGET), None)


def choices(text: str) -> Choices:
    """What a roles file says."""
    found = {(*e.section, e.name): e for e in entries(text) if e.name is not None}
    target = found.get(("target",))
    columns = [_column(e.name, str(e.value), e.comment, found) for e in _named(found)]
    if target is not None:
        columns.insert(0, _column(str(target.value), TARGET, target.comment, found))
    return Choices(
        columns=tuple(columns),
        person=_text(found, ("contract", "person")),
        positive=_text(found, ("positive",)),
    )


Found = dict[tuple[str, ...], Entry]


def _named(found: Found) -> Iterator[Entry]:
    yield from (entry for key, entry in found.items() if key[:-1] == ("columns",))


def _text(found: Found, key: tuple[str, ...]) -> str:
    entry = found.get(key)
    return entry.value if entry is not None and isinstance(entry.value, str) else ""


def _column(name: str | None, role: str, said: str, found: Found) -> Column:
    assert name is not None
    guess, reason = role if said else "", said
    if said.startswith(GUESSED):
        guess, _, reason = said.removeprefix(GUESSED).partition(": ")
    order = found.get(("orders", name))
    is_listed = order is not None and isinstance(order.value, list)
    return Column(
        name=name,
        role=role,
        kind=_text(found, ("kinds", name)),
        order=tuple(map(str, order.value)) if order and is_listed else (),  # type: ignore[call-overload]
        hierarchy=_text(found, ("hierarchies", name)),
        guess=guess,
        reason=reason,
    )


def chosen(text: str, wanted: Choices) -> str:
    """The roles file with what is chosen in it.

    Raises:
        TableError: Two targets are chosen, or other columns than the file has.
    """
    before = choices(text)
    if sorted(c.name for c in wanted.columns) != sorted(c.name for c in before.columns):
        raise TableError("the roles file has other columns by now; look at it anew")
    targets = [column for column in wanted.columns if column.role == TARGET]
    if len(targets) > 1:
        names = " and ".join(repr(column.name) for column in targets)
        raise TableError(f"there is one target at most; {names} are chosen as such")
    return edited(text, dict(_changes(before, wanted)))


def _changes(before: Choices, wanted: Choices) -> Iterator[tuple[tuple[str, ...], Change]]:
    known = {column.name: column for column in before.columns}
    if wanted.target is None:
        yield ("target",), Change(None)
    for column in wanted.columns:
        old = known[column.name]
        if column.role != old.role:
            is_target, said = column.role == TARGET, _said(column.role, old)
            if is_target:
                yield ("target",), Change(column.name, said)
            yield ("columns", column.name), Change(None if is_target else column.role, said)
        yield from _details(old, column)
    was, now = (each.target.name if each.target else None for each in (before, wanted))
    if now != was:
        # What the target is good for was said of another one, or that there is none.
        yield ("contract", "task"), Change("none" if now is None else None)
    positive = wanted.positive if wanted.target is not None else ""
    if positive != before.positive:
        yield ("positive",), Change(positive or None, "")
    if wanted.person != before.person:
        yield ("contract", "person"), Change(wanted.person or None, "")


def _said(role: str, old: Column) -> str:
    """The reason of the guess, and what was guessed, if it is not what is chosen."""
    if not old.reason:
        return ""
    return old.reason if role == old.guess else f"{GUESSED}{old.guess}: {old.reason}"


def _details(old: Column, new: Column) -> Iterator[tuple[tuple[str, ...], Change]]:
    """Kind, order and hierarchy, which only columns that are sent have."""
    is_quasi = new.role == TableRole.QUASI.value
    found: Sequence[tuple[str, object, object]] = (
        ("kinds", old.kind, new.kind if new.is_sent else ""),
        ("orders", old.order, new.order if new.is_sent else ()),
        ("hierarchies", old.hierarchy, new.hierarchy if is_quasi else ""),
    )
    for section, was, value in found:
        if value != was:
            yield (section, new.name), Change(value or None)


def table_changes(table: Path, beside: Path) -> Changes:
    """What makes a roles file, which lies in that folder, name another table."""
    return {("table",): Change(place_from(table, beside))}


def reading_changes(text: str, reading: Reading) -> Changes:
    """What makes a roles file say that the table is read so."""
    fields = reading.to_json()
    found: dict[tuple[str, ...], Change] = {}
    for entry in entries(text):
        if entry.name is not None and entry.section[:1] == ("reading",):
            found[(*entry.section, entry.name)] = Change(None)
    for name, value in fields.items():
        if isinstance(value, dict):
            for column, one in value.items():
                found["reading", name, str(column)] = Change(one)
        else:
            found["reading", name] = Change(value)
    return found
