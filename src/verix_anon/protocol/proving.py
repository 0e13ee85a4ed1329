"""Proofs of inclusion for records of a delivery (spec §14); `inclusion` checks them.

Every leaf is hashed, once, since the digest of a sibling is that of a whole subtree. So it is
also seen that the root follows from the delivery: there is no proof under one that does not.
"""

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from verix_anon.errors import ContractError, MalformedDeliveryError, ProofError, TableError
from verix_anon.protocol import inclusion, merkle
from verix_anon.protocol.contract import Commitment, Contract, Digest
from verix_anon.protocol.digests import binding_root
from verix_anon.protocol.inclusion import MAX_BYTES, Proof, Side, Turn
from verix_anon.protocol.messages import Delivery

__all__ = ["Committed"]

NOTHING_PROVED = "so nothing is proved of it; let verix-anon verify judge it"


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """A delivery whose root was seen to follow from it, with the digest of every node."""

    contract: Contract
    delivery: Delivery
    members: merkle.Members
    of_node: Sequence[Digest]

    @classmethod
    def of(cls, contract: Contract, delivery: Delivery) -> "Committed":
        """Hash all of a well-formed delivery.

        Raises:
            ContractError: The contract's commitment is the paper's.
            MalformedDeliveryError: The root does not follow from the delivery.
        """
        if contract.commitment is not Commitment.BINDING:
            raise ContractError(
                "the paper's commitment binds no record to a leaf, so there are no proofs under it"
            )
        header, members = delivery.header, _members(delivery)
        of_node = merkle.node_digests(delivery.tree, merkle.leaf_digests(delivery.leaves, members))
        root = binding_root(contract.digest, header.submission, of_node[0])
        if not hmac.compare_digest(header.root, root):
            raise MalformedDeliveryError(
                "the root does not follow from the delivery's records, leaves and tree for this"
                f" contract, {NOTHING_PROVED}"
            )
        return cls(contract, delivery, members, of_node)

    def proof(self, tracker: bytes) -> Proof:
        """That the record with this tracker lies in its leaf.

        Raises:
            TableError: No record has this tracker.
            MalformedDeliveryError: Several have it, or the leaf is not what the contract allows.
        """
        header, leaves, members = self.delivery.header, self.delivery.leaves, self.members
        leaf = self._leaf(tracker)
        positions = members.positions[members.start[leaf] : members.start[leaf + 1]]
        rows = members.row[positions].tolist()
        proof = Proof(
            root=header.root,
            submission=header.submission,
            contract=self.contract,
            tracker=tracker,
            count=int(leaves.count[leaf]),
            bounds=tuple(
                zip(leaves.minimum[leaf].tolist(), leaves.maximum[leaf].tolist(), strict=True)
            ),
            members=tuple(
                (row, members.tracker[at].tobytes())
                for row, at in zip(rows, positions, strict=True)
            ),
            path=tuple(self._path(leaf)),
        )
        try:
            inclusion.check(proof, root=header.root)
        except ProofError as error:
            raise MalformedDeliveryError(f"{error}, {NOTHING_PROVED}") from None
        if (size := len(proof.to_bytes())) > MAX_BYTES:
            raise TableError(
                f"the record's class has {proof.count:,} records, so that its proof would have"
                f" {size:,} bytes; the limit is {MAX_BYTES:,}"
            )
        return proof

    def _leaf(self, tracker: bytes) -> int:
        wanted = np.frombuffer(tracker, np.uint8)
        found = np.flatnonzero((self.members.tracker == wanted).all(axis=1))
        if found.size == 0:
            raise TableError(f"no record of the delivery has the tracker {tracker.hex()}")
        if found.size > 1:
            raise MalformedDeliveryError(
                f"{found.size:,} records of the delivery have the tracker {tracker.hex()},"
                f" {NOTHING_PROVED}"
            )
        place = int(np.flatnonzero(self.members.positions == found[0])[0])
        return int(np.searchsorted(self.members.start, place, side="right")) - 1

    def _path(self, leaf: int) -> Iterator[Turn]:
        """The splits above a leaf, from it to the root."""
        tree = self.delivery.tree
        node = int(np.flatnonzero(tree.leaf == leaf)[0])
        while node:
            # Every node but the root is one child, and a left one follows its parent.
            is_left = tree.column[node - 1] >= 0
            above = node - 1 if is_left else int(np.flatnonzero(tree.right == node)[0])
            yield Turn(
                column=int(tree.column[above]),
                threshold=float(tree.threshold[above]),
                side=Side.LEFT if is_left else Side.RIGHT,
                sibling=self.of_node[int(tree.right[above]) if is_left else above + 1],
            )
            node = above


def _members(delivery: Delivery) -> merkle.Members:
    """The records leaf by leaf, in ascending row within each."""
    records, n_leaves = delivery.records, delivery.leaves.n_leaves
    order = np.argsort(records.row, kind="stable")
    positions = order[np.argsort(records.leaf[order], kind="stable")]
    counts = np.bincount(records.leaf, minlength=n_leaves)
    start = np.concatenate([[0], np.cumsum(counts)])
    return merkle.Members(positions, start, records.row, records.tracker)
