"""prepare(): from the owner's table to a submission to send and a manifest to keep (spec §7)."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from verix.client import fingerprint
from verix.client.manifest import Manifest
from verix.client.prepare.assemble import Assembled, assemble
from verix.client.prepare.calibrate import honest_distances
from verix.client.prepare.sentinels import Plan, Planted, Traps, evasion_probability, plant
from verix.client.prepare.trackers import Secret, smallest
from verix.client.prepare.twins import choose_twins
from verix.client.prepare.witnesses import find_witnesses
from verix.client.tabledigest import table_digest
from verix.protocol.contract import Commitment, Contract
from verix.protocol.encode import encode
from verix.protocol.messages import Submission
from verix.protocol.roles import Declared
from verix.protocol.table import Records

__all__ = ["Options", "Prepared", "prepare"]

Progress = Callable[[str, int, int], None]
Rows = npt.NDArray[np.int64]

WATCH_RECORDS = 2_000


def _ignore(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to prepare; the defaults are for everybody but researchers."""

    max_depth: int = 50
    commitment: Commitment = Commitment.BINDING
    plan: Plan = field(default_factory=Plan)
    witnesses: int = 20
    calibrate: int = 0
    """How many honest local runs calibrate the fingerprint."""
    unsafe_seed: int | None = None
    """Makes everything repeatable, to anybody who knows it; the manifest says so."""
    threads: int = 2
    progress: Progress = _ignore


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prepared:
    """What prepare() made: one part to send, one to keep."""

    submission: Submission
    manifest: Manifest


def prepare(
    table: object,
    declared: Declared | None = None,
    *,
    k: int = 5,
    options: Options | None = None,
    **roles: object,
) -> Prepared:
    """Prepare a table for a provider.

    Args:
        table: A pandas, polars or pyarrow table.
        declared: The role of every column; or name its fields, as in
            `prepare(table, target="income", quasi="all", k=5)`.
        k: Every class of the release holds at least this many persons.
        options: Traps, witnesses, calibration, commitment.

    Raises:
        TableError: The table does not fit; the message says what to do.
        ContractError: k or the names cannot be agreed on.
    """
    declared = Declared(**roles) if declared is None else declared  # type: ignore[arg-type]
    options = options or Options()
    options.progress("encode", 0, 1)
    encoded = encode(table, declared)
    options.progress("encode", 1, 1)
    secret = (
        Secret.fresh()
        if options.unsafe_seed is None
        else Secret.unsafe_from_seed(options.unsafe_seed)
    )
    contract = Contract(
        submission_id=_submission_id(secret, options),
        k=k,
        columns=encoded.columns,
        max_depth=options.max_depth,
        commitment=options.commitment,
    )
    genuine = Records(
        tracker=np.zeros((encoded.target.size, 32), np.uint8),
        values=encoded.values,
        target=encoded.target,
    )
    genuine.check(contract)
    planted, twins = _plant(contract, genuine, options, secret)
    options.progress("trackers", 0, 1)
    assembled = _assemble(contract, genuine, planted, twins, secret)
    submission = Submission(contract=contract, records=assembled.records)
    options.progress("trackers", 1, 1)
    watch = smallest(
        secret.key("watch"), assembled.records.tracker[assembled.genuine_row], WATCH_RECORDS
    )
    watch_row = assembled.genuine_row[watch]
    options.progress("witnesses", 0, 1)
    witnesses = find_witnesses(
        submission, watch_row[: max(0, options.witnesses)], threads=options.threads
    )
    options.progress("witnesses", 1, 1)
    shap = fingerprint.shap_values(genuine.values[:, watch].T, genuine.target[watch])
    top = fingerprint.top_features(shap)
    calibration = honest_distances(
        genuine, contract, runs=options.calibrate, secret=secret, progress=options.progress
    )
    manifest = Manifest(
        contract=contract,
        submission=submission.digest(threads=options.threads),
        table=table_digest(table),
        salt=secret.salt,
        unsafe_seed=options.unsafe_seed is not None,
        roles={name: role.value for name, role in encoded.roles.items()},
        imputed=encoded.imputed,
        planted=_describe(planted, twins, assembled),
        tracker_column=assembled.tracker_column,
        target_column=assembled.target_column,
        owner_row=assembled.owner_row,
        sentinel_row=assembled.sentinel_row,
        sentinel_tracker=assembled.records.tracker[assembled.sentinel_row],
        twin_row=(pairs := np.column_stack([assembled.genuine_row[twins], assembled.twin_row])),
        twin_tracker=assembled.records.tracker[pairs],
        watch_row=watch_row,
        watch_values=genuine.values[:, watch],
        watch_target=genuine.target[watch],
        watch_tracker=assembled.records.tracker[watch_row],
        witnesses=witnesses,
        top_features=top,
        baseline=shap[:, top],
        calibration=calibration,
    )
    return Prepared(submission=submission, manifest=manifest)


def _submission_id(secret: Secret, options: Options) -> str:
    """128 random bits; with an unsafe seed they are repeatable like all else."""
    if options.unsafe_seed is None:
        return secrets.token_hex(16)
    return secret.key("submission id")[:16].hex()


def _plant(
    contract: Contract, genuine: Records, options: Options, secret: Secret
) -> tuple[Planted | None, Rows]:
    """The sentinels, and which records get a twin; neither if no traps are wanted."""
    if options.plan.traps is Traps.NONE:
        return None, np.empty(0, np.int64)
    options.progress("sentinels", 0, 1)
    planted = plant(genuine.values, genuine.target, contract.quasi, options.plan, secret)
    options.progress("sentinels", 1, 1)
    return planted, choose_twins(genuine.n_rows, secret.generator("twins"))


def _assemble(
    contract: Contract, genuine: Records, planted: Planted | None, twins: Rows, secret: Secret
) -> Assembled:
    def untracked(values: npt.NDArray[np.float64], origin: Rows) -> Records:
        return Records(
            tracker=np.zeros((origin.size, 32), np.uint8),
            values=values,
            target=genuine.target[origin],
        )

    nobody = np.empty(0, np.int64)
    origin = nobody if planted is None else planted.origin
    moved = genuine.values[:, nobody] if planted is None else planted.values
    parts = {
        "genuine": genuine,
        "sentinel": untracked(moved, origin),
        "twin": untracked(genuine.values[:, twins], twins),
    }
    return assemble(contract, parts, secret)


def _describe(planted: Planted | None, twins: Rows, assembled: Assembled) -> dict[str, object]:
    """What was planted and what it buys, for the manifest and for people."""
    n_sent, n_sentinels = assembled.records.n_rows, assembled.sentinel_row.size
    return {
        "sentinels": int(n_sentinels),
        "twins": int(twins.size),
        "boundary": 0 if planted is None else planted.n_boundary,
        "band": None if planted is None else list(planted.band),
        "evasion_before": 1.0 if planted is None else planted.evasion_before,
        "evasion_after": 1.0 if planted is None else planted.evasion_after,
        "evasion_at_drop": {
            str(drop): evasion_probability(n_sentinels, n_sent, drop) for drop in (0.01, 0.05, 0.2)
        },
    }
