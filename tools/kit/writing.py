"""Write cases as a kit: a folder with kit.json, which lists them and the digest of every file."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import rfc8785

from verix_anon.conform.kit import FORMAT, KIT, CaseKind, Kit, KitSize, read_kit
from verix_anon.files.atomic_write import write_bytes, written_aside
from verix_anon.files.folder_writer import digest_of_file

VERSION = "1.5"
"""The version of the cases; it changes when a case is added, removed or changed."""

Made = tuple[Mapping[str, str], Mapping[str, object]]
"""A case that was made: its paths, and what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmadeCase:
    """One case before it is made: a row of the tables of cases."""

    id: str
    title: str
    section: str
    """Of the specification"""
    kind: CaseKind
    make: Callable[[Path], Made]
    """Writes the files of the case into the kit's folder"""


def write_kit(
    folder: str | os.PathLike[str], cases: Sequence[UnmadeCase], size: KitSize = KitSize.SMALL
) -> Kit:
    """Make all cases and write them as a kit; it appears complete or not at all."""
    with written_aside(folder, overwrite=False, folder=True, private=False) as aside:
        listed = []
        for case in cases:
            paths, expected = case.make(aside)
            listed.append(
                {
                    "id": case.id,
                    "title": case.title,
                    "section": case.section,
                    "kind": case.kind.value,
                    "paths": dict(paths),
                    "expected": dict(expected),
                }
            )
        stated = {
            "format": FORMAT,
            "version": VERSION,
            "size": size.value,
            "cases": listed,
            "files": {name: digest_of_file(aside / name) for name in files_of(aside)},
        }
        write_bytes(aside / KIT, rfc8785.dumps(stated))  # type: ignore[arg-type]
    return read_kit(folder)


def files_of(folder: Path) -> list[str]:
    """Every file below a folder, by its path in it, in order."""
    found = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    return sorted(path.relative_to(folder).as_posix() for path in found)
