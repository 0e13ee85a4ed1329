"""A kit as a folder: kit.json, which lists every case and the SHA-256 of every file, and the files.

    kit.json
    submissions/ID/   deliveries/ID/     what must be answered, and with what
    refused/ID/                          submissions that must be refused

Its format has a version of its own. Whoever runs a kit that somebody else exported reads nothing
but what is listed with its digest.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path, PurePosixPath

import rfc8785

from verix_anon.conform import Size
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.aside import write_bytes, written_aside
from verix_anon.files.hashed import digest_of_file
from verix_anon.files.store import Folder, open_folder

__all__ = ["FORMAT", "Case", "Kind", "Kit", "Made", "Recipe", "read_kit", "write_kit"]

FORMAT = "verix/kit/1"
VERSION = "1.0"
"""Of the cases: another one whenever a case comes, goes or changes."""
KIT = "kit.json"
MAX_KIT_BYTES = 16 << 20
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class Kind(StrEnum):
    """What a case shows, and to whom."""

    ANSWERED = "answered"
    """A provider must deliver exactly this."""
    REFUSED = "refused"
    """A provider must deliver nothing."""
    ACCEPTED = "accepted"
    """A verifier must accept it."""
    CHEAT = "cheat"
    """A verifier must see what is wrong with it."""
    MALFORMED = "malformed"
    """A verifier must see that it is no delivery."""
    UNDECIDED = "undecided"
    """A verifier must neither accept nor accuse."""
    MISTAKE = "mistake"
    """A verifier must not judge: what it was given does not belong together."""

    @property
    def is_for_provider(self) -> bool:
        """Whether it is a provider that is shown this."""
        return self in (Kind.ANSWERED, Kind.REFUSED)

    @property
    def needs(self) -> tuple[str, ...]:
        """What such a case has paths of."""
        if self.is_for_provider:
            return ("submission",) if self is Kind.REFUSED else ("submission", "delivery")
        return ("submission", "delivery", "manifest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case of a kit, as kit.json lists it."""

    id: str
    title: str
    section: str
    """Of the specification"""
    kind: Kind
    paths: Mapping[str, str]
    """What is shown (`submission`, `delivery`, `manifest`): where it lies in the kit"""
    expected: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Made:
    """What the making of a case gives: where its files lie in the kit, and what is expected."""

    paths: Mapping[str, str]
    expected: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A case before it is made."""

    id: str
    title: str
    section: str
    kind: Kind
    make: Callable[[Path], Made]
    """Writes the case's files into the kit's folder"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """A kit whose files are those that it lists."""

    folder: Path
    version: str
    size: Size
    digest: str
    """SHA-256 of kit.json, and so of everything"""
    cases: tuple[Case, ...]

    def path(self, case: Case, name: str) -> Path:
        """Where something that a case shows lies."""
        return self.folder / case.paths[name]

    def copy(self, case: Case, name: str, folder: Path) -> Path:
        """A copy of it for a stranger, who may harm it, and whom its place tells nothing."""
        source, target = self.path(case, name), folder / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        return target


def write_kit(
    folder: str | os.PathLike[str],
    recipes: Iterable[Recipe],
    size: Size,
    *,
    overwrite: bool = False,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Kit:
    """Make all cases and write them as a kit; it appears complete or not at all."""
    wanted = list(recipes)
    with written_aside(folder, overwrite=overwrite, folder=True, private=False) as aside:
        cases = []
        for done, recipe in enumerate(wanted):
            progress("make", done, len(wanted))
            cases.append(_listed(recipe, recipe.make(aside)))
        stated = {
            "format": FORMAT,
            "version": VERSION,
            "size": size.value,
            "cases": cases,
            "files": {name: digest_of_file(aside / name) for name in _files(aside)},
        }
        write_bytes(aside / KIT, rfc8785.dumps(stated))  # type: ignore[arg-type]
    return read_kit(folder)


def _listed(recipe: Recipe, made: Made) -> dict[str, object]:
    return {
        "id": recipe.id,
        "title": recipe.title,
        "section": recipe.section,
        "kind": recipe.kind.value,
        "paths": dict(made.paths),
        "expected": dict(made.expected),
    }


def _files(folder: Path) -> list[str]:
    found = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    return sorted(path.relative_to(folder).as_posix() for path in found)


def read_kit(folder: str | os.PathLike[str]) -> Kit:
    """Read a kit, and see that its files are those that it lists.

    Raises:
        TableError: It is no kit, or a file is missing, is another or is not listed.
    """
    opened = open_folder(folder, TableError)
    data = opened.read(KIT, limit=MAX_KIT_BYTES)
    fields = Fields.parse(data, KIT, TableError)
    fields.expect("format", FORMAT)
    fields.only({"format", "version", "size", "cases", "files"})
    cases = tuple(_case(each) for each in fields.each("cases"))
    if len({case.id for case in cases}) < len(cases):
        raise TableError(f"{KIT}: a case is listed twice")
    files = fields.inner("files")
    _check_files(opened, Path(folder), files)
    _check_listed(cases, files)
    return Kit(
        # Whatever is shown them may change its folder first.
        folder=Path(folder).absolute(),
        version=fields.text("version"),
        size=fields.choice("size", Size),
        digest=sha256(data).hexdigest(),
        cases=cases,
    )


def _case(fields: Fields) -> Case:
    fields.only({"id", "title", "section", "kind", "paths", "expected"})
    paths = fields.inner("paths")
    if not NAME.fullmatch(fields.text("id")):
        raise fields.wrong("id", "a word of lower-case letters, digits and hyphens")
    kind, expected = fields.choice("kind", Kind), fields.inner("expected")
    paths.only(kind.needs)
    if not kind.is_for_provider:
        expected.whole("exit"), expected.text("profile")
    return Case(
        id=fields.text("id"),
        title=fields.text("title"),
        section=fields.text("section"),
        kind=kind,
        paths={name: _within(paths.text(name)) for name in kind.needs},
        expected=expected.values,
    )


def _within(path: str) -> str:
    """A path that does not lead out of the kit."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or not path.isprintable():
        raise TableError(f"{KIT}: a path leads out of the kit")
    return path


def _check_files(opened: Folder, folder: Path, listed: Fields) -> None:
    there = set(_files(folder)) - {KIT}
    if others := sorted(there - listed.values.keys()):
        raise TableError(f"the kit {folder} holds {others[0]!r}, which {KIT} does not list")
    for name in sorted(listed.values):
        with opened.open(_within(name)) as file:
            digest = sha256()
            while piece := file.read(1 << 20):
                digest.update(piece)
        if digest.digest() != listed.digest(name):
            raise TableError(f"the kit {folder} is damaged: {name} is not of the SHA-256 in {KIT}")


def _check_listed(cases: Iterable[Case], listed: Fields) -> None:
    """Raise unless what cases show are listed files, or folders of some: no link is one."""
    folders = {str(place) for name in listed.values for place in PurePosixPath(name).parents}
    there = (folders | listed.values.keys()) - {"."}
    for case in cases:
        for path in case.paths.values():
            if path not in there:
                raise TableError(f"{KIT}: {path!r} of the case {case.id} is not listed")
