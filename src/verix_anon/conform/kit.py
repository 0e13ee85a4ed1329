"""Read a kit: the one that the package holds, or a folder that somebody exported.

    kit.json                                  every case, and the SHA-256 of every file
    submissions/ID/   deliveries/ID/          what a provider must answer, and with what
    refused/ID/                               submissions that a provider must refuse
    owners/NAME/                              manifests and submissions to judge by
    accepted/ID/   cheats/ID/   malformed/ID/ deliveries that a verifier is shown
    checks/ID/                                files that a checker is shown

The format has a version of its own, and the cases have another. Only files that are listed with
their digest are read. `python -m tools.kit` makes kits.
"""

import json
import os
import re
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from importlib.resources import files
from pathlib import Path, PurePosixPath

import rfc8785

from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.atomic_write import write_bytes, written_aside
from verix_anon.files.store import Folder, open_folder
from verix_anon.progress import Progress, ignore

FORMAT = "verix/kit/1"
KIT = "kit.json"
PACKED = "kit.tar.xz"
"""The file of this package that holds the kit with small tables"""
MAX_KIT_BYTES = 16 << 20
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class KitSize(StrEnum):
    """How much the tables of a kit hold."""

    SMALL = "small"
    LARGE = "large"

    @property
    def limit(self) -> float:
        """Seconds that a case may take by default."""
        return 60.0 if self is KitSize.SMALL else 1800.0


class CaseKind(StrEnum):
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
    """A verifier must see that it is not a delivery."""
    UNDECIDED = "undecided"
    """A verifier must neither accept nor accuse."""
    MISTAKE = "mistake"
    """A verifier must not judge, because the files that it was given do not belong together."""
    HOLDS = "holds"
    """A checker must say that it holds."""
    FORGED = "forged"
    """A checker must say that it does not hold."""
    UNUSABLE = "unusable"
    """A checker must not answer, because a key or root that it was given is not valid."""

    @property
    def side(self) -> str:
        """Who is shown such a case: a provider, a verifier or a checker."""
        if self in (CaseKind.ANSWERED, CaseKind.REFUSED):
            return "provider"
        is_checked = self in (CaseKind.HOLDS, CaseKind.FORGED, CaseKind.UNUSABLE)
        return "checker" if is_checked else "verifier"

    @property
    def needs(self) -> tuple[str, ...]:
        """What such a case has paths of; a checker's case names its files in its words."""
        if self.side == "provider":
            return ("submission",) if self is CaseKind.REFUSED else ("submission", "delivery")
        return ("submission", "delivery", "manifest") if self.side == "verifier" else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KitCase:
    """One case, as kit.json lists it."""

    id: str
    title: str
    section: str
    """Of the specification"""
    kind: CaseKind
    paths: Mapping[str, str]
    """What is shown (`submission`, `delivery`, `manifest`, `proof`): where it lies in the kit"""
    expected: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """A kit whose files are those that it lists."""

    folder: Path
    version: str
    size: KitSize
    digest: str
    """SHA-256 of kit.json, and so of everything"""
    cases: tuple[KitCase, ...]

    def path(self, case: KitCase, name: str) -> Path:
        """Return the path of a file or folder that a case shows."""
        return self.folder / case.paths[name]

    def copy(self, case: KitCase, name: str, folder: Path) -> Path:
        """Copy it for a foreign program, which may harm it and learns nothing from its place."""
        source, target = self.path(case, name), folder / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        return target


def unpack_kit(folder: str | os.PathLike[str], progress: Progress = ignore) -> Kit:
    """Unpack the kit of this package into a folder that is not there yet, and read it."""
    place = files("verix_anon.conform") / PACKED
    with place.open("rb") as packed, tarfile.open(fileobj=packed, mode="r:xz") as archive:
        members = archive.getmembers()
        for done, member in enumerate(members):
            progress("unpack", done, len(members))
            # Bytes alone, without links, times or modes. Early releases of Python 3.11 have no
            # `filter="data"`, which would do the same.
            file = archive.extractfile(member)
            assert file is not None, f"{PACKED} holds files alone"
            path = Path(folder) / _within(member.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.read())
    return read_kit(folder)


