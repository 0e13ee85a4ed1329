"""Hierarchies: names for groups of a column's values, level over level (spec §2).

They order categories depth first, so that splits follow them, and name classes at release.
A hierarchy is a file in ARX's form (value;level 1;level 2;…), or one of two that need none:
`prefix` for codes such as postcodes, and `date` (day, month, quarter, year).
"""

import csv
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from verix_anon.client.table.categories import default_order
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.store import FilePath

PREFIX = "prefix"
DATE = "date"
MOST_BYTES = 64 << 20
"""The most that a hierarchy's file may hold."""
MOST_LEVELS = 32
DELIMITERS = ";,\t|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """By prefixes, by dates, or by levels: the names above each value, the lowest first.

    Examples:
        >>> by_prefix = verix_anon.Hierarchy(kind="prefix")
        >>> roles = verix_anon.Declared(quasi="all", hierarchies={"zip": by_prefix})
    """

    kind: str
    """`prefix`, `date`, or `levels`."""
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Only of the last kind."""

    def check(self, name: str, labels: Collection[str]) -> None:
        """Raise unless every value has its names."""
        unknown = [] if self.kind != "levels" else [v for v in labels if v not in self.levels]
        if unknown:
            more = f" and {len(unknown) - 1:,} other values" if len(unknown) > 1 else ""
            raise TableError(
                f"column {name!r} has {unknown[0]!r}{more}, which its hierarchy lacks;"
                " add a row for each"
            )

    def ordered(self, labels: Sequence[str]) -> list[str]:
        """Depth first; groups and values as they stand in the file, codes by code point."""
        if self.kind == PREFIX:
            return sorted(labels)
        if self.kind == DATE:
            return default_order(labels)
        places = [dict[str, int]() for _ in range(self.height)]
        at = {}
        for i, (value, names) in enumerate(self.levels.items()):
            for known, name in zip(places, names, strict=True):
                known.setdefault(name, i)
            at[value] = i

        def path(label: str) -> tuple[int, ...]:
            above = [known[n] for known, n in zip(places, self.levels[label], strict=True)]
            return (*reversed(above), at[label])

        return sorted(labels, key=path)

    @property
    def height(self) -> int:
        """How many levels there are above the values."""
        return len(next(iter(self.levels.values()), ()))

    def only(self, labels: Sequence[str]) -> "Hierarchy":
        """The same for these values alone, in their order."""
        if self.kind != "levels":
            return self
        levels = {value: self.levels[value] for value in self.ordered(labels)}
        return Hierarchy(kind=self.kind, levels=levels)

    def to_json(self) -> dict[str, object]:
        """As JSON values."""
        return {"kind": self.kind, "levels": {v: list(n) for v, n in self.levels.items()}}

    @classmethod
    def from_json(cls, fields: Fields) -> "Hierarchy":
        """What `to_json` gave."""
        found, kind = fields.inner("levels"), fields.text("kind")
        return cls(kind=kind, levels={value: found.texts(value) for value in found.values})

    @classmethod
    def of(cls, given: "Hierarchy | str", beside: FilePath = ".") -> "Hierarchy":
        """`prefix`, `date`, or the one in a file, relative to a folder."""
        if isinstance(given, Hierarchy):
            return given
        if given in (PREFIX, DATE):
            return cls(kind=given)
        return read_hierarchy(Path(beside) / given)


def read_hierarchy(path: FilePath) -> Hierarchy:
    """Read a hierarchy in ARX's form: a row for each value, its names from the lowest up.

    Raises:
        TableError: There is no such file, or a row has other columns than the first.
    """
    # A device or a pipe has no end; Path.is_file raises on some names.
    if not os.path.isfile(path):  # noqa: PTH113
        raise TableError(
            f"there is no file {path}; a hierarchy is a file, or one of {PREFIX} and {DATE}"
        )
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise TableError(f"{path}: a hierarchy has at most {MOST_BYTES >> 20} MiB")
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(f"{path} is not UTF-8 text; save it again as UTF-8") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror})") from None
    return Hierarchy(kind="levels", levels=_levels(text, str(path)))


def _levels(text: str, where: str) -> dict[str, tuple[str, ...]]:
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    delimiter = next((d for d in DELIMITERS if d in first), None)
    if delimiter is None:
        raise TableError(f"{where}: the first row has no level; write value;level 1;level 2;…")
    levels: dict[str, tuple[str, ...]] = {}
    width = 0
    rows = csv.reader(lines, delimiter=delimiter)
    try:
        for row in rows:
            if not row:
                continue
            width = width or len(row)
            if len(row) != width or width > MOST_LEVELS + 1:
                raise TableError(
                    f"{where}, line {rows.line_num}: {len(row):,} columns where the first row has"
                    f" {width:,}; at most {MOST_LEVELS} levels, the same for every value"
                )
            value, *names = row
            if levels.setdefault(value, tuple(names)) != tuple(names):
                raise TableError(f"{where}, line {rows.line_num}: {value!r} was named otherwise")
    except csv.Error as error:
        raise TableError(f"{where}, line {rows.line_num}: {error}") from None
    return levels
