"""The seven public tables at full size: leaves large enough, and true to their records."""

import numpy as np
import pytest

from experiments.data import NAMES, describe, load
from support import SUBMISSION_ID
from verix_anon.client.table.owner_table import OwnerTable, read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.datasets import census
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Contract, Kind
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.records import Records
from verix_anon.provider.local import LocalProvider

K = 5


def submission(encoded: OwnerTable) -> Submission:
    n_rows = encoded.target.size
    contract = Contract(submission_id=SUBMISSION_ID, k=K, min_leaf=2 * K, columns=encoded.columns)
    tracker = np.random.default_rng(1).integers(0, 256, (n_rows, 32), np.uint8)
    return Submission(
        contract=contract,
        records=Records(tracker=tracker, values=encoded.matrix, target=encoded.target),
    )


def public(name: str) -> OwnerTable:
    try:
        table = load(name)
    except TableError as error:
        pytest.skip(f"the public table is not at hand: {error}")
    facts = describe(name)
    declared = Declared(
        target="target",
        quasi="all",
        identifier=facts.identifiers,
        kinds=dict.fromkeys(facts.nominal, Kind.CATEGORICAL),
    )
    return read_owner_table(table, declared)


@pytest.mark.parametrize("name", [*NAMES, "census"])
def test_whole_table(name: str) -> None:
    if name == "census":
        encoded = read_owner_table(census(50_000), Declared(target="income", quasi="all"))
    else:
        encoded = public(name)
    sent = submission(encoded)
    delivery = LocalProvider(threads=2).anonymize(sent)
    tree, leaves, leaf = delivery.tree, delivery.leaves, delivery.records.leaf
    tree.check(n_quasi=len(sent.contract.quasi), max_depth=sent.contract.max_depth)
    assert leaves.count.min() >= 2 * K
    assert (np.bincount(leaf, minlength=leaves.n_leaves) == leaves.count).all()
    assert (leaves.minimum[leaf] <= sent.records.values.T).all()
    assert (leaves.maximum[leaf] >= sent.records.values.T).all()
    assert (tree.route(sent.records.values) == leaf).all()
    again = LocalProvider(threads=1).anonymize(sent)
    assert again.header.root == delivery.header.root
