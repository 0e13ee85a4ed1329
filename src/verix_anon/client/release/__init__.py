"""release(): an accepted delivery as a table, without traps and with k re-checked (spec §12).

Proves: every class of the published table holds at least k people, counted on the genuine
records, and each interval is that of its class's own records; nothing of it is taken from
the provider but which records lie together.
Never published: the tree, leaf numbers and counts; they undo the merging and expose traps.
"""

import hmac
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import narwhals as nw
import numpy as np
import pyarrow as pa

from verix_anon.arrays import Floats, Ids, Ints
from verix_anon.client.given import FilePath, is_path, opened, options_of
from verix_anon.client.ledger import Ledger
from verix_anon.client.manifest import Manifest, read_manifest
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.release import accept, join, present, privacy
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.present import Presentation, Representation
from verix_anon.client.release.sheet import Sheet
from verix_anon.client.table.digest import table_digest
from verix_anon.client.table.encode import arrow_columns, encode
from verix_anon.client.table.roles import Declared, TableRole
from verix_anon.client.verdict import Profile, Verdict, read_verdict
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.files.deliveries import Snapshot
from verix_anon.files.store import check_apart, check_free
from verix_anon.files.tables import check_table_name, read_table, table_aside
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Delivery

__all__ = ["ReleaseOptions", "Released", "Representation", "release"]

TableT = TypeVar("TableT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions(Presentation):
    """How to release; `force` overrides a verdict and the ledger, never the check of the table."""

    person: str | None = None
    """The column that names people, if one person may have several records."""
    shuffle: bool = False
    """Put the rows in an order from the operating system's randomness."""
    force: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Released(Generic[TableT]):
    """A table to publish, and what was measured on it."""

    root: Digest
    """Of the delivery it was made from."""
    table: TableT
    sheet: Sheet
    n_classes: int
    """How many classes of records look alike in the table."""
    n_coarsened: int
    """Records whose leaf held too few people, so that it was merged with its neighbours."""
    largest_coarsened: int
    """Records of the largest class so made, 0 if none was."""
    imputed: Mapping[str, int]
    overridden: tuple[str, ...]
    """What `force` passed over."""
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"<Released: {self.sheet.n_records:,} records in {self.n_classes:,} classes,"
            f" k {self.sheet.k:,}, {len(self.warnings)} warning(s)>"
        )

    def _repr_html_(self) -> str:
        return as_table(self.sheet.facts().items()) + as_list((*self.overridden, *self.warnings))

    def to_json(self) -> str:
        """The privacy sheet as JSON, with the root, the warnings and what was overridden."""
        return json.dumps(
            {
                **self.sheet.to_dict(),
                "root": self.root.hex(),
                "warnings": list(self.warnings),
                "overridden": list(self.overridden),
                "coarsened": self.n_coarsened,
            },
            indent=1,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """The owner's table, read once: its columns, what was sent of them, and the people."""

    arrays: Mapping[str, pa.Array]
    values: Floats
    person_of_row: Ints | None

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[1])


@overload
def release(
    delivery: Delivery | Snapshot | FilePath,
    manifest: Manifest | FilePath,
    verdict: Verdict | FilePath | None,
    *,
    table: FilePath,
    out: FilePath | None = None,
    overwrite: bool = False,
    options: ReleaseOptions | None = None,
    ledger: Ledger | FilePath | None = None,
) -> Released[pa.Table]: ...


@overload
def release(
    delivery: Delivery | Snapshot | FilePath,
    manifest: Manifest | FilePath,
    verdict: Verdict | FilePath | None,
    *,
    table: TableT,
    out: FilePath | None = None,
    overwrite: bool = False,
    options: ReleaseOptions | None = None,
    ledger: Ledger | FilePath | None = None,
) -> Released[TableT]: ...


