"""Changes in a roles file that leave the rest of it, comments too, as somebody wrote it."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from verix_anon.client.table.sections import comment, toml
from verix_anon.errors import TableError

__all__ = ["Change", "Changes", "Entry", "edited", "entries"]

Key = tuple[str, ...]
"""The section, if any, and the name in it."""


BY_COLUMN = tuple(
    (name,)
    for name in ("columns", "kinds", "orders", "hierarchies", "diversity", "dates", "missing")
)
"""Sections whose entries are columns."""


class Change(NamedTuple):
    """What an entry becomes; None: it goes. A comment of None: the one that is there stays."""

    value: object
    comment: str | None = None


Changes = Mapping[Key, Change]


@dataclass(frozen=True, slots=True)
class Entry:
    """A line, or several, that say one thing: a value, a heading, or nothing."""

    lines: tuple[str, ...]
    section: Key
    name: str | None = None
    value: object = None
    comment: str = ""


def entries(text: str) -> list[Entry]:
    """A roles file, entry by entry.

    Raises:
        TableError: It is no TOML.
    """
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TableError(f"the roles file cannot be read ({error})") from None
    # Not by splitlines, which knows ends of lines that are letters to TOML.
    return list(_entries(text.replace("\r\n", "\n").removesuffix("\n").split("\n")))


def _entries(lines: list[str]) -> Iterator[Entry]:
    section: Key = ()
    held: list[str] = []
    for line in lines:
        held.append(line)
        try:
            found = tomllib.loads("\n".join(held))
        except tomllib.TOMLDecodeError:
            continue  # A value that goes on in the next line.
        bare = line.strip()
        if len(held) == 1 and bare.startswith("["):
            section = _path(found)
            yield Entry((line,), section)
        elif found:
            (name, value), *_ = found.items()
            yield Entry(tuple(held), section, name, value, _comment(held[-1]))
        else:
            yield Entry(tuple(held), section)
        held = []


def _path(found: Mapping[str, object]) -> Key:
    for name, inner in found.items():
        return (name, *(_path(inner) if isinstance(inner, Mapping) else ()))
    return ()


def _comment(line: str) -> str:
    """What stands behind a value; a sign within quotes begins no comment."""
    for at, sign in enumerate(line):
        if sign == "#":
            try:
                if tomllib.loads(line[:at]):
                    return line[at + 1 :].strip()
            except tomllib.TOMLDecodeError:
                continue
    return ""


def edited(text: str, changes: Changes) -> str:
    """The file with other values; if it is written in a way not met here, it is written anew."""
    wanted = _applied(tomllib.loads(text), changes)
    lines = _with_changes(entries(text), dict(changes))
    made = "\n".join(lines).strip("\n") + "\n"
    try:
        if _filled(tomllib.loads(made)) == _filled(wanted):
            return made
    except tomllib.TOMLDecodeError:
        pass
    return "\n".join(_anew(wanted, ())).strip("\n") + "\n"


def _with_changes(found: list[Entry], left: dict[Key, Change]) -> list[str]:
    lines: list[str] = []
    ends: dict[Key, int] = {(): 0}
    """Where a further entry of each section goes."""
    for entry in found:
        change = None
        if entry.name is not None:
            change = left.pop((*entry.section, entry.name), None)
        if change is None:
            lines += entry.lines
        elif change.value is not None:
            said = entry.comment if change.comment is None else change.comment
            assert entry.name is not None
            is_quoted = entry.lines[0].lstrip().startswith('"')
            name = toml(entry.name) if is_quoted else _name(entry.section, entry.name)
            lines.append(_line(name, change.value, said))
        if any(line.strip() for line in entry.lines):
            ends[entry.section] = len(lines)
    return _added(lines, ends, left)


def _added(lines: list[str], ends: dict[Key, int], left: dict[Key, Change]) -> list[str]:
    new = {key: change for key, change in left.items() if change.value is not None}
    by_section: dict[Key, list[str]] = {}
    for key, change in new.items():
        line = _line(_name(key[:-1], key[-1]), change.value, change.comment or "")
        by_section.setdefault(key[:-1], []).append(line)
    for section in sorted(by_section.keys() & ends.keys(), key=lambda s: -ends[s]):
        at = ends[section]
        lines[at:at] = by_section.pop(section)
    for section, more in by_section.items():
        lines += ["", f"[{'.'.join(map(toml, section))}]", *more]
    return lines


def _line(name: str, value: object, said: str) -> str:
    return f"{name} = {_value(value)}" + (f"  # {comment(said)}" if said else "")


def _name(section: Key, name: str) -> str:
    """Names of columns are quoted, as in a draft; those of fields are not."""
    is_bare = name.isascii() and name.isidentifier() and section[-1:] not in BY_COLUMN
    return name if is_bare else toml(name)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml(n)} = {_value(v)}" for n, v in value.items()) + " }"
    return toml(value)


def _applied(document: dict[str, object], changes: Changes) -> dict[str, object]:
    for (*section, name), change in changes.items():
        inner = document
        for part in section:
            found = inner.setdefault(part, {})
            if not isinstance(found, dict):
                raise TableError(f"{part} must hold named fields")
            inner = found
        if change.value is None:
            inner.pop(name, None)
        else:
            value = change.value
            inner[name] = list(value) if isinstance(value, tuple) else value
    return document


def _filled(document: object) -> object:
    """Without sections that are empty, which say nothing."""
    if not isinstance(document, dict):
        return document
    found = {name: _filled(value) for name, value in document.items()}
    return {name: value for name, value in found.items() if value != {}}


def _anew(document: Mapping[str, object], section: Key) -> Iterator[str]:
    inner = {n: v for n, v in document.items() if isinstance(v, Mapping)}
    for name, value in document.items():
        if name not in inner:
            yield _line(_name(section, name), value, "")
    for name, values in inner.items():
        path = (*section, name)
        yield from ("", f"[{'.'.join(map(toml, path))}]")
        yield from _anew(values, path)
