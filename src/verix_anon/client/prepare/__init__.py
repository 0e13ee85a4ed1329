"""prepare(): from the owner's table to a submission to send and a manifest to keep (spec §7)."""

import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from verix_anon.client.arguments import FilePath, is_path, opened, options_of
from verix_anon.client.audit_subject import parted, seen, taken
from verix_anon.client.ledger import Event, Ledger
from verix_anon.client.manifest import Manifest
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.prepare.contract_columns import check_sent, send, sent_columns
from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.prepare.trackers import Part, Secret, assemble
from verix_anon.client.prepare.traps import Planted, Traps, choose_twins, moved, plant
from verix_anon.client.release.classes import check_reachable
from verix_anon.client.release.privacy import attribute
from verix_anon.client.release.representation import remedies_of
from verix_anon.client.table.columns import Columns, columns_of, index_warnings, owned, with_derived
from verix_anon.client.table.guess import prose_warnings
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.table.owner_table import (
    RECORD,
    OwnerTable,
    person_column,
    person_numbers,
    read_owner_table,
)
from verix_anon.client.table.roles import ATTRIBUTES, Declared, Missing
from verix_anon.client.table.roles_file import USUAL_K, read_reading, read_roles
from verix_anon.client.table.task import TableRole, Task
from verix_anon.errors import TableError
from verix_anon.machine import check_memory, give_back
from verix_anon.protocol.contract import Commitment, Contract, Kind, Rule
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.records import check_count

if TYPE_CHECKING:
    from verix_anon.client.series import Series

__all__ = ["PrepareOptions", "Prepared", "prepare"]

