"""Tables, jobs and verdicts for the tests of release()."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import support
from client.table.tables import table_digest
from verix_anon.client.ledger import Ledger
from verix_anon.client.manifest import Manifest
from verix_anon.client.release import Released, ReleaseOptions, release
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared, Missing
from verix_anon.client.table.task import Task
from verix_anon.client.verdict import Finding, Profile, Status, Verdict
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.messages import Delivered, Delivery, Submission
from verix_anon.protocol.records import Records
from verix_anon.provider.local import LocalProvider

N = 60
TRAPS = 12
NO_DIGEST = Digest(bytes(32))


def columns(n_rows: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    age = rng.integers(18, 90, n_rows)
    return {
        "name": [f"person {i}" for i in range(n_rows)],
        "age": age.tolist(),
        "city": rng.choice(["Bern", "Genf", "Chur"], n_rows).tolist(),
        "weight": rng.normal(70, 10, n_rows).round(3).tolist(),
        "born": [date(1950, 1, 1 + i % 28) for i in range(n_rows)],
        "illness": rng.choice(["flu", "cold", "none"], n_rows).tolist(),
        "note": [f"note {i % 7}" for i in range(n_rows)],
        "rich": ((age + rng.integers(0, 30, n_rows)) > 65).tolist(),
    }


DECLARED = Declared(
    target="rich",
    quasi="all",
    identifier=["name"],
    sensitive=["illness"],
    kept=["note"],
    orders={"city": ["Bern", "Chur", "Genf"]},
)


@dataclass(frozen=True)
class Job:
    """A table that was prepared, anonymized and accepted."""

    table: Any
    manifest: Manifest
    delivery: Delivery
    verdict: Verdict

    def release(
        self, ledger: Ledger | None = None, out: Path | None = None, **options: Any
    ) -> Released[Any]:
        # Most tests compare each row with the one that it was.
        options.setdefault("keep_order", True)
        return release(
            self.delivery,
            self.manifest,
            self.verdict,
            table=self.table,
            out=out,
            options=ReleaseOptions(**options),
            ledger=ledger,
        )

    def forced(self, delivery: Delivery) -> Released[Any]:
        options = ReleaseOptions(force=True, keep_order=True)
        return release(delivery, self.manifest, self.verdict, table=self.table, options=options)


def job(
    table: object,
    declared: Declared = DECLARED,
    *,
    k: int = 3,
    min_leaf: int | None = None,
    traps: int = TRAPS,
) -> Job:
    """Prepare by hand: copies of the first rows as traps, all rows in a fixed disorder."""
    encoded = read_owner_table(table, declared)
    n_rows = encoded.target.size
    origin = np.concatenate([np.arange(n_rows), np.arange(traps)])
    order = np.random.default_rng(1).permutation(origin.size)
    contract = Contract(
        submission_id=support.SUBMISSION_ID,
        k=k,
        min_leaf=min_leaf or 2 * k,
        columns=encoded.columns,
    )
    records = Records(
        tracker=support.trackers(origin.size),
        values=encoded.matrix[:, origin[order]],
        target=encoded.target[origin[order]],
    )
    submission = Submission(contract=contract, records=records)
    manifest = manifest_of(
        submission, table, encoded.roles, np.where(order < n_rows, origin[order], -1)
    )
    delivery = LocalProvider(threads=1).anonymize(submission)
    manifest = replace(
        manifest,
        missing=Missing(declared.missing).value,
        imputed=encoded.n_missing,
        hierarchies={name: h.to_json() for name, h in encoded.hierarchies.items()},
        diversity=declared.diversity,
        ordered=tuple(declared.orders),
    )
    return Job(table, manifest, delivery, accepted(delivery))


def manifest_of(
    submission: Submission,
    table: object,
    roles: Mapping[str, str],
    owner_row: npt.NDArray[np.int64],
) -> Manifest:
    rows, trackers = np.empty(0, np.int64), np.empty((0, 32), np.uint8)
    return Manifest(
        contract=submission.contract,
        submission=submission.digest(),
        table=table_digest(table),
        salt=bytes(32),
        unsafe_seed=False,
        roles=roles,
        quasi=submission.contract.quasi,
        missing="mark",
        imputed={},
        planted={},
        tracker_column=NO_DIGEST,
        target_column=NO_DIGEST,
        owner_row=owner_row,
        sentinel_row=rows,
        sentinel_tracker=trackers,
        twin_row=rows.reshape(0, 2),
        twin_tracker=trackers.reshape(0, 2, 32),
        watch_row=rows,
        watch_values=np.empty((0, 0)),
        task=Task.CLASSES,
        classes=("no", "yes"),
        watch_target=np.empty(0),
        witnesses=(),
        top_features=(),
        baseline=np.empty((0, 1, 0)),
        calibration=np.empty((0, 0)),
        paper_calibration=np.empty((0, 0)),
    )


def accepted(delivery: Delivery, **changes: Any) -> Verdict:
    finding = Finding(layer="replay", status=Status.PASS, summary="All is well.")
    verdict = Verdict(
        profile=Profile.FULL,
        root=delivery.header.root,
        files={},
        contract=delivery.header.contract,
        submission=delivery.header.submission,
        findings=(finding,),
    )
    return replace(verdict, **changes)


def changed(delivery: Delivery, **changes: Any) -> Delivery:
    """The delivery with other records under the same header."""
    fields = {
        name: getattr(delivery.records, name) for name in ("row", "tracker", "leaf", "target")
    }
    return replace(delivery, records=Delivered(**(fields | changes)))


def parse(text: str) -> tuple[float, float]:
    """The ends of a cell of numbers, infinite where they are open."""
    low, _, high = text.replace("(", "").replace(")", "").partition("..")
    high = high or low
    return (
        -math.inf if low.startswith("<=") else float(low.removeprefix(">=")),
        math.inf if high.startswith(">=") else float(high.removeprefix("<=")),
    )
