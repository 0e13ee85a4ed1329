"""release(): an accepted delivery as a table, without traps and with k re-checked (spec §12).

Proves: every class of the published table holds at least k people and hides what the owner
asks for, counted on the genuine records, and each interval is that of its class's own records,
capped at the ends of its column. The provider decides only which records lie together.
Never published: the tree, leaf numbers and counts; they undo the joining and expose traps.

The modules, in the order of the work:

    acceptance      the leaves of a delivery, the verdict on it, and earlier releases of the table
    source          the owner's table, checked to be the one that was prepared
    join            leaves into classes; `grouping` keeps the rows of each group
    representation  how each quasi-identifier is to be published
    ranges          what each class holds of a column, with its ends capped (`classes`)
    cells           what is written of it, and how it is described
    classes         the steps from `join` to `cells` for all columns, measured by `privacy`
    row_order       the order of the published rows, and what the table's own would give away
    published       the published table, its dictionary, and the files
    preview         a look at a release before it is one
    read_back       a released table as numbers and sets of labels
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import pyarrow as pa

from verix_anon.client.arguments import FilePath, is_path, opened, options_of
from verix_anon.client.audit_log import AuditLog
from verix_anon.client.ledger import Ledger, LookedAt
from verix_anon.client.manifest import Manifest, read_manifest
from verix_anon.client.owner_files import read_verdict
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.privacy_sheet import Conditions, check_gate_names, check_gates
from verix_anon.client.release import row_order
from verix_anon.client.release.acceptance import check_verdict, count_release, read_leaves
from verix_anon.client.release.cells import MOST_TEXTS
from verix_anon.client.release.classes import join_leaves
from verix_anon.client.release.published import (
    OutputFiles,
    Released,
    as_numbers,
    assemble,
    schema_json,
    sheets_of,
)
from verix_anon.client.release.representation import Presentation, Representation
from verix_anon.client.release.source import Source, read_source
from verix_anon.client.table.columns import columns_of, owned, reading_of
from verix_anon.client.table.guess import prose_warnings
from verix_anon.client.table.owner_table import RECORD
from verix_anon.client.table.roles import ATTRIBUTES, Asked, Measure, check_asked
from verix_anon.client.verdict import Profile, Verdict
from verix_anon.errors import TableError
from verix_anon.files.deliveries import Snapshot
from verix_anon.files.store import path_text
from verix_anon.files.tables import Reading, TextForm
from verix_anon.files.tables.file_kinds import SHEET_SUFFIXES
from verix_anon.files.tables.table_writer import FORMS
from verix_anon.machine import check_memory
from verix_anon.progress import Progress, ignore
from verix_anon.protocol.messages import Delivery

if TYPE_CHECKING:
    from verix_anon.client.series import Series

__all__ = ["ReleaseOptions", "Released", "Representation", "release"]

TableT = TypeVar("TableT")
Memory = TypeVar("Memory", Ledger, AuditLog)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions(Presentation):
    """How to release; `force` overrides a verdict and the ledger, never the check of the table.

    Examples:
        >>> options = verix_anon.ReleaseOptions(l=2, round_to={"age": 5})
        >>> job = ("job/delivery", "job/manifest.verix", "job/verdict.json")
        >>> released = verix_anon.release(*job, table="people.csv", options=options)
    """

    person: str | None = None
    """The column that tells people apart, or `record`; None: as said at prepare()."""
    pseudonym: str | None = None
    """A column with a fresh random number for each person; None: as said at prepare()."""
    keep_order: bool = False
    """Leave the rows in the order of the table, which can undo the release; else it is random."""
    form: str = ""
    """How a text table is written: plain, excel, excel-de, decimal=comma and others (spec §12);
    empty: as the input was."""
    force: bool = False
    l: float | Mapping[str, float] | None = None  # noqa: E741
    """At least so many values in every class: of the target, or of each column named."""
    cap: float | Mapping[str, float] | None = None
    """At most this share of the records, and of the people, of every class have one value."""
    t: float | Mapping[str, float] | None = None
    """At most this distance of every class to the whole table, by records and by people."""
    require: Mapping[str, float] = field(default_factory=dict)
    """What the release must reach, or nothing is published: k, l, cap, t, risk and others."""
    progress: Progress = ignore

    def __post_init__(self) -> None:
        Presentation.__post_init__(self)
        check_gate_names(self.require)

    def asked(self, manifest: Manifest) -> Asked:
        """Return what each column must hide; these options win over the manifest."""
        diversity = manifest.diversity.items()
        # A column that is not published has nothing to hide.
        found = {name: dict(asked) for name, asked in diversity if name not in self.drop}
        for measure in Measure:
            given = getattr(self, measure)
            if isinstance(given, Real):
                if manifest.target is None:
                    raise TableError(f"there is no target; {measure} needs the column it is for")
                given = {manifest.target: given}
            for name, value in (given or {}).items():
                if name in self.drop:
                    raise TableError(f"column {name!r} is dropped: ask nothing of it")
                found.setdefault(name, {})[measure.value] = value
        check_asked(found, manifest.roles)
        return found

    def decides(self, asked: Asked) -> dict[str, object]:
        """Return the options that decide which rows are published, and in which order."""
        others = {*Measure, "form", "force", "require", "progress"}
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {n: value for n, value in given.items() if n not in others} | {"asked": asked}


@overload
def release(
    delivery: Delivery | Snapshot | FilePath,
    manifest: Manifest | FilePath,
    verdict: Verdict | FilePath | None,
    *,
    table: FilePath,
    out: FilePath | None = None,
    sheet: FilePath | None = None,
    overwrite: bool = False,
    options: ReleaseOptions | None = None,
    ledger: Ledger | FilePath | None = None,
    log: AuditLog | FilePath | None = None,
    series: "Series | FilePath | None" = None,
) -> Released[pa.Table]: ...


@overload
def release(
    delivery: Delivery | Snapshot | FilePath,
    manifest: Manifest | FilePath,
    verdict: Verdict | FilePath | None,
    *,
    table: TableT,
    out: FilePath | None = None,
    sheet: FilePath | None = None,
    overwrite: bool = False,
    options: ReleaseOptions | None = None,
    ledger: Ledger | FilePath | None = None,
    log: AuditLog | FilePath | None = None,
    series: "Series | FilePath | None" = None,
) -> Released[TableT]: ...


def release(
    delivery: Delivery | Snapshot | FilePath,
    manifest: Manifest | FilePath,
    verdict: Verdict | FilePath | None,
    *,
    table: object,
    out: FilePath | None = None,
    sheet: FilePath | None = None,
    overwrite: bool = False,
    options: ReleaseOptions | None = None,
    ledger: Ledger | FilePath | None = None,
    log: AuditLog | FilePath | None = None,
    series: "Series | FilePath | None" = None,
) -> Released[Any]:
    """Turn an accepted delivery into a table of the kind that was given.

    A stream comes back as a pyarrow table, and a LazyFrame as a DataFrame.

    Args:
        delivery: What the provider returned: in memory, or the folder or URL of its files.
        manifest: What prepare() kept, or its file.
        verdict: What verify() found about this very delivery, or its file.
        table: The owner's table, as it was prepared, or its file, which is read as it was then.
        out: Write the table here, as .csv, .tsv, .parquet, .feather, .xlsx, .sav or .dta, and its
            dictionary beside it as NAME.schema.json. None: it is only returned.
        sheet: Write the privacy sheet here, as JSON. It is there before the table is.
        overwrite: Replace files that are there.
        options: What to publish, and how.
        ledger: The releases so far; this one is added before the table appears under its name.
            None: no memory of releases.
        series: The series that the release becomes part of. People who would fall below its l
            over all of its releases wait for a later release. It needs `out`.
        log: The audit log: a VIOLATION in it overrides an older or weaker pass, and so does
            a line that was removed or changed. None: no memory of verdicts.

    Raises:
        GateError: The release does not reach what `require` asks of it.
        NotAcceptedError: There is no accepted verdict on this delivery, or the records cannot
            be released with k, or something else was released of the table before.
        TableError: The table is not the one that was prepared, or an option does not fit it.

    Examples:
        >>> job = ("job/delivery", "job/manifest.verix", "job/verdict.json")
        >>> released = verix_anon.release(*job, table="people.csv", out="new.csv")
        >>> released.table.num_rows
        600
    """
    options = options_of(options, ReleaseOptions)
    files = OutputFiles.check(out, sheet, (delivery, manifest, verdict, table), overwrite)
    ledger, log = _opened(ledger, Ledger, "ledger"), _opened(log, AuditLog, "log")
    manifest = opened(manifest, Manifest, read_manifest, "manifest")
    verdict = None if verdict is None else opened(verdict, Verdict, read_verdict, "verdict")
    options = options.beside(manifest.release, manifest.quasi)
    _check_memory(manifest)
    options.check_names(manifest.roles)
    # 1. The table is the one that was prepared, and the options fit it.
    options.progress("read", 0, 1)
    is_sheet = is_path(table) and path_text(table).lower().endswith(SHEET_SUFFIXES)
    table, reading, _ = owned(table, reading_of(manifest))
    usual = FORMS["excel"] if is_sheet else TextForm.like(reading or Reading())
    form = usual.changed(options.form)
    # Read the delivery beside the table, and keep only its leaves. Its errors come second.
    with ThreadPoolExecutor(1) as before:
        delivered = before.submit(read_leaves, delivery, manifest)
        source = read_source(table, manifest, options.person, options)
    asked = options.asked(manifest)
    looked = isinstance(ledger, LookedAt)
    if series is not None and out is None and not looked:
        raise TableError("a series remembers the published file: give its path as out")
    growing = None
    if series is not None:
        # Only a series needs it.
        from verix_anon.client.series import Series

        growing = opened(series, Series, Series, "series").begin(manifest, source, table)
    # 2. The verdict accepts this very delivery, and the table was not released before.
    leaves = delivered.result()
    decides = options.decides(asked) | ({} if growing is None else {"series": growing.place})
    persons = columns_of(table)[source.person] if source.person else None
    tables = () if growing is None else [each.table for each in growing.memory.releases]
    counted = count_release(ledger, leaves, manifest, decides, persons, tables)
    against, force = counted.problems, options.force
    # Read the ledger before the log, so that no line that is added in between is missed.
    remembered = () if ledger is None else ledger.audited(manifest.table)
    logged = None if log is None else log.read(manifest.submission, remembered)
    overridden = check_verdict(leaves, manifest, verdict, against, logged=logged, force=force)
    options.progress("read", 1, 1)
    # 3. Traps drop out, each genuine row has its leaf, and leaves that fall short join others.
    conditions = Conditions(
        k_agreed=manifest.contract.k,
        enforced=asked,
        counted_by=source.person or RECORD,
        released_before=counted.n_earlier,
        missing=dict(manifest.imputed),
        missing_as=manifest.missing,
    )
    options.progress("classes", 0, 1)
    given = leaves.tree, leaves.leaf_of_row(), source, conditions, Secret(manifest.salt)
    choose = None if growing is None else growing.withholding.kept
    classes = join_leaves(*given, suppress=options.suppress, choose=choose)
    source = classes.source
    # 4. Classes become columns, and rows lose their order unless it is to stay.
    in_order = (row_order.warning(classes, options),) if options.keep_order else ()
    written = classes.write(options, last=True)
    chained = None
    if growing is not None:
        rows = np.arange(source.n_rows) if source.rows is None else source.rows
        chained = growing.over_time(written.members(source.person_of_row), rows)
    pseudonym = manifest.pseudonym if options.pseudonym is None else options.pseudonym or None
    is_model = options.representation is Representation.MODEL
    as_they_are = source.kept.items() if is_model else ()
    model = [as_numbers(name, manifest.roles[name], array) for name, array in as_they_are]
    published = assemble(
        *(table, source, written, model),
        keep_order=options.keep_order,
        pseudonym=pseudonym,
        derived=manifest.derived,
    )
    options.progress("classes", 1, 1)
    options.progress("write", 0, 1)
    # 5. What they give away is measured, and what was asked for is checked once more.
    with ThreadPoolExecutor(1) as beside:
        linked_by = pseudonym or (source.person if source.person in source.kept else None)
        measuring = beside.submit(classes.measure, written, linked_by)
        # 6. A release counts when it is written, and no table appears that does not count.
        to_write = published.marked(written.cells, form.decimal)
        fitting = form.holding(to_write.parts()) if out else form
        cells = (*written.cells, *model)
        types = {**source.types, **{n: source.kept[n].type for n in source.changed}}
        schema = schema_json(published.names, types, manifest.roles, cells, fitting, source.changed)
        with files.table_aside(
            to_write.parts(), fitting, lambda: sheets_of(schema, measuring.result()), to_write.texts
        ) as aside:
            found = replace(measuring.result(), over_time=chained)
            check_gates(options.require, found)
            warned = [*_warnings(manifest, verdict, source), *found.warnings, *in_order]
            warned += [*counted.warnings, *(logged.warnings() if logged else ())]
            if fitting != form:
                lacks = f"The table is written as UTF-8: {form.encoding} lacks some characters."
                warned.append(lacks)
            # Lost detail does no harm, so it is told last.
            warned.sort(key=lambda warning: "less than a third is left" in warning)
            found = replace(
                found,
                root=leaves.header.root,
                warnings=tuple(warned),
                overridden=overridden,
            )
            with files.texts_aside(found.to_json(), schema) as beside_it:
                held: AbstractContextManager[None] = nullcontext()
                adding: AbstractContextManager[None] = nullcontext()
                if growing is not None and aside is not None and not looked:
                    claim = counted.claim
                    held = growing.held(claim.release)
                    adding = growing.adding(claim.root, claim.release, aside.path)
                # The ledger must not count what the series refuses.
                with held:
                    counted.name(beside_it, aside, adding)
    return Released[Any](published, found)


def _opened(given: Memory | FilePath | None, kind: type[Memory], what: str) -> Memory | None:
    return None if given is None else opened(given, kind, kind, what)


def _check_memory(manifest: Manifest) -> None:
    """Refuse a release that does not fit into memory.

    It needs room for the values or cells of quasi-identifiers and for the other columns. While the
    table is written, the texts of up to MOST_TEXTS classes are there once more.
    """
    n_rows, n_quasi = manifest.n_genuine, len(manifest.quasi)
    n_others = sum(role in ATTRIBUTES for role in manifest.roles.values())
    n_texts = n_quasi * min(n_rows // manifest.contract.k, MOST_TEXTS)
    check_memory(
        n_rows * (60 + 11 * n_quasi + 20 * n_others) + 45 * n_texts,
        f"releasing {n_rows:,} records with {n_quasi} quasi-identifiers",
        TableError,
    )


def _warnings(manifest: Manifest, verdict: Verdict | None, source: Source) -> tuple[str, ...]:
    """What else the owner should know."""
    found = [*prose_warnings(source.quasi, source.kept, manifest.roles)]
    if manifest.unsafe_seed:
        found.append(
            "The submission was made with an unsafe seed, so its traps can be foreseen. Prepare it"
            " again without a seed."
        )
    if verdict is not None and verdict.profile is Profile.PAPER:
        found.append(
            "The verdict has the profile paper, which does not check every record. Verify with the"
            " submission at hand."
        )
    if source.person in source.kept:
        found.append(
            f"The person column {source.person!r} is published, so all records of a person can be"
            " linked. Make it an identifier, which is left out."
        )
    return tuple(found)