def release(
    delivery: Delivery | Snapshot | FilePath,
    manifest: Manifest | FilePath,
    verdict: Verdict | FilePath | None,
    *,
    table: object,
    out: FilePath | None = None,
    overwrite: bool = False,
    options: ReleaseOptions | None = None,
    ledger: Ledger | FilePath | None = None,
) -> Released[Any]:
    """Turn an accepted delivery into a table of the kind that was given.

    Args:
        delivery: What the provider returned: in memory, or the folder or URL of its files.
        manifest: What prepare() kept, or its file.
        verdict: What verify() found about this very delivery, or its file.
        table: The owner's table, as it was prepared, or its file.
        out: Write the table here: .csv, .tsv or .parquet. None: it is only returned.
        overwrite: Replace a file that is there.
        options: What to publish, and how.
        ledger: The releases so far; this one is added before the table appears under its name.
            None: no memory of releases.

    Raises:
        NotAcceptedError: There is no accepted verdict on this delivery, or the records cannot
            be released with k, or the table was released before.
        TableError: The table is not the one that was prepared, or an option does not fit it.
    """
    options = options_of(options, ReleaseOptions)
    if out is not None:
        check_table_name(out)
        check_apart(out, filter(is_path, (delivery, manifest, verdict, table)))
        check_free(out, overwrite=overwrite)
    ledger = None if ledger is None else opened(ledger, Ledger, Ledger, "ledger")
    manifest = opened(manifest, Manifest, read_manifest, "manifest")
    verdict = None if verdict is None else opened(verdict, Verdict, read_verdict, "verdict")
    # 1. The table is the one that was prepared, and the options fit it.
    table = read_table(table) if is_path(table) else table
    source = _read(table, manifest, options)
    # 2. The verdict accepts this very delivery, and the table was not released before.
    judged = accept.read(delivery, manifest)
    bare = accept.bare(judged)
    earlier = () if ledger is None else ledger.seen(manifest.table)
    overridden = accept.check(judged, manifest, verdict, earlier, force=options.force)
    # 3. Traps drop out, each genuine row has its leaf, and leaves with too few people join others.
    genuine = join.Genuine(
        leaf_of_row=_align(bare, manifest, source.n_rows),
        person_of_row=source.person_of_row,
        values=source.values,
        is_category=np.array([c.categories is not None for c in manifest.quasi]),
    )
    joined = join.join(bare.tree, genuine, manifest.contract.k, [])
    class_of_row = joined.class_of_leaf[genuine.leaf_of_row]
    # 4. Classes become columns.
    classes = _present(class_of_row, joined.n_classes, source, manifest, options)
    published = _assemble(table, manifest, classes, options)
    # 5. What they give away is measured.
    sheet = _measure(classes, source, manifest, options, None if ledger is None else len(earlier))
    assert sheet.k >= manifest.contract.k
    warnings = (*sheet.warnings, *_warnings(table, manifest, verdict, options))
    # 6. A release counts when it is written, and no table appears that does not count.
    with nullcontext() if out is None else table_aside(published, out, overwrite=overwrite):
        if ledger is not None:
            warnings += ledger.warnings()
            ledger.record(manifest.table, bare.header.root)
    merged = classes.grouped.count[joined.is_joined]
    return Released(
        root=bare.header.root,
        table=published,
        sheet=sheet,
        n_classes=sheet.n_classes,
        n_coarsened=int(merged.sum()),
        largest_coarsened=int(merged.max(initial=0)),
        imputed=dict(manifest.imputed),
        overridden=overridden,
        warnings=warnings,
    )


def _read(table: object, manifest: Manifest, options: ReleaseOptions) -> _Source:
    """Check the table, and encode it as it was encoded to be sent."""
    if not hmac.compare_digest(table_digest(table), manifest.table):
        raise TableError(
            "the table is not the one that was prepared: its names, order, types or values differ"
        )
    person = options.person
    options.check(manifest.quasi)
    encoded = encode(table, _declared(manifest))
    if encoded.quasi != manifest.quasi:
        raise TableError("the manifest's columns do not fit the table")
    arrays = arrow_columns(table)
    if person is not None and person not in arrays:
        raise TableError(
            f"there is no column {person!r} to count people by; the columns are"
            f" {', '.join(map(repr, arrays))}"
        )
    people = None if person is None else privacy.person_numbers(arrays[person])
    return _Source(arrays, encoded.values, people)


def _declared(manifest: Manifest) -> Declared:
    """What the owner declared, as far as it tells how the table is encoded."""
    with_role = {
        role: [name for name, given in manifest.roles.items() if given == role]
        for role in TableRole
    }
    return Declared(
        target=manifest.target,
        quasi=with_role[TableRole.QUASI],
        identifier=with_role[TableRole.IDENTIFIER],
        kept=with_role[TableRole.KEPT],
        sensitive=with_role[TableRole.SENSITIVE],
        kinds={column.name: column.kind for column in manifest.quasi},
        orders={c.name: c.categories for c in manifest.quasi if c.categories is not None},
        missing=manifest.missing,
        task=manifest.task,
    )


def _align(delivery: Delivery, manifest: Manifest, n_rows: int) -> Ids:
    """The leaf of each of the owner's rows, by row number; traps drop out."""
    owner_row, records = manifest.owner_row, delivery.records
    if not np.array_equal(np.sort(owner_row[owner_row >= 0]), np.arange(n_rows)):
        raise TableError("the manifest does not name every row of the table once")
    is_sent = (records.row >= 0) & (records.row < owner_row.size)
    owner = np.where(is_sent, owner_row[np.where(is_sent, records.row, 0)], -1)
    is_genuine = owner >= 0
    times = np.bincount(owner[is_genuine], minlength=n_rows)
    if (times != 1).any():
        raise NotAcceptedError(
            f"the rows cannot be aligned: of {n_rows} genuine records {(times == 0).sum()} are"
            f" missing and {(times > 1).sum()} came back more than once"
        )
    leaf_of_row = np.empty(n_rows, np.int32)
    leaf_of_row[owner[is_genuine]] = records.leaf[is_genuine]
    return leaf_of_row


