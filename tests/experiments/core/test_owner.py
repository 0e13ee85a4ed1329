"""The studies judge as verify() does."""

import numpy as np
import pyarrow as pa
import pytest

from experiments.core import owner
from tools import cases
from verix_anon.adversaries import ADVERSARIES
from verix_anon.client import models
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.task import Task
from verix_anon.client.verdict import Profile, Status
from verix_anon.client.verify import verify
from verix_anon.client.verify.case import VerifyOptions

EXACT = ("commitment", "sentinels", "twins", "replay", "splits")


@pytest.mark.parametrize(
    "name", ["honest", "lazy", "dumb", "approximate", "wide-bounds", "half-k", "deviates"]
)
def test_judge_is_verify(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "ROUNDS", 2)
    made = cases.prepared(n_rows=1000)
    sent = made.submission
    delivery = cases.honest(sent) if name == "honest" else ADVERSARIES[name](0).anonymize(sent)
    layers = owner.judge(delivery, made)
    options = VerifyOptions(threads=1)
    full = verify(delivery, made.manifest, submission=sent, options=options)
    thin = verify(delivery, made.manifest, options=options)
    assert layers.full == {n: full.finding(n).status.value for n in EXACT}
    assert layers.thin == {n: thin.finding(n).status.value for n in EXACT}


def test_measure_is_the_papers_profile_but_for_the_sample() -> None:
    # 400 records and traps are fewer than the sample, so every sample is the same.
    made = cases.prepared(clear=True)
    delivery = cases.honest(made.submission)
    finding = verify(delivery, made.manifest, profile=Profile.PAPER).finding("fingerprint")
    assert finding.status is not Status.SKIPPED
    expected = finding.evidence["distance"]
    assert owner.measure(delivery, made, seed=5) == pytest.approx(expected, abs=0.05)


def test_touched_counts_the_records_below_a_deviation() -> None:
    made = cases.prepared(n_rows=1000)
    honest = cases.honest(made.submission)
    assert owner.touched(owner.case_of(honest, made, thin=False)) == 0.0
    blind = ADVERSARIES["approximate"](1).anonymize(made.submission)
    case = owner.case_of(blind, made, thin=False)
    # The blind root is another column's, so every path is touched.
    assert honest.tree.column[0] != blind.tree.column[0]
    assert owner.touched(case) == 1.0


def test_categories_are_numbered_as_the_part_that_is_sent_has_them() -> None:
    table = pa.table({"x": [*"abcdacac"], "n": [5, 7, 9, 7, 5, 9, 5, 9]})
    declared = Declared(task=Task.NONE, quasi="all", orders={"x": ["a", "b", "c", "d"]})
    is_sent = np.array([True, False, True, False, True, True, True, True])
    both = read_owner_table(table, declared)
    found = owner.among_sent(both.matrix, both.quasi, is_sent)
    sent = read_owner_table(table.filter(pa.array(is_sent)), declared)
    assert found[:, is_sent].tolist() == sent.matrix.tolist()
    assert found[0].tolist() == [0, 0.5, 1, 1.5, 0, 1, 0, 1]
    assert found[1].tolist() == [5, 7, 9, 7, 5, 9, 5, 9]
