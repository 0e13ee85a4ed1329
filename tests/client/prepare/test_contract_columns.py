"""What is sent: positions or values, with weights or with the target."""

from typing import Any

import pyarrow as pa
import pytest

from verix_anon import LocalProvider, PrepareOptions, prepare, release, verify
from verix_anon.client.prepare import Prepared
from verix_anon.client.verify.case import VerifyOptions
from verix_anon.datasets import census
from verix_anon.errors import Error, TableError
from verix_anon.protocol.contract import Commitment, Kind, Role, Rule

SPREAD: dict[str, Any] = {"rule": "importance-spread", "clear": False, "min_leaf": "k"}
LABELS: dict[str, Any] = {"rule": "variance-reduction"}


def made(task: str | None = None, **options: Any) -> Prepared:
    wanted = PrepareOptions(unsafe_seed=1, threads=1, **options)
    table, target = census(600), "income"
    if task == "none":
        return prepare(table.drop(["income"]), quasi="all", task="none", k=3, options=wanted)
    return prepare(table, target=target, quasi="all", k=3, options=wanted)


@pytest.mark.usefixtures("quick_models")
@pytest.mark.parametrize(
    ("options", "task"),
    [
        (SPREAD, None),
        (SPREAD | {"importance": "uniform"}, None),
        (SPREAD, "none"),
        (SPREAD | {"places": 16}, None),
        ({"clear": False}, None),
        ({"clear": False, "min_leaf": "k", "places": 4}, None),
    ],
)
def test_a_coded_journey_is_verified(options: dict[str, Any], task: str | None) -> None:
    job = made(task=task, **options)
    contract, records = job.submission.contract, job.submission.records
    assert {column.kind for column in contract.columns} == {Kind.RANK}
    assert not {column.name for column in contract.quasi} & {c.name for c in job.manifest.quasi}
    for column, values in zip(contract.quasi, records.values, strict=True):
        assert set(values) <= set(range(column.size or 0))
    delivery = LocalProvider(threads=1).anonymize(job.submission)
    for submission in (job.submission, None):
        skipped = VerifyOptions(threads=1, skip=("fingerprint", "utility"))
        verdict = verify(delivery, job.manifest, submission=submission, options=skipped)
        assert verdict.accepted, verdict


@pytest.mark.usefixtures("quick_models")
@pytest.mark.parametrize(
    ("target", "task"),
    [("education", None), ("hours_per_week", None), ("hours_per_week", "classes"), ("age", None)],
)
def test_any_target_from_preparation_to_release(target: str, task: str | None) -> None:
    table = census(600)
    options = PrepareOptions(unsafe_seed=1, threads=1, **SPREAD)
    job = prepare(table, target=target, task=task, quasi="all", k=3, options=options)
    delivery = LocalProvider(threads=1).anonymize(job.submission)
    verdict = verify(delivery, job.manifest, submission=job.submission)
    assert verdict.accepted, verdict
    released = release(delivery, job.manifest, verdict, table=table)
    assert released.sheet.k >= 3
    assert released.table.num_rows == 600


def test_no_label_is_sent_where_the_rule_needs_none() -> None:
    job = made(**SPREAD)
    assert job.submission.contract.target is None
    assert not job.submission.records.target.any()
    assert not LocalProvider(threads=1).anonymize(job.submission).records.has_target


def test_the_target_keeps_its_place() -> None:
    table = census(300).select(["age", "income", "education"])
    options = PrepareOptions(unsafe_seed=1, rule=Rule.VARIANCE_REDUCTION)
    columns = prepare(
        table, target="income", quasi="all", options=options
    ).submission.contract.columns
    assert [(c.name, c.role) for c in columns] == [
        ("q0", Role.QUASI),
        ("y", Role.TARGET),
        ("q1", Role.QUASI),
    ]


def test_the_papers_preset() -> None:
    options = PrepareOptions.paper(unsafe_seed=1, witnesses=3)
    contract = prepare(
        census(600), target="income", quasi="all", k=4, options=options
    ).submission.contract
    assert contract.rule is Rule.VARIANCE_REDUCTION
    assert (contract.min_leaf, contract.commitment) == (8, Commitment.PAPER)
    assert not contract.is_coded
    assert PrepareOptions.paper(min_leaf=9, clear=False).least(4) == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SPREAD | {"clear": True}, "importance-spread needs coded columns"),
        (LABELS | {"clear": True, "places": 9}, "places are for coded columns"),
        (SPREAD | {"places": 1}, "places must be a number from 2"),
        (SPREAD | {"min_leaf": "k2"}, "a multiple of k"),
        (SPREAD | {"min_leaf": 2}, "min_leaf must be a whole number from 3"),
        (SPREAD | {"importance": "magic"}, "importance must be"),
        (SPREAD | {"rule": "best"}, "rule must be"),
        ({"clear": False, "commitment": "paper"}, "needs values in clear"),
    ],
)
def test_what_cannot_be_joined(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Error, match=message):
        made(**options)


def test_more_classes_need_the_other_rule() -> None:
    table = pa.table({"x": list(range(60)), "y": ["a", "b", "c"] * 20})
    with pytest.raises(TableError, match="needs a target with two classes"):
        prepare(table, target="y", quasi="all", options=PrepareOptions(**LABELS))


def test_a_target_must_be_named_or_denied() -> None:
    with pytest.raises(TableError, match="name the column to preserve"):
        prepare(census(60), quasi="all")
