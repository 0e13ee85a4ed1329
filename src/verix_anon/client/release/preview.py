"""Show a release before it is made: its sheet, its warnings, ten records before and after.

A sample is prepared, anonymized and released here, so that its preview can be shown at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from verix_anon.client.manifest import Manifest
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.privacy_sheet import ColumnLoss, Sheet, losses_of, missed_gates
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.client.release.published import Published, Released
from verix_anon.client.table.columns import Derived, columns_of, with_derived
from verix_anon.client.table.roles import Measure
from verix_anon.client.table.roles_file import parse_roles
from verix_anon.errors import TableError
from verix_anon.fields import Fields, to_json
from verix_anon.protocol.providers import Provider

FORMAT = "verix/preview/1"
RECORDS = 10
LONGEST = 200
"""How many characters of a value are shown."""
Cell = str | None


@dataclass(frozen=True, slots=True)
class Compared:
    """One column of the records that are shown, before and after."""

    name: str
    role: str
    before: tuple[Cell, ...]
    after: Mapping[str, tuple[Cell, ...]]
    """The columns that are published in its place; an identifier has none."""

    @property
    def is_same(self) -> bool:
        """Whether the column is published unchanged."""
        return dict(self.after) == {self.name: self.before}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would be published. It holds records, so only the owner may see it."""

    root: str
    facts: Mapping[str, str]
    """The privacy sheet in words."""
    warnings: tuple[str, ...]
    missed: tuple[str, ...]
    """The requirements that the release does not reach."""
    options: Mapping[str, object]
    """The options that the owner gave."""
    columns: tuple[Compared, ...]
    losses: tuple[ColumnLoss, ...] = ()

    @classmethod
    def of(
        cls, released: Released[Any], options: ReleaseOptions, manifest: Manifest, table: object
    ) -> "Preview":
        """Make the preview of a table that was not written; `options` say what it must reach."""
        return cls(
            root=released.root.hex(),
            facts=released.sheet.facts(),
            warnings=(*released.overridden, *released.warnings),
            missed=missed_gates(options.require, released.sheet),
            options=_given(options, manifest),
            columns=_columns(released.published, table, manifest),
            losses=released.sheet.losses,
        )

    def to_json(self) -> str:
        """Return the preview as JSON."""
        return to_json({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> "Preview":
        """Read a preview back; raises TableError."""
        fields = Fields.parse(text, "the preview", TableError)
        fields.expect("format", FORMAT)
        columns = tuple(_compared(each) for each in fields.each("columns"))
        return fields.record(cls, columns=columns, losses=losses_of(fields))


def preview_sample(
    sample: pa.Table, roles: str, beside: Path, provider: Provider
) -> tuple[Sheet, Preview]:
    """Show what a release of these rows would be, by the text of a roles file in that folder.

    Nothing is sent or kept, so there are no traps, and nothing needs to be secret.
    """
    k, declared = parse_roles(roles, beside)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "roles.toml"
        path.write_text(roles, encoding="utf-8")
        try:
            options = PrepareOptions.of_roles(path, traps=Traps.NONE, witnesses=0, unsafe_seed=0)
        except TableError as error:
            # The owner knows of no copy.
            raise TableError(str(error).removeprefix(f"{path}: ")) from None
    made = prepare(sample, roles=declared, k=k, options=options)
    delivery = provider.anonymize(made.submission)
    asked = ReleaseOptions(force=True)
    released = release(delivery, made.manifest, None, table=sample, options=asked)
    return released.sheet, Preview.of(released, asked, made.manifest, sample)


def _given(options: ReleaseOptions, manifest: Manifest) -> dict[str, object]:
    """Return the options that differ from those of a release without any."""
    found: dict[str, object] = {}
    for measure in Measure:
        value = getattr(options, measure)
        found[measure.value] = {manifest.target: value} if isinstance(value, Real) else value
    names = ("representations", "round_to", "top_code", "bins", "drop", "suppress", "exact_ends")
    more = ("require", "person", "pseudonym", "keep_order")
    found |= {name: getattr(options, name) for name in (*names, *more)}
    if options.representation != ReleaseOptions().representation:
        found["representation"] = str(options.representation)
    return {name: value for name, value in found.items() if value}


def _columns(published: Published, table: object, manifest: Manifest) -> tuple[Compared, ...]:
    derived = {name: Derived.of(name, given) for name, given in manifest.derived.items()}
    held, n_rows = with_derived(columns_of(table), derived), published.class_of_row.size
    # Take them from the whole table, because its first rows are often alike.
    rows = np.unique(np.linspace(0, n_rows - 1, min(RECORDS, n_rows)).astype(np.int64))
    classes = pa.array(published.class_of_row[rows])
    kept = {} if published.kept is None else dict(columns_of(published.kept.to_native()).items())
    kept |= published.added
    found, left = [], published.left
    for name in held:
        before = _cells(held[name].take(pa.array(rows if left is None else left[rows])))
        after = {name: _cells(kept[name].take(pa.array(rows)))} if name in kept else {}
        if name in published.of_quasi:
            parts = published.of_quasi[name]
            after = {part: _cells(published.columns[part].take(classes)) for part in parts}
        found.append(Compared(name, str(manifest.roles[name]), before, after))
    return tuple(found)


def _cells(array: pa.Array | pa.ChunkedArray) -> tuple[Cell, ...]:
    return tuple(None if v is None else _text(v) for v in array.to_pylist())


def _text(value: object) -> str:
    # As text tables write it: 3600, not 3600.0.
    text = f"{value:.17g}" if isinstance(value, float) and value.is_integer() else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _compared(fields: Fields) -> Compared:
    after = {name: _read(value) for name, value in fields.inner("after").values.items()}
    return fields.record(Compared, before=_read(fields.values.get("before")), after=after)


def _read(value: object) -> tuple[Cell, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TableError("the preview: cells must be a list")
    return tuple(cell if cell is None or isinstance(cell, str) else str(cell) for cell in value)
