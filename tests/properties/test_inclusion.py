"""Every record of every delivery can be proved, and no byte of a proof can be changed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.tables import any_submissions
from tools import cases, independent_proofs
from verix_anon.client.prove import Committed
from verix_anon.errors import ProofError
from verix_anon.protocol.contract import Commitment
from verix_anon.protocol.inclusion import Proof, check
from verix_anon.protocol.messages import Submission


def binding() -> st.SearchStrategy[Submission]:
    return any_submissions().filter(lambda s: s.contract.commitment is Commitment.BINDING)


@settings(max_examples=60, deadline=None)
@given(binding())
def test_every_record_is_proved(sent: Submission) -> None:
    delivery = cases.honest(sent)
    committed = Committed.of(sent.contract, delivery)
    root = delivery.header.root
    for row, leaf in zip(delivery.records.row, delivery.records.leaf, strict=True):
        tracker = sent.records.tracker[row].tobytes()
        data = committed.proof(tracker).to_bytes()
        proof = Proof.from_bytes(data)
        check(proof, root=root, tracker=tracker)
        assert independent_proofs.holds(data.decode(), root.hex())
        assert proof.count == delivery.leaves.count[leaf]
        assert dict(proof.members)[int(row)] == tracker
        # The record's own values: within the bounds, and on the side of every split.
        for (low, high), values in zip(proof.bounds, sent.records.values, strict=True):
            assert low <= values[row] <= high
        for turn in proof.path:
            goes_left = sent.records.values[turn.column][row] <= turn.threshold
            assert turn.side == ("left" if goes_left else "right")


@settings(max_examples=120, deadline=None)
@given(binding(), st.data())
def test_no_byte_can_be_changed(sent: Submission, data: st.DataObject) -> None:
    delivery = cases.honest(sent)
    row = data.draw(st.integers(0, sent.records.n_rows - 1))
    made = Committed.of(sent.contract, delivery).proof(sent.records.tracker[row].tobytes())
    written = bytearray(made.to_bytes())
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ProofError):
        check(Proof.from_bytes(bytes(written)), root=delivery.header.root)


@settings(max_examples=100, deadline=None)
@given(binding(), st.data())
def test_no_byte_can_be_left_out_or_put_in(sent: Submission, data: st.DataObject) -> None:
    delivery = cases.honest(sent)
    made = Committed.of(sent.contract, delivery).proof(sent.records.tracker[0].tobytes())
    written = made.to_bytes()
    at = data.draw(st.integers(0, len(written) - 1))
    put_in = data.draw(st.sampled_from([b"", b" ", b"0", b"1", b".", b"-", b",", b'"', b"{}"]))
    changed = written[:at] + put_in + written[at + (not put_in) :]
    with pytest.raises(ProofError):
        check(Proof.from_bytes(changed), root=delivery.header.root)


@settings(max_examples=40, deadline=None)
@given(binding(), binding())
def test_a_proof_is_of_one_root(sent: Submission, other: Submission) -> None:
    delivery, elsewhere = cases.honest(sent), cases.honest(other)
    made = Committed.of(sent.contract, delivery).proof(sent.records.tracker[0].tobytes())
    if delivery.header.root != elsewhere.header.root:
        with pytest.raises(ProofError, match="another root"):
            check(made, root=elsewhere.header.root)
