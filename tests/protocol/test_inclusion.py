"""Proofs of inclusion: what holds, what is refused, and in how much time."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support import submission
from tools import cases, independent_proofs
from verix_anon.client.prove import Committed
from verix_anon.errors import ContractError, MalformedDeliveryError, ProofError, TableError
from verix_anon.protocol import inclusion
from verix_anon.protocol.contract import Commitment, Contract, Digest
from verix_anon.protocol.inclusion import MAX_BYTES, Proof, Side, check, root_of
from verix_anon.protocol.messages import Delivery


def a_delivery(commitment: Commitment = Commitment.BINDING) -> tuple[Contract, Delivery]:
    values = [[float(i) for i in range(40)], [float(i * 7 % 11) for i in range(40)]]
    sent = submission(values, [i % 2 for i in range(40)], k=3, commitment=commitment)
    return sent.contract, cases.honest(sent)


@pytest.fixture(scope="module")
def proof() -> Proof:
    contract, delivery = a_delivery()
    return Committed.of(contract, delivery).proof(delivery.records.tracker[11].tobytes())


def committed(proof: Proof, **changes: Any) -> Proof:
    """The proof with changes that somebody committed to: the root follows."""
    changed = replace(proof, **changes)
    return replace(changed, root=root_of(changed))


def test_it_holds_and_reads_back(proof: Proof) -> None:
    check(proof, root=proof.root, tracker=proof.tracker)
    assert Proof.from_bytes(proof.to_bytes()) == proof
    assert independent_proofs.holds(proof.to_bytes().decode(), proof.root.hex())
    assert proof.path
    assert proof.count >= proof.contract.min_leaf
    assert proof.tracker.hex()[:16] in repr(proof)


def test_another_root_or_tracker(proof: Proof) -> None:
    with pytest.raises(ProofError, match="another root"):
        check(proof, root=Digest(bytes(32)))
    other = next(t for _, t in proof.members if t != proof.tracker)
    with pytest.raises(ProofError, match="another tracker"):
        check(proof, root=proof.root, tracker=other)
    # The same file with another member's tracker is that member's proof, and true.
    check(replace(proof, tracker=other), root=proof.root)
    with pytest.raises(ProofError, match="no record of the class"):
        check(replace(proof, tracker=bytes(32)), root=proof.root)


def test_what_was_not_committed_to(proof: Proof) -> None:
    for changes in (
        {"submission": Digest(bytes(32))},
        {"count": proof.count + 1},
        {"members": proof.members[1:]},
        {"bounds": tuple((low, high + 1) for low, high in proof.bounds)},
        {"path": proof.path[:-1]},
        {"path": (replace(proof.path[0], sibling=Digest(bytes(32))), *proof.path[1:])},
        {"contract": replace(proof.contract, k=2)},
        {"contract": replace(proof.contract, submission_id="f" * 32)},
    ):
        with pytest.raises(ProofError, match="the root does not follow"):
            check(replace(proof, **changes), root=proof.root)


def wrong_side(proof: Proof) -> dict[str, object]:
    turn = proof.path[0]
    other = Side.LEFT if turn.side is Side.RIGHT else Side.RIGHT
    return {"path": (replace(turn, side=other), *proof.path[1:])}


def at_the_edge(proof: Proof) -> dict[str, object]:
    """A class that reaches one value beyond the threshold of the last split."""
    turn = proof.path[0]
    bounds = list(proof.bounds)
    low, high = bounds[turn.column]
    is_left = turn.side is Side.LEFT
    beyond = float(np.nextafter(turn.threshold, np.inf))
    bounds[turn.column] = (low, max(high, beyond)) if is_left else (turn.threshold, high)
    return {"bounds": tuple(bounds)}


COMMITTED: dict[str, tuple[Callable[[Proof], dict[str, object]], str]] = {
    "fewer records than agreed": (
        lambda p: {"count": 2, "members": p.members[:2]},
        "has 2 records, and the contract asks for",
    ),
    "a count that is not true": (lambda p: {"count": p.count + 1}, "records and has"),
    "rows descend": (lambda p: {"members": p.members[::-1]}, "distinct and ascending"),
    "a row twice": (
        lambda p: {"members": (p.members[0], (p.members[0][0], b"x" * 32), *p.members[2:])},
        "distinct and ascending",
    ),
    "a tracker twice": (
        lambda p: {"members": (p.members[0], (p.members[1][0], p.members[0][1]), *p.members[2:])},
        "tracker occurs twice",
    ),
    "bounds upside down": (
        lambda p: {"bounds": ((1.0, 0.0), *p.bounds[1:])},
        "cannot have the bounds",
    ),
    "the wrong side": (wrong_side, "does not lie"),
    "a class beyond a threshold": (at_the_edge, "does not lie"),
    "too deep": (
        lambda p: {"contract": replace(p.contract, max_depth=1)},
        "splits deep, and the contract allows 1",
    ),
    "a column too many": (
        lambda p: {"path": (replace(p.path[0], column=2), *p.path[1:])},
        "a column that the contract has not",
    ),
    "a bound too few": (lambda p: {"bounds": p.bounds[:1]}, "it has bounds for 1 columns"),
    "an infinite threshold": (
        lambda p: {"path": (*p.path[:-1], replace(p.path[-1], threshold=float("inf")))},
        "cannot have the threshold",
    ),
    "the paper's commitment": (
        lambda p: {"contract": replace(p.contract, commitment=Commitment.PAPER)},
        "binds no record to a leaf",
    ),
}


@pytest.mark.parametrize("name", COMMITTED)
def test_what_a_provider_may_have_committed_to(name: str, proof: Proof) -> None:
    """The root follows, and the class is still not what was agreed."""
    change, problem = COMMITTED[name]
    wrong = committed(proof, **change(proof))
    with pytest.raises(ProofError, match=problem):
        check(wrong, root=wrong.root)


def test_values_that_a_column_cannot_have() -> None:
    prepared = cases.prepared()
    delivery = cases.honest(prepared.submission)
    tracker = delivery.records.tracker[0].tobytes()
    proof = Committed.of(prepared.submission.contract, delivery).proof(tracker)
    size = proof.contract.quasi[0].size
    assert size is not None
    for low, high in ((-1.0, 0.0), (0.0, float(size)), (0.5, 1.0)):
        wrong = committed(proof, bounds=((low, high), *proof.bounds[1:]), path=())
        with pytest.raises(ProofError, match="cannot have the bounds"):
            check(wrong, root=wrong.root)


def test_no_proof_is_made_of_what_does_not_follow() -> None:
    contract, delivery = a_delivery()
    tracker = delivery.records.tracker[0].tobytes()
    with pytest.raises(TableError, match="no record of the delivery has the tracker"):
        Committed.of(contract, delivery).proof(bytes(32))
    forged = replace(delivery, header=replace(delivery.header, root=Digest(bytes(32))))
    with pytest.raises(MalformedDeliveryError, match="root does not follow"):
        Committed.of(contract, forged)
    moved = delivery.leaves.maximum.copy()
    moved[0, 0] += 1
    widened = replace(delivery, leaves=replace(delivery.leaves, maximum=moved))
    with pytest.raises(MalformedDeliveryError, match="root does not follow"):
        Committed.of(contract, widened)
    paper, other = a_delivery(Commitment.PAPER)
    with pytest.raises(ContractError, match="paper's commitment binds no record"):
        Committed.of(paper, other)
    doubled = delivery.records.tracker.copy()
    doubled[1] = doubled[0]
    twice = replace(delivery, records=replace(delivery.records, tracker=doubled))
    root = root_by_hand(contract, twice)
    with pytest.raises(MalformedDeliveryError, match="2 records of the delivery have"):
        Committed.of(contract, replace(twice, header=replace(twice.header, root=root))).proof(
            tracker
        )


def root_by_hand(contract: Contract, delivery: Delivery) -> Digest:
    """The root that follows from what was made of a delivery."""
    from verix_anon.client.prove import _members
    from verix_anon.protocol import merkle

    return merkle.root_of(
        contract, delivery.header.submission, delivery.tree, delivery.leaves, _members(delivery)
    )


def test_no_proof_is_made_of_a_class_that_is_too_small() -> None:
    """A provider that lowered k and committed to it."""
    sent = submission([[float(i) for i in range(12)]], [i % 2 for i in range(12)], k=3)
    lowered = replace(sent.contract, k=2, min_leaf=2)
    delivery = cases.honest(replace(sent, contract=lowered))
    header = replace(delivery.header, contract=sent.contract.digest)
    delivery = replace(delivery, header=header)
    delivery = replace(delivery, header=replace(header, root=root_by_hand(sent.contract, delivery)))
    small = int(np.argmin(delivery.leaves.count))
    tracker = delivery.records.tracker[delivery.records.leaf == small][0].tobytes()
    with pytest.raises(MalformedDeliveryError, match="and the contract asks for"):
        Committed.of(sent.contract, delivery).proof(tracker)


def test_rows_in_any_order_give_the_same_proof(proof: Proof) -> None:
    contract, delivery = a_delivery()
    order = np.random.default_rng(1).permutation(delivery.records.row.size)
    records = delivery.records
    shuffled = replace(
        records,
        row=records.row[order],
        tracker=records.tracker[order],
        leaf=records.leaf[order],
        target=records.target[order],
    )
    made = Committed.of(contract, replace(delivery, records=shuffled)).proof(proof.tracker)
    assert made.to_bytes() == proof.to_bytes()


def test_a_class_too_large_for_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verix_anon.client.prove.MAX_BYTES", 100)
    contract, delivery = a_delivery()
    with pytest.raises(TableError, match="the limit is 100"):
        Committed.of(contract, delivery).proof(delivery.records.tracker[0].tobytes())


def with_field(proof: Proof, **fields: object) -> bytes:
    return json.dumps({**json.loads(proof.to_bytes()), **fields}).encode()


HOSTILE: dict[str, Callable[[Proof], bytes]] = {
    "nothing": lambda _: b"",
    "no JSON": lambda _: b"\xff\xfe",
    "a list": lambda _: b"[]",
    "deep": lambda _: b"[" * 1_000_000,
    "deep within": lambda p: with_field(p, path=None).replace(
        b"null", b"[" * 100_000 + b"]" * 100_000
    ),
    "a field twice": lambda p: p.to_bytes()[:-1] + b',"count":5}',
    "NaN": lambda p: with_field(p, bounds=[{"min": float("nan"), "max": 1}] * 2),
    "infinity": lambda p: with_field(p, bounds=[{"min": 0, "max": float("inf")}] * 2),
    "beyond binary64": lambda p: with_field(p, bounds=[{"min": 0, "max": 10**400}] * 2),
    "digits without end": lambda p: with_field(p, count=None).replace(b"null", b"9" * 1_000_000),
    "decimals without end": lambda p: with_field(p, count=None).replace(
        b"null", b"1." + b"3" * 10_000_000
    ),
    "a negative count": lambda p: with_field(p, count=-1),
    "a count of true": lambda p: with_field(p, count=True),
    "a negative row": lambda p: with_field(p, members=[{"row": -1, "tracker": "00" * 32}]),
    "a negative column": lambda p: with_field(
        p, path=[{"column": -1, "threshold": 0, "side": "left", "sibling": "00" * 32}]
    ),
    "a third side": lambda p: with_field(
        p, path=[{"column": 0, "threshold": 0, "side": "up", "sibling": "00" * 32}]
    ),
    "an unknown field": lambda p: with_field(p, more=1),
    "another format": lambda p: with_field(p, format="verix/proof/2"),
    "a short tracker": lambda p: with_field(p, tracker="00"),
    "capital digits": lambda p: with_field(p, tracker="AB" * 32),
    "another contract": lambda p: with_field(p, contract={"format": "verix/contract/2"}),
    "a contract of nothing": lambda p: with_field(p, contract=[]),
    "spaces": lambda p: p.to_bytes().replace(b'","', b'", "', 1),
    "a newline at the end": lambda p: p.to_bytes() + b"\n",
    "a number with a point": lambda p: re.sub(rb'"count":(\d+)', rb'"count":\1.0', p.to_bytes()),
    "minus zero": lambda p: re.sub(rb'"min":\d+', b'"min":-0', p.to_bytes(), count=1),
    "a million members": lambda p: with_field(
        p, members=[{"row": i, "tracker": "00" * 32} for i in range(1_000_000)], count=1_000_000
    ),
    "as many splits as there is room for": lambda p: with_field(
        p, path=[{"column": 0, "threshold": 0, "side": "left", "sibling": "00" * 32}] * 100_000
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused_in_bounded_time(name: str, proof: Proof) -> None:
    data = HOSTILE[name](proof)
    began = time.process_time()
    with pytest.raises(ProofError) as refused:
        check(Proof.from_bytes(data), root=proof.root)
    assert time.process_time() - began < 10
    assert len(str(refused.value)) < 400


@pytest.mark.long
def test_the_largest_class_that_fits_is_checked_in_bounded_time(proof: Proof) -> None:
    members = tuple((row, row.to_bytes(32)) for row in range(160_000))
    large = committed(proof, members=members, count=len(members), tracker=members[7][1])
    data = large.to_bytes()
    assert 0.8 * MAX_BYTES < len(data) <= MAX_BYTES
    began = time.process_time()
    inclusion.check(Proof.from_bytes(data), root=large.root)
    assert time.process_time() - began < 20
