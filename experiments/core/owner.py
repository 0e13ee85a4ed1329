"""The owner's side of a cell: a sample of a public table, prepared; a delivery, judged.

`judge` runs each layer once and derives the verdicts of all profiles from its findings, where
verify() would run the models once per profile; a test holds it to verify().
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments import data
from verix_anon.client import models
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.options import Importance
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.table.task import Labels, Task
from verix_anon.client.verdict import Status
from verix_anon.client.verify import commitment, replay, splits, trap_rows
from verix_anon.client.verify.case import Case, VerifyOptions
from verix_anon.errors import MalformedDeliveryError
from verix_anon.protocol.contract import Column, Commitment, Kind, Rule
from verix_anon.protocol.messages import Delivery
from verix_anon.protocol.tree import midpoints

__all__ = [
    "CODED",
    "ROWS",
    "K",
    "Layers",
    "among_sent",
    "case_of",
    "coded",
    "judge",
    "measure",
    "prepared",
    "sample",
    "top_features",
    "touched",
    "two_classes",
]

ROWS = 8_000
"""The paper's sample (§6.1)."""
K = 5
# The paper uses 16 of this table's columns and does not say which. Its top features leave out
# the number of inpatient visits, which leads wherever it is present; these 16 are the others
# that are neither identifiers, nor codes of diagnoses, nor mostly missing, nor single drugs.
DIABETES = [
    "race",
    "gender",
    "age",
    "admission_type_id",
    "discharge_disposition_id",
    "admission_source_id",
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_diagnoses",
    "max_glu_serum",
    "A1Cresult",
    "insulin",
    "change",
    "diabetesMed",
]


CODED = {
    "variance-reduction": (Rule.VARIANCE_REDUCTION, Importance.UNIFORM),
    "importance-spread": (Rule.IMPORTANCE_SPREAD, Importance.UNIFORM),
    "importance-spread, weighed by a model": (Rule.IMPORTANCE_SPREAD, Importance.AUTO),
}
"""By name, the rules that studies compare and what weighs the columns; the second is the default"""


def sample(name: str, *, seed: int, rows: int = ROWS) -> pa.Table:
    """So many rows of a public table, drawn without replacement, with the columns to be sent."""
    table = data.load(name)
    if name == "diabetes":
        table = table.select([*DIABETES, "target"])
    rng = np.random.default_rng([seed, rows])
    chosen = np.sort(rng.choice(table.num_rows, min(rows, table.num_rows), replace=False))
    return table.take(pa.array(chosen))


def among_sent(
    values: npt.NDArray[np.float64], columns: Sequence[Column], is_sent: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Number the categories of a table, a row per column, as the part that is sent has them.

    A label that does not occur in that part lies halfway between those beside it.
    """
    found = values.copy()
    for own, column in zip(found, columns, strict=True):
        if column.categories is not None:
            positions = own.astype(np.int64)
            occurs = np.bincount(positions[is_sent], minlength=len(column.categories)) > 0
            own[:] = (np.cumsum(occurs) - np.where(occurs, 1.0, 0.5))[positions]
    return found


def prepared(name: str, table: pa.Table, *, seed: int, paper: bool, calibrate: int = 0) -> Prepared:
    """The table under the paper's rule, with today's traps and root or the paper's, repeatably."""
    options = PrepareOptions.paper(
        unsafe_seed=seed,
        traps=Traps.PAPER if paper else Traps.ADAPTIVE,
        commitment=Commitment.PAPER if paper else Commitment.BINDING,
        calibrate=calibrate,
        threads=1,
    )
    return _of(name, table, options, "target")


def coded(
    name: str, table: pa.Table, *, seed: int, under: str, target: str | None = "target"
) -> Prepared:
    """The table in positions under a rule of CODED, with leaves of k records, repeatably."""
    rule, importance = CODED[under]
    options = PrepareOptions(
        rule=rule,
        importance=importance,
        clear=False,
        min_leaf="k",
        traps=Traps.ADAPTIVE,
        commitment=Commitment.BINDING,
        unsafe_seed=seed,
        threads=1,
    )
    return _of(name, table, options, target)


def _of(name: str, table: pa.Table, options: PrepareOptions, target: str | None) -> Prepared:
    nominal = set(data.describe(name).nominal) & set(table.column_names)
    return prepare(
        table,
        target=target,
        task=Task.NONE if target is None else None,
        quasi="all",
        k=K,
        kinds=dict.fromkeys(nominal, Kind.CATEGORICAL),
        options=options,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The status of every exact layer, with the submission at hand and without."""

    full: Mapping[str, str]
    thin: Mapping[str, str]


def judge(delivery: Delivery, made: Prepared) -> Layers:
    """What the five exact layers say of a delivery, in `full` and in `thin`."""
    try:
        delivery.check(made.manifest.contract, n_rows=made.manifest.n_rows)
    except MalformedDeliveryError:
        refused = {"commitment": Status.FAIL.value} | dict.fromkeys(
            ("sentinels", "twins", "replay", "splits"), Status.SKIPPED.value
        )
        return Layers(full=refused, thin=refused)
    return Layers(
        full=_statuses(delivery, made, thin=False), thin=_statuses(delivery, made, thin=True)
    )


def _statuses(delivery: Delivery, made: Prepared, *, thin: bool) -> dict[str, str]:
    case = case_of(delivery, made, thin=thin)
    status = {
        "commitment": commitment.check(case).status,
        "sentinels": trap_rows.check_sentinels(case).status,
        "twins": trap_rows.check_twins(case).status,
        "replay": replay.check(case).status,
    }
    passed = status["replay"] is Status.PASS
    status["splits"] = splits.check(case).status if passed else Status.SKIPPED
    return {name: value.value for name, value in status.items()}


def case_of(delivery: Delivery, made: Prepared, *, thin: bool) -> Case:
    """What verify() would hand to a layer."""
    return Case(
        delivery=delivery,
        manifest=made.manifest,
        submission=None if thin else made.submission,
        options=VerifyOptions(threads=1),
    )


def touched(case: Case) -> float:
    """The share of the records whose path holds a node that deviates from the rule."""
    is_touched = np.zeros(case.manifest.n_rows, bool)
    for deviation in splits.examine(case, np.arange(case.delivery.tree.n_nodes)):
        low, high = case.node_spans[deviation.node]
        is_touched[case.grouped[0][low:high]] = True
    return float(is_touched.mean())


def measure(delivery: Delivery, made: Prepared, *, seed: int) -> list[float]:
    """The distances of the top features as the paper measures them; empty if it cannot.

    What verify() does in the paper's profile, but for the sample, which here is repeatable.
    """
    manifest, records = made.manifest, delivery.records
    try:
        delivery.check(manifest.contract, n_rows=manifest.n_rows)
    except MalformedDeliveryError:
        return []
    rng = np.random.default_rng([seed, 2_000])
    some = rng.choice(records.row.size, min(2_000, records.row.size), replace=False)
    middle = midpoints(delivery.leaves.of(records.leaf[some]))
    observed = models.shap_values(middle, two_classes(records.target[some]))
    return models.distances(manifest.baseline, observed, manifest.top_features)


def two_classes(target: npt.NDArray[np.uint8]) -> Labels:
    """Labels of 0 and 1, as models take them."""
    return Labels(task=Task.CLASSES, values=target.astype(np.float64), classes=("0", "1"))


def top_features(made: Prepared) -> list[str]:
    """The names of the features that the fingerprint looks at."""
    return [made.manifest.contract.quasi[j].name for j in made.manifest.top_features]
