"""prove() and check_proof() in Python: objects and paths, whose record it is, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import verix_anon
from tools import cases
from verix_anon.client.prepare import Prepared
from verix_anon.client.prove import Committed
from verix_anon.errors import ContractError, MalformedDeliveryError, ProofError, TableError
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Commitment
from verix_anon.protocol.messages import Delivery


@pytest.fixture(scope="module")
def job() -> tuple[Prepared, Delivery]:
    prepared = cases.prepared()
    return prepared, cases.honest(prepared.submission)


def test_by_object_and_by_path(job: tuple[Prepared, Delivery], tmp_path: Path) -> None:
    prepared, delivery = job
    submission, manifest = prepared.submission, prepared.manifest
    verix_anon.write_delivery(delivery, tmp_path / "delivery")
    verix_anon.write_submission(submission, tmp_path / "submission")
    verix_anon.write_manifest(manifest, tmp_path / "manifest.verix")
    contract, n_rows = submission.contract, manifest.n_rows
    snapshot = verix_anon.read_delivery(tmp_path / "delivery", contract, n_rows=n_rows)
    tracker = submission.records.tracker[5].tobytes()
    made = {
        verix_anon.prove(given, agreed, tracker=name)[0].to_bytes()
        for given in (delivery, snapshot, tmp_path / "delivery", str(tmp_path / "delivery"))
        for agreed in (
            submission,
            contract,
            manifest,
            tmp_path / "submission",
            tmp_path / "submission/contract.json",
            str(tmp_path / "manifest.verix"),
        )
        for name in (tracker, tracker.hex())
    }
    assert len(made) == 1
    (proof,) = verix_anon.prove(delivery, contract, tracker=tracker)
    verix_anon.write_proof(proof, tmp_path / "proof.json")
    for given in (proof, tmp_path / "proof.json"):
        assert verix_anon.check_proof(given, root=delivery.header.root) == proof
    with pytest.raises(ProofError, match="another root"):
        verix_anon.check_proof(proof, root=bytes(32))


def test_a_proof_in_memory_is_held_to_the_types_of_a_file(job: tuple[Prepared, Delivery]) -> None:
    prepared, delivery = job
    (proof,) = verix_anon.prove(delivery, prepared.manifest, table=cases.table(400), record=0)
    with pytest.raises(ProofError, match="count must be"):
        verix_anon.check_proof(replace(proof, count=-1), root=proof.root)


def test_every_row_of_the_owners_is_the_record_that_was_made_of_it(
    job: tuple[Prepared, Delivery],
) -> None:
    prepared, delivery = job
    table = cases.table(400)
    for row in range(0, 400, 57):
        (proof,) = verix_anon.prove(delivery, prepared.manifest, table=table, record=row)
        (sent,) = np.flatnonzero(prepared.manifest.owner_row == row)
        assert proof.tracker == prepared.submission.records.tracker[sent].tobytes()


def test_trackers_that_were_not_sent_name_nobody(job: tuple[Prepared, Delivery]) -> None:
    """A provider that swaps two trackers and commits to it."""
    prepared, delivery = job
    swapped = delivery.records.tracker.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    changed = replace(delivery, records=replace(delivery.records, tracker=swapped))
    start = np.concatenate([[0], np.cumsum(np.bincount(delivery.records.leaf))])
    members = merkle.Members(
        np.argsort(delivery.records.leaf, kind="stable"), start, delivery.records.row, swapped
    )
    contract = prepared.submission.contract
    root = merkle.root_of(
        contract, delivery.header.submission, delivery.tree, delivery.leaves, members
    )
    changed = replace(changed, header=replace(delivery.header, root=root))
    # By its tracker a record can be proved: this is what was committed to.
    assert Committed.of(contract, changed).proof(swapped[0].tobytes()).root == root
    with pytest.raises(MalformedDeliveryError, match="not those that were sent"):
        verix_anon.prove(changed, prepared.manifest, table=cases.table(400), record=3)


def test_damaged_files_prove_nothing(job: tuple[Prepared, Delivery], tmp_path: Path) -> None:
    prepared, delivery = job
    verix_anon.write_delivery(delivery, tmp_path / "delivery")
    header = tmp_path / "delivery/delivery.json"
    contract, n_rows = prepared.submission.contract, prepared.manifest.n_rows
    snapshot = verix_anon.read_delivery(tmp_path / "delivery", contract, n_rows=n_rows)
    digest = snapshot.files["nodes.parquet"]
    header.write_text(header.read_text().replace(digest, "0" * 64))
    tracker = delivery.records.tracker[0].tobytes()
    with pytest.raises(MalformedDeliveryError, match=r"nodes\.parquet damaged on the way"):
        verix_anon.prove(tmp_path / "delivery", contract, tracker=tracker)


def test_the_papers_commitment_is_refused_in_a_sentence() -> None:
    prepared = cases.prepared(commitment=Commitment.PAPER)
    delivery = cases.honest(prepared.submission)
    with pytest.raises(ContractError, match="binds no record to a leaf"):
        verix_anon.prove(delivery, prepared.manifest, table=cases.table(400), record=0)


def test_one_record_is_said(job: tuple[Prepared, Delivery]) -> None:
    prepared, delivery = job
    for said in ({}, {"record": 1, "tracker": bytes(32)}, {"record": 1, "person": 1}):
        with pytest.raises(TableError, match="one of tracker, record and person"):
            verix_anon.prove(delivery, prepared.manifest, table=cases.table(400), **said)
