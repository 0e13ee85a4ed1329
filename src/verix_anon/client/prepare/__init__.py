"""prepare(): from the owner's table to a submission to send and a manifest to keep (spec §7)."""

import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.client import models
from verix_anon.client.given import FilePath, is_path, opened, options_of
from verix_anon.client.ledger import Event, Ledger
from verix_anon.client.manifest import Manifest
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.prepare.assemble import Assembled, assemble
from verix_anon.client.prepare.calibrate import honest_distances
from verix_anon.client.prepare.options import WATCH_RECORDS, PrepareOptions
from verix_anon.client.prepare.sending import send
from verix_anon.client.prepare.sentinels import Planted, Traps, evasion_probability, plant
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.prepare.twins import choose_twins
from verix_anon.client.seen import parted, seen, taken
from verix_anon.client.table.digest import table_digest
from verix_anon.client.table.draft import USUAL_K, read_reading, read_roles
from verix_anon.client.table.encode import Encoded, arrow_columns, encode
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.table.index import index_warnings
from verix_anon.client.table.owned import owned
from verix_anon.client.table.person import person_column
from verix_anon.client.table.roles import Declared, Missing, TableRole
from verix_anon.client.table.task import Labels, Task
from verix_anon.errors import TableError
from verix_anon.machine import check_memory
from verix_anon.protocol.contract import Commitment, Contract, Digest, Kind, Rule
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.table import Records

__all__ = ["PrepareOptions", "Prepared", "prepare"]

DROPS = (0.01, 0.05, 0.2)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prepared:
    """What prepare() made: one part to send, one to keep."""

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
            report; if not given, what [contract] and [report] of the roles file say.
        ledger: The tables prepared so far; this one is added, and a second submission of one
            table is warned of. None: no memory of submissions.

    Raises:
        TableError: The table does not fit; the message says what to do.
        ContractError: k or the names cannot be agreed on.
    """
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
    declared = replace(
        declared, **_given(positive=positive, missing=missing, task=task, person=person)
    )
    if declared.target is None and declared.task != Task.NONE:
        raise TableError(
            "name the column to preserve: target, or --target; or say that there is none:"
            ' task="none", or --task none'
        )
    table, reading, notes = owned(table, read_reading(roles) if is_path(roles) else None)
    warnings = (*notes, *index_warnings(table))
    prepared = _prepare(table, declared, drafted_k if k is None else k, options)
    prepared = replace(prepared, manifest=replace(prepared.manifest, reading=reading))
    if ledger is not None:
        warnings += _record(prepared, ledger)
    return replace(prepared, warnings=warnings)


def _record(prepared: Prepared, ledger: Ledger) -> tuple[str, ...]:
    """Add the submission to the ledger, and say what an earlier one of the same table means."""
    manifest, warnings = prepared.manifest, ledger.warnings()
    if earlier := ledger.record(Event.PREPARE, manifest.table, manifest.submission):
        twice = (
            f"this table was prepared before ({earlier[-1].time}): whoever holds two submissions"
            " of one table sees its traps, the rows that are not in both; send only one of them"
        )
        warnings = (*warnings, twice)
    return warnings


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
        raise TableError('name the columns to generalize: quasi, or --quasi; or "all"')
    return USUAL_K, Declared(**columns)


def _prepare(table: object, declared: Declared, k: int, options: PrepareOptions) -> Prepared:
    _check_memory(table, declared)
    options.progress("encode", 0, 1)
    # Each column in one piece, so that what reads the table next need not copy it again.
    arrays = arrow_columns(table)
    table = pa.table(arrays)
    person_column(arrays, declared.roles(list(arrays)), declared.person)
    encoded = encode(table, declared)
    seed = options.unsafe_seed
    secret = Secret.fresh() if seed is None else Secret.unsafe_from_seed(seed)
    sent = send(encoded, options, secret)
    options.progress("encode", 1, 1)
    contract = Contract(
        submission_id=secrets.token_hex(16) if seed is None else secret.key("id")[:16].hex(),
        k=k,
        min_leaf=options.least(k),
        rule=Rule(options.rule),
        columns=sent.columns,
        max_depth=options.max_depth,
        commitment=Commitment(options.commitment),
    )
    genuine = _untracked(sent.values, sent.target)
    genuine.check(contract)
    with ThreadPoolExecutor(1) as beside:
        # One core's work, while traps and trackers leave one idle for much of the time.
        knowing = beside.submit(_Known.of, table, genuine, encoded.labels, secret)
        planted, twins = None, np.empty(0, np.int64)
        if options.traps is not Traps.NONE:
            options.progress("sentinels", 0, 1)
            planted = plant(encoded.values, encoded.labels, encoded.quasi, options, secret)
            planted = replace(planted, values=sent.coded(planted.values))
            twins = choose_twins(genuine.n_rows, secret.generator("twins"))
            options.progress("sentinels", 1, 1)
        options.progress("trackers", 0, 1)
        parts = _parts(genuine, planted, twins)
        assembled = assemble(contract, parts, secret)
        submission = Submission(contract=contract, records=assembled.records)
        options.progress("trackers", 1, 1)
    keeping = _Keeping(submission, assembled, genuine, secret, options)
    described = _describe(planted, twins, assembled)
    manifest = keeping.manifest(knowing.result(), encoded, declared, twins, described)
    manifest = replace(
        manifest,
        diversity=declared.diversity,
        ordered=tuple(declared.orders),
        hierarchies=encoded.hierarchies,
        person=declared.person,
        parties=options.parties,
        provider_keys=options.pinned,
    )
    return Prepared(submission=submission, manifest=manifest)


def _check_memory(table: object, declared: Declared) -> None:
    """Refuse a table that will not fit, before hours are spent on it."""
    try:
        frame = nw.from_native(table, eager_only=True)  # type: ignore[call-overload]
    except (DuplicateError, TypeError):
        return  # encode() says what is wrong with it
    if not all(isinstance(name, str) for name in frame.columns):
        return
    roles = declared.roles(frame.columns)
    n_rows, n_quasi = len(frame), sum(role is TableRole.QUASI for role in roles.values())
    # What measurement gave, with traps and without: the values not quite five times over, and
    # trackers, rows and digests.
    check_memory(
        n_rows * (300 + 38 * n_quasi),
        f"preparing {n_rows:,} records with {n_quasi} quasi-identifiers",
        TableError,
    )


def _untracked(values: Floats, target: Bytes) -> Records:
    return Records(tracker=np.zeros((target.size, 32), np.uint8), values=values, target=target)


def _parts(genuine: Records, planted: Planted | None, twins: Ints) -> dict[str, Records]:
    """The records of every role."""
    origin = np.empty(0, np.int64) if planted is None else planted.origin
    moved = genuine.values[:, origin] if planted is None else planted.values
    return {
        "genuine": genuine,
        "sentinel": _untracked(moved, genuine.target[origin]),
        "twin": _untracked(genuine.values[:, twins], genuine.target[twins]),
    }


def _describe(planted: Planted | None, twins: Ints, assembled: Assembled) -> dict[str, object]:
    """What was planted and what it buys, for the manifest and for people."""
    n_sent, n_sentinels = assembled.records.n_rows, assembled.sentinel_row.size
    return {
        "sentinels": int(n_sentinels),
        "twins": int(twins.size),
        "boundary": 0 if planted is None else planted.n_boundary,
        "band": None if planted is None or planted.band is None else list(planted.band),
        "evasion_before": 1.0 if planted is None else planted.evasion_before,
        "evasion_after": 1.0 if planted is None else planted.evasion_after,
        "evasion_at_drop": {
            str(drop): evasion_probability(n_sentinels, n_sent, drop) for drop in DROPS
        },
    }


def _fingerprint(rows: Floats, labels: Labels) -> tuple[list[int], Floats]:
    """The top features of some records, and their SHAP values; none without a target."""
    if labels.task is Task.NONE:
        return [], np.empty((len(rows), labels.n_outputs, 0))
    shap = models.shap_values(rows, labels)
    top = models.top_features(shap)
    return top, shap[:, :, top]


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What is kept of the table whatever is planted in it: digest, watch records, fingerprint."""

    table: Digest
    watch: Ints
    top: list[int]
    baseline: Floats

    @classmethod
    def of(cls, table: object, genuine: Records, labels: Labels, secret: Secret) -> "_Known":
        # In the order drawn, so that the first few of them are a random choice as well.
        watch = secret.generator("watch").permutation(genuine.n_rows)[:WATCH_RECORDS]
        fingerprint = _fingerprint(genuine.values[:, watch].T, labels.of(watch))
        return cls(table_digest(table), watch, *fingerprint)