TWICE = (
    "anyone who has two submissions of one table can find its traps, which are not in both;"
    " send only one of them"
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prepared:
    """What prepare() made: one part to send, one to keep.

    Examples:
        >>> prepared = verix_anon.prepare("people.csv", target="income", quasi="all", k=5)
        >>> verix_anon.write_submission(prepared.submission, "new/submission")
        >>> verix_anon.write_manifest(prepared.manifest, "new/manifest.verix")
    """

    submission: Submission
    manifest: Manifest
    warnings: tuple[str, ...] = ()

    def facts(self) -> dict[str, object]:
        """What may be told: counts and probabilities, no secret."""
        manifest = self.manifest
        return {
            "submission": manifest.submission.hex(),
            "records": manifest.n_rows,
            "genuine": manifest.n_genuine,
            "watch": int(manifest.watch_row.size),
            "witnesses": len(manifest.witnesses),
            "imputed": dict(manifest.imputed),
            "unsafe_seed": manifest.unsafe_seed,
            "columns": parted(manifest),
            "target": taken(manifest),
            "provider_sees": seen(manifest.contract),
            "warnings": list(self.warnings),
            **manifest.planted,
        }

    def _repr_html_(self) -> str:
        sent = ", ".join(column.name for column in self.submission.contract.columns)
        counts = ("records", "genuine", "sentinels", "twins", "watch", "witnesses")
        rows = [(name, f"{self.facts()[name]:,}") for name in counts]
        return as_table([*rows, ("columns sent", sent)]) + as_list(
            [taken(self.manifest), *seen(self.manifest.contract), *self.warnings]
        )


def prepare(
    table: object,
    *,
    target: str | None = None,
    quasi: Sequence[str] | str | None = None,
    identifier: Sequence[str] | str | None = None,
    kept: Sequence[str] | str | None = None,
    sensitive: Sequence[str] | str | None = None,
    kinds: Mapping[str, Kind | str] | None = None,
    orders: Mapping[str, Sequence[str]] | None = None,
    hierarchies: Mapping[str, Hierarchy | str] | None = None,
    positive: object = None,
    missing: Missing | str | None = None,
    task: Task | str | None = None,
    person: str | None = None,
    roles: Declared | FilePath | None = None,
    k: int | None = None,
    options: PrepareOptions | None = None,
    ledger: Ledger | FilePath | None = None,
    series: "Series | FilePath | None" = None,
) -> Prepared:
    """Prepare a table for a provider.

    Every column needs a role: from `roles`, or by the keywords from `target` to `hierarchies`.

    Args:
        table: A pandas, polars or pyarrow table, whatever else gives a stream of Arrow data, the
            file of one, or what read_table_as() gave.
        target: The column to preserve: two classes, more, or a quantity.
        quasi: Columns to generalize, or "all": all that are not named otherwise.
        identifier: Columns that name people: dropped for good.
        kept: Columns never sent, joined back at release.
        sensitive: Like kept, and measured by the privacy sheet.
        kinds: Columns that are not what they look like: numeric, categorical or datetime.
        orders: The order of a column's categories.
        hierarchies: Names for groups of a column's values: prefix, date, or a file in ARX's form.
        positive: The target's value that is class 1.
        missing: What to do with missing values: mark (the default), impute or error.
        task: What the target is: classes, quantity, or none; None: what it looks like.
        person: The column that tells people apart, or "record"; must be said where an identifier
            repeats, for k counts people.
        roles: The file that `verix-anon init` drafted, edited.
        k: Every class of the release holds at least this many persons; 5 if nothing is said.
        options: Rule, weights, coding, traps, witnesses, calibration, commitment, names for the
            report; if not given, what the roles file says of them.
        ledger: The tables prepared so far; this one is added, and a second submission of one
            table is warned of. None: no memory of submissions.
        series: The series that the release is to be part of; it has the roles, k, l, cap and t.

    Raises:
        TableError: The table does not fit; the message says what to do.
        ContractError: k or the names cannot be agreed on.

    Examples:
        >>> prepared = verix_anon.prepare("people.csv", target="income", quasi="all", k=5)
        >>> prepared.submission.contract.k
        5
    """
    growing = None
    if series is not None:
        # Only a series needs it.
        from verix_anon.client.series import Series

        growing = opened(series, Series, Series, "series")
        roles = growing.roles if roles is None else roles
    if options is None and is_path(roles):
        options = PrepareOptions.of_roles(roles)
    options = options_of(options, PrepareOptions)
    ledger = None if ledger is None else opened(ledger, Ledger, Ledger, "ledger")
    columns = _given(
        target=target,
        quasi=quasi,
        identifier=identifier,
        kept=kept,
        sensitive=sensitive,
        kinds=kinds,
        orders=orders,
        hierarchies=hierarchies,
    )
    drafted_k, declared = _declared(roles, columns)
    beside = _given(positive=positive, missing=missing, task=task, person=person)
    declared = replace(declared, **beside)
    if declared.target is None and declared.task != Task.NONE:
        raise TableError(
            "name the column to preserve with --target COLUMN (target), or say with --task none"
            ' (task="none") that there is none'
        )
    if growing is not None:
        memory = growing.memory()
        declared, k = replace(declared, diversity=memory.diversity), memory.k if k is None else k
    table, reading, notes = owned(table, read_reading(roles) if is_path(roles) else None)
    warnings = (*notes, *index_warnings(table))
    submission, manifest, prose = _prepare(table, declared, drafted_k if k is None else k, options)
    warnings += prose
    if growing is not None:
        growing.check(manifest)
    manifest = replace(manifest, reading=None if reading is None else reading.to_json())
    if ledger is not None:
        warnings += ledger.warnings()
        if earlier := ledger.record(Event.PREPARE, manifest.table, manifest.submission):
            before = f"this table was prepared before ({earlier[-1].time})"
            warnings += (f"{before}: {TWICE}",)
    return Prepared(submission=submission, manifest=manifest, warnings=warnings)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _declared(roles: Declared | FilePath | None, columns: dict[str, Any]) -> tuple[int, Declared]:
    """K and the roles, from the file or from the keywords."""
    if roles is not None and columns:
        raise TableError("give the roles in the file or one by one, not both")
    if isinstance(roles, Declared):
        return USUAL_K, roles
    if roles is not None:
        return read_roles(roles)
    if "quasi" not in columns:
        raise TableError(
            "there is no quasi-identifier: run verix-anon init first and give --roles, or"
            ' name the columns with --quasi (quasi), or "all"'
        )
    return USUAL_K, Declared(**columns)


def _prepare(
    given: object, declared: Declared, k: int, options: PrepareOptions
) -> tuple[Submission, Manifest, tuple[str, ...]]:
    columns = with_derived(columns_of(given), declared.made)
    roles = declared.roles(columns.names)
    _check_memory(columns, roles, options.threads)
    options.progress("encode", 0, 1)
    person_column(columns, declared.naming(roles), declared.person)
    table = read_owner_table(columns, declared, threads=options.threads)
    values = [table.of_quasi(j, last=True) for j in range(len(table.quasi))]
    give_back()
    labels, n_rows = table.labels, table.n_rows
    seed = options.unsafe_seed
    secret = Secret.fresh() if seed is None else Secret.unsafe_from_seed(seed)
    agreed = _agreed(table, k, options, secret)
    _check_enough(columns, roles, declared, agreed)
    remedies_of(declared.release, table.quasi).check_names(roles)
    others = {name: columns[name] for name, role in roles.items() if role in ATTRIBUTES}
    prose = prose_warnings(table.quasi, others, roles)
    options.progress("encode", 1, 1)
    # Compiled code is loaded once the table is known to fit, and not by a release.
    from verix_anon.client.prepare.expectations import Keeping, Watch

    planted, twins = Planted(), np.empty(0, np.int64)
    if options.traps is not Traps.NONE:
        options.progress("sentinels", 0, 1)
        planted = plant(values, labels, options, secret)
        twins = choose_twins(n_rows, secret.generator("twins"))
        options.progress("sentinels", 1, 1)
    options.progress("positions", 0, 1)
    rng = secret.generator("sentinels/noise")
    moving = moved(values, table.quasi, planted.origin, rng)
    sent = send(table, values, moving, options, secret)
    give_back()
    contract = replace(agreed, columns=sent.columns)
    options.progress("positions", 1, 1)
    options.progress("trackers", 0, 1)
    watch = Watch.of(sent.values, labels, secret)
    with ThreadPoolExecutor(1) as beside:
        # Trackers leave one core idle.
        fitted = beside.submit(watch.fingerprint)
        parts = {
            "genuine": Part(sent.values, sent.target),
            "sentinel": Part(sent.moved, sent.target[planted.origin]),
            "twin": Part([column[twins] for column in sent.values], sent.target[twins]),
        }
        assembled = assemble(contract, parts, secret, threads=options.threads)
        give_back()
        submission = Submission(contract=contract, records=assembled.records)
        options.progress("trackers", 1, 1)
        keeping = Keeping(submission, assembled, table, watch, secret, options)
        manifest = keeping.manifest(fitted.result, declared, twins, planted)
    return submission, manifest, prose


def _check_memory(columns: Columns, roles: Mapping[str, TableRole], threads: int) -> None:
    """Refuse a table that will not fit, before hours are spent on it."""
    n_rows, n_quasi = columns.n_rows, sum(role is TableRole.QUASI for role in roles.values())
    # As measurement has it: first all values, and each thread reads or sorts a column, where text
    # takes most; then all that is sent, trackers, rows, and what threads need to find witnesses.
    threads = min(threads, n_quasi)
    coding = 16 + 8 * n_quasi + 90 * threads
    finding = 85 + 9 * n_quasi + 20 * threads
    check_memory(
        n_rows * max(coding, finding),
        f"preparing {n_rows:,} records with {n_quasi} quasi-identifiers",
        TableError,
    )


def _check_enough(
    columns: Columns, roles: Mapping[str, TableRole], declared: Declared, agreed: Contract
) -> None:
    """Refuse a table that no release could be made of, before anything of it is sent."""
    person, n_rows = declared.person, columns.n_rows
    people = None if person in (None, RECORD) else person_numbers(columns[str(person)])
    asked = [attribute(name, roles[name], columns[name]) for name in declared.diversity]
    check_reachable(n_rows, people, asked, agreed.k, declared.diversity)
    if n_rows < agreed.min_leaf:
        raise TableError(
            f"the table holds {n_rows:,} records, fewer than min_leaf = {agreed.min_leaf:,};"
            " choose a smaller min_leaf"
        )
    check_count(agreed, n_rows)


def _agreed(table: OwnerTable, k: int, options: PrepareOptions, secret: Secret) -> Contract:
    """The contract, except for sizes and weights of positions: faults are found before the work."""
    check_sent(table, options)
    blank = [1] * len(table.quasi)
    has_seed = options.unsafe_seed is not None
    return Contract(
        submission_id=secret.key("id")[:16].hex() if has_seed else secrets.token_hex(16),
        k=k,
        min_leaf=options.least(k),
        rule=Rule(options.rule),
        columns=sent_columns(table, options, blank, blank),
        max_depth=options.max_depth,
        commitment=Commitment(options.commitment),
    )