@dataclass(frozen=True, slots=True, eq=False)
class _Classes:
    """The classes, and what is published of each."""

    of_row: Ints
    grouped: Grouped
    ranges: list[present.Range]
    columns: Mapping[str, Mapping[str, pa.Array]]
    """For each quasi-identifier its published columns, with one value per class."""


def _present(
    class_of_row: Ints,
    n_classes: int,
    source: _Source,
    manifest: Manifest,
    options: ReleaseOptions,
) -> _Classes:
    grouped = Grouped.by(class_of_row, n_classes)
    types = {name: array.type for name, array in source.arrays.items()}
    found = present.ranges(manifest.quasi, source.values, types, grouped, options)
    columns = {
        r.column.name: present.represent(r, Representation(options.representation), grouped.count)
        for r in found
    }
    return _Classes(class_of_row, grouped, found, columns)


def _assemble(
    table: object, manifest: Manifest, classes: _Classes, options: ReleaseOptions
) -> object:
    """The owner's table with identifiers out and quasi-identifiers as published."""
    frame = nw.from_native(table, eager_only=True)  # type: ignore[call-overload]
    names: list[str] = []
    for name in frame.columns:
        if manifest.roles[name] != TableRole.IDENTIFIER:
            names.extend(classes.columns.get(name, [name]))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"the release would have two columns {twice!r}; rename the one there is")
    rows = pa.array(classes.of_row)
    new = {name: array for of_one in classes.columns.values() for name, array in of_one.items()}
    with ThreadPoolExecutor() as pool:
        published = pa.table(
            list(pool.map(lambda array: array.take(rows), new.values())), list(new)
        )
    columns = nw.from_arrow(published, backend=frame.implementation)
    frame = frame.with_columns(*(columns[name] for name in new)).select(names)
    if options.shuffle:
        keys = np.frombuffer(os.urandom(8 * classes.of_row.size), np.uint64)
        # A pandas index would tell the old order.
        frame = nw.maybe_reset_index(frame[np.argsort(keys)])
    return frame.to_native()


def _measure(
    classes: _Classes,
    source: _Source,
    manifest: Manifest,
    options: ReleaseOptions,
    released_before: int | None,
) -> Sheet:
    """The privacy sheet; the target is measured as the category it is."""
    attributes = []
    for name, array in source.arrays.items():
        role = manifest.roles[name]
        if role in (TableRole.TARGET, TableRole.KEPT, TableRole.SENSITIVE):
            column = privacy.attribute(name, role, array)
            is_ordered = column.is_ordered and role != TableRole.TARGET
            attributes.append(privacy.Attribute(name, role, column.codes, is_ordered))
    published = [array for columns in classes.columns.values() for array in columns.values()]
    return Sheet.of(
        privacy.Members.alike(classes.of_row, published, source.person_of_row),
        attributes,
        privacy.ncp(_spans(classes.ranges, source.values), classes.grouped.count),
        k=manifest.contract.k,
        counted_by=options.person or "record",
        released_before=released_before,
    )


def _spans(found: Sequence[present.Range], values: Floats) -> privacy.Spans:
    """Published bounds beside the range of each column; a capped end reaches to its limit."""
    low, high = values.min(axis=1), values.max(axis=1)
    for j, r in enumerate(found):
        if r.column.categories is not None:
            low[j], high[j] = 0, len(r.column.categories) - 1
    return privacy.Spans(
        np.column_stack([np.where(r.is_below, low[j], r.low) for j, r in enumerate(found)]),
        np.column_stack([np.where(r.is_above, high[j], r.high) for j, r in enumerate(found)]),
        low,
        high,
    )


def _warnings(
    table: object, manifest: Manifest, verdict: Verdict | None, options: ReleaseOptions
) -> tuple[str, ...]:
    """What else the owner should know."""
    found = []
    if manifest.unsafe_seed:
        found.append("the submission was made with an unsafe seed: its traps can be foreseen")
    if verdict is not None and verdict.profile is Profile.PAPER:
        found.append("the verdict is of profile paper, which does not check every record")
    if options.person is not None:
        role = manifest.roles[options.person]
        if role in (TableRole.KEPT, TableRole.SENSITIVE):
            found.append(
                f"the person column {options.person!r} is published: all records of a person"
                " can be linked; make it an identifier"
            )
    index = nw.maybe_get_index(nw.from_native(table, eager_only=True))
    # A RangeIndex only numbers the rows; by name, for pandas may not be installed.
    if index is not None and not options.shuffle and type(index).__name__ != "RangeIndex":
        found.append("the index of the pandas table is published as it is")
    return tuple(found)