@dataclass(frozen=True, slots=True, eq=False)
class _Keeping:
    """What the owner works out and keeps: watch records, witnesses, fingerprint."""

    submission: Submission
    assembled: Assembled
    genuine: Records
    secret: Secret
    options: PrepareOptions

    def manifest(
        self,
        known: _Known,
        encoded: Encoded,
        declared: Declared,
        twins: Ints,
        planted: dict[str, object],
    ) -> Manifest:
        # Compiled code comes with it, which is loaded beside the work before.
        from verix_anon.client.prepare.witnesses import find_witnesses

        options, assembled, genuine = self.options, self.assembled, self.genuine
        tracker, contract = assembled.records.tracker, self.submission.contract
        watch = known.watch
        watch_row = assembled.genuine_row[watch]
        options.progress("witnesses", 0, 1)
        witnesses = find_witnesses(
            self.submission, watch_row[: options.witnesses], threads=options.threads
        )
        options.progress("witnesses", 1, 1)
        labels = encoded.labels
        paired, apart = honest_distances(
            genuine,
            labels,
            contract,
            runs=options.calibrate,
            secret=self.secret,
            progress=options.progress,
        )
        pairs = np.column_stack([assembled.genuine_row[twins], assembled.twin_row])
        return Manifest(
            contract=contract,
            submission=self.submission.digest(threads=options.threads),
            table=known.table,
            salt=self.secret.salt,
            unsafe_seed=options.unsafe_seed is not None,
            roles={name: role.value for name, role in encoded.roles.items()},
            quasi=encoded.quasi,
            missing=Missing(declared.missing).value,
            imputed=encoded.imputed,
            planted=planted,
            tracker_column=assembled.tracker_column,
            target_column=assembled.target_column,
            owner_row=assembled.owner_row,
            sentinel_row=assembled.sentinel_row,
            sentinel_tracker=tracker[assembled.sentinel_row],
            twin_row=pairs,
            twin_tracker=tracker[pairs],
            watch_row=watch_row,
            watch_values=genuine.values[:, watch],
            task=labels.task,
            classes=labels.classes,
            watch_target=labels.values[watch],
            witnesses=witnesses,
            top_features=known.top,
            baseline=known.baseline,
            calibration=paired,
            paper_calibration=apart,
        )
