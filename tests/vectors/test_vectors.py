"""The golden vectors: nothing regenerates differently, and the engine gives every one."""

import json
from pathlib import Path

import numpy as np
import pytest

from tools import independent_proofs
from tools.vectors import VECTORS, render
from verix_anon.client.prove import Committed
from verix_anon.protocol import inclusion
from verix_anon.protocol.contract import Contract, Digest, Role
from verix_anon.protocol.inclusion import Proof
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.records import Records
from verix_anon.provider.local import LocalProvider

HERE = Path(__file__).parent
NAMES = sorted(VECTORS)


def test_the_folder_holds_exactly_these() -> None:
    assert sorted(path.stem for path in HERE.glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_regenerates_without_a_difference(name: str) -> None:
    assert render(name) == (HERE / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("threads", [1, 3])
def test_engine_gives_the_vector(name: str, threads: int) -> None:
    vector = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    contract = Contract.from_bytes(vector["contract"].encode())
    quasi = [
        values
        for column, values in zip(contract.columns, vector["columns"], strict=True)
        if column.role is Role.QUASI
    ]
    has_target = contract.target is not None
    target = vector["columns"][1] if has_target else [0] * len(vector["trackers"])
    submission = Submission(
        contract=contract,
        records=Records(
            tracker=np.array([list(bytes.fromhex(t)) for t in vector["trackers"]], np.uint8),
            values=np.array(quasi, np.float64) + 0.0,
            target=np.array(target, np.uint8),
        ),
    )
    delivery = LocalProvider(threads=threads).anonymize(submission)
    expected = vector["expected"]
    tree, leaves = delivery.tree, delivery.leaves
    assert delivery.header.contract.hex() == expected["contract_digest"]
    assert delivery.header.submission.hex() == expected["submission_digest"]
    assert delivery.header.root.hex() == expected["root"]
    fields = (tree.column, tree.threshold, tree.left, tree.right, tree.leaf)
    columns = [field.tolist() for field in fields]
    assert [list(node) for node in zip(*columns, strict=True)] == expected["nodes"]
    bounds = np.stack([leaves.minimum, leaves.maximum], axis=2).tolist()
    assert [list(leaf) for leaf in zip(leaves.count.tolist(), bounds, strict=True)] == expected[
        "leaves"
    ]
    assert delivery.records.leaf.tolist() == expected["leaf_of_row"]
    if "proof" in expected:
        tracker = bytes.fromhex(vector["trackers"][submission.records.n_rows // 2])
        made = Committed.of(contract, delivery).proof(tracker)
        assert made.to_bytes().decode() == expected["proof"]


@pytest.mark.parametrize("name", NAMES)
def test_a_proof_is_there_and_holds_wherever_members_are_bound(name: str) -> None:
    vector = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    expected = vector["expected"]
    assert ("proof" in expected) is (not name.endswith("-paper"))
    if "proof" in expected:
        proof = Proof.from_bytes(expected["proof"].encode())
        root = bytes.fromhex(expected["root"])
        tracker = bytes.fromhex(vector["trackers"][len(vector["trackers"]) // 2])
        inclusion.check(proof, root=Digest(root), tracker=tracker)
        assert independent_proofs.holds(expected["proof"], expected["root"])