def export_kit(
    kit: Kit, cases: Sequence[KitCase], folder: str | os.PathLike[str], *, overwrite: bool = False
) -> Kit:
    """Copy some cases of a kit to a folder, as a kit; it appears complete or not at all."""
    stated = json.loads((kit.folder / KIT).read_bytes())
    ids = {case.id for case in cases}
    shown = {path for case in cases for path in case.paths.values()}
    stated["cases"] = [case for case in stated["cases"] if case["id"] in ids]
    stated["files"] = {
        name: digest
        for name, digest in stated["files"].items()
        if not shown.isdisjoint(_places(name))
    }
    with written_aside(folder, overwrite=overwrite, folder=True, private=False) as aside:
        for name in stated["files"]:
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(kit.folder / name, aside / name)
        write_bytes(aside / KIT, rfc8785.dumps(stated))
    return read_kit(folder)


def _places(name: str) -> set[str]:
    """A file and the folders that it lies in."""
    return {name, *(str(place) for place in PurePosixPath(name).parents)} - {"."}


def read_kit(folder: str | os.PathLike[str]) -> Kit:
    """Read a kit, and see that its files are those that it lists.

    Raises:
        TableError: It is not a kit, or a file is missing, is another or is not listed.
    """
    opened = open_folder(folder, TableError)
    data = opened.read(KIT, limit=MAX_KIT_BYTES)
    fields = Fields.parse(data, KIT, TableError)
    fields.expect("format", FORMAT)
    fields.only({"format", "version", "size", "cases", "files"})
    cases = tuple(_case(each) for each in fields.each("cases"))
    if len({case.id for case in cases}) < len(cases):
        raise TableError(f"{KIT}: a case is listed twice")
    listed = fields.inner("files")
    _check_files(opened, Path(folder), listed)
    # What cases show are listed files, or folders of some: no link is one.
    there = {place for name in listed.values for place in _places(name)}
    for case in cases:
        for path in case.paths.values():
            if path not in there:
                raise TableError(f"{KIT}: {path!r} of the case {case.id} is not listed")
    return Kit(
        # Whatever is shown them may change its folder first.
        folder=Path(folder).absolute(),
        version=fields.text("version"),
        size=fields.choice("size", KitSize),
        digest=sha256(data).hexdigest(),
        cases=cases,
    )


def _case(fields: Fields) -> KitCase:
    fields.only({"id", "title", "section", "kind", "paths", "expected"})
    paths = fields.inner("paths")
    if not NAME.fullmatch(fields.text("id")):
        raise fields.wrong("id", "a word of lower-case letters, digits and hyphens")
    kind, expected = fields.choice("kind", CaseKind), fields.inner("expected")
    names = kind.needs if kind.side != "checker" else tuple(sorted(paths.values))
    paths.only(names)
    if kind.side == "verifier":
        expected.whole("exit"), expected.text("profile")
    elif kind.side == "checker":
        expected.whole("exit"), expected.texts("words")
    return KitCase(
        id=fields.text("id"),
        title=fields.text("title"),
        section=fields.text("section"),
        kind=kind,
        paths={name: _within(paths.text(name)) for name in names},
        expected=expected.values,
    )


def _within(path: str) -> str:
    """A path that does not lead out of the kit."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or not path.isprintable():
        raise TableError(f"{KIT}: a path leads out of the kit")
    return path


def _check_files(opened: Folder, folder: Path, listed: Fields) -> None:
    found = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    there = {path.relative_to(folder).as_posix() for path in found} - {KIT}
    if others := sorted(there - listed.values.keys()):
        raise TableError(f"the kit {folder} holds {others[0]!r}, which {KIT} does not list")
    for name in sorted(listed.values):
        with opened.open(_within(name)) as file:
            digest = sha256()
            while piece := file.read(1 << 20):
                digest.update(piece)
        if digest.digest() != listed.digest(name):
            raise TableError(f"the kit {folder} is damaged: {name} is not of the SHA-256 in {KIT}")


def chosen(cases: Sequence[KitCase], only: Sequence[str]) -> list[KitCase]:
    """Those whose id is one of these, or fits one as a pattern; all of them without any."""
    for pattern in only:
        if not any(fnmatchcase(case.id, pattern) for case in cases):
            raise TableError(f"--only {pattern!r} fits no case of the kit")
    return [c for c in cases if not only or any(fnmatchcase(c.id, p) for p in only)]
