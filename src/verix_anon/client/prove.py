"""prove(): make proofs of inclusion for one record, or for all records of a person (spec §14).

Anyone who has the delivery and the contract can prove in which leaf the record with a tracker lies.
Only the manifest says whose tracker it is, so a reader has only the owner's word for that.

Every leaf is hashed once, because the digest of a sibling is that of a whole subtree. This also
shows whether the root follows from the delivery. If it does not, no proof is made.
"""

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.client import arguments
from verix_anon.client.arguments import FilePath, is_path
from verix_anon.client.manifest import Manifest, read_manifest
from verix_anon.client.owner_files import is_manifest
from verix_anon.client.table.columns import columns_of, owned, reading_of
from verix_anon.client.table.digest import plain_column
from verix_anon.client.table.owner_table import RECORD, read_columns
from verix_anon.client.table.task import TableRole
from verix_anon.errors import ContractError, MalformedDeliveryError, ProofError, TableError
from verix_anon.fields import shown
from verix_anon.files.deliveries import MIXED_UP, Snapshot, damage, read_delivery
from verix_anon.files.folder_facts import read_contract, read_header
from verix_anon.files.proofs import digest_bytes
from verix_anon.protocol import inclusion, merkle
from verix_anon.protocol.contract import Commitment, Contract, Digest
from verix_anon.protocol.digests import binding_root
from verix_anon.protocol.inclusion import MAX_BYTES, Proof, Side, Turn
from verix_anon.protocol.messages import Delivery, Submission

NOTHING_PROVED = "so nothing is proved of it; let verix-anon verify judge it"


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """A delivery whose root was computed again and is right, with the digest of every node."""

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
        """Prove that the record with this tracker lies in its leaf.

        Raises:
            TableError: No record has this tracker.
            MalformedDeliveryError: Several have it, or the leaf is not what the contract allows.
        """
        header, leaves, members = self.delivery.header, self.delivery.leaves, self.members
        leaf = self._leaf(tracker)
        positions = members.positions[members.start[leaf] : members.start[leaf + 1]]
        rows, bounds = members.row[positions].tolist(), (leaves.minimum[leaf], leaves.maximum[leaf])
        proof = Proof(
            root=header.root,
            submission=header.submission,
            contract=self.contract,
            tracker=tracker,
            count=int(leaves.count[leaf]),
            bounds=tuple(zip(*(each.tolist() for each in bounds), strict=True)),
            members=tuple(zip(rows, map(bytes, members.tracker[positions]), strict=True)),
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
        """Yield the splits above a leaf, from the leaf to the root."""
        tree = self.delivery.tree
        node = int(np.flatnonzero(tree.leaf == leaf)[0])
        while node:
            # Every node except the root is a child, and a left child follows its parent.
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


def prove(
    delivery: Delivery | Snapshot | FilePath,
    agreed: Contract | Submission | Manifest | FilePath,
    *,
    tracker: str | bytes | None = None,
    record: int | None = None,
    person: object = None,
    table: object = None,
) -> tuple[Proof, ...]:
    """Prove in which leaf a record lies, under the root of the delivery.

    Args:
        delivery: What the provider returned: in memory, or the folder or URL of its files.
        agreed: The contract; or the submission, which is read only for its contract; or the
            manifest, which also says whose record is whose. Or the path of one of them.
        tracker: The record with this tracker, as 32 bytes or 64 hexadecimal digits.
        record: The record in this row of the owner's table, counted from 0.
        person: All records of the person with this value of the person column, or else of the
            only identifier.
        table: The owner's table, as it was prepared, or its file; for `record` and `person`.

    Returns:
        A proof for each record, in the order of the table.

    Raises:
        ContractError: The contract's commitment is the paper's, under which there are no proofs.
        MalformedDeliveryError: The root does not follow from the delivery, or a record's class is
            not what was agreed, so there is nothing true to prove.
        TableError: There is no such record, or something given is not what it should be.

    Examples:
        >>> proofs = verix_anon.prove(
        ...     "job/delivery", "job/manifest.verix", record=0, table="people.csv"
        ... )
        >>> len(proofs)
        1
    """
    if [tracker, record, person].count(None) != 2:
        raise TableError("say which record to prove: give one of tracker, record and person")
    held: Contract | Submission | Manifest
    if isinstance(agreed, Contract | Submission | Manifest):
        held = agreed
    elif is_path(agreed):
        held = read_manifest(agreed) if is_manifest(agreed) else read_contract(agreed)
    else:
        what = "a contract or a manifest, or its path"
        raise TableError(f"agreed must be {what}, not {shown(agreed)}")
    kept = held if isinstance(held, Manifest) else None
    contract = held if isinstance(held, Contract) else held.contract
    if tracker is not None:
        wanted = [digest_bytes(tracker, "a tracker")]
        read = _read(delivery, contract, kept)
    elif kept is None or table is None:
        raise TableError(
            "to find a person's tracker, give the manifest and the table that it was made from"
        )
    else:
        rows = _owners_rows(kept, table, record, person)
        read = _read(delivery, contract, kept)
        wanted = _trackers(read, kept, rows)
    return tuple(map(Committed.of(contract, read).proof, wanted))


def _read(
    delivery: Delivery | Snapshot | FilePath, contract: Contract, kept: Manifest | None
) -> Delivery:
    """Return the delivery, checked to be well-formed, undamaged, and of this job."""
    held = delivery.delivery if isinstance(delivery, Snapshot) else delivery
    if isinstance(held, Delivery):
        arguments.check_types(held)
        held.check(contract, n_rows=held.header.rows if kept is None else kept.n_rows)
        damaged = delivery.damaged if isinstance(delivery, Snapshot) else ()
    elif not is_path(held):
        raise TableError(f"delivery must be a Delivery or the path of one, not {shown(held)}")
    else:
        # Without a manifest, take the number of rows from the header: the root covers all rows.
        n_rows = read_header(held).rows if kept is None else kept.n_rows
        snapshot = read_delivery(held, contract, n_rows=n_rows)
        held, damaged = snapshot.delivery, snapshot.damaged
    if damaged:
        raise MalformedDeliveryError(damage(damaged))
    if held.header.contract != contract.digest or (
        kept is not None and held.header.submission != kept.submission
    ):
        raise MalformedDeliveryError(f"the delivery {MIXED_UP}")
    return held


def _owners_rows(
    kept: Manifest, table: object, record: int | None, person: object
) -> Sequence[int]:
    """Return the rows of the owner's table that `record` or `person` names."""
    columns = columns_of(owned(table, reading_of(kept)).table)
    identifiers = [name for name, role in kept.roles.items() if role == TableRole.IDENTIFIER]
    # Use the columns that were read and checked; a second read may find a changed file.
    named = {kept.person, *identifiers}
    found, _ = read_columns(
        columns, lambda name, array: array if name in named else None, prepared=kept.table
    )
    n_rows = columns.n_rows
    if record is None:
        if kept.person not in (None, RECORD):
            identifiers = [str(kept.person)]
        if len(identifiers) != 1:
            raise TableError(
                "the manifest names no person column, and the table has"
                f" {len(identifiers)} identifiers: give the row of the record"
            )
        name = identifiers[0]
        return _rows_of(person, name, found[columns.names.index(name)])
    if isinstance(record, bool) or not isinstance(record, int) or not 0 <= record < n_rows:
        raise TableError(f"record is a row of the table, 0 to {n_rows - 1:,}, not {shown(record)}")
    return [record]


def _rows_of(person: object, name: str, array: pa.Array) -> list[int]:
    column = plain_column(array)
    try:
        wanted = pa.scalar(person if isinstance(person, str) else str(person)).cast(column.type)
    except pa.ArrowInvalid:
        found: list[int] = []
    else:
        found = np.flatnonzero(pc.equal(column, wanted).fill_null(False)).tolist()
    if not found:
        raise TableError(f"no record of the table has {shown(person)} in column {name!r}")
    return found


def _trackers(read: Delivery, kept: Manifest, rows: Sequence[int]) -> list[bytes]:
    """Return the trackers of rows of the owner's table; check that all are as they were sent."""
    order = np.argsort(read.records.row, kind="stable")
    sent = read.records.tracker[order]
    is_complete = np.array_equal(read.records.row[order], np.arange(kept.n_rows))
    if not is_complete or not hmac.compare_digest(sha256(sent.data).digest(), kept.tracker_column):
        raise MalformedDeliveryError(
            "rows or trackers of the delivery are not those that were sent, so it does not tell"
            " whose record is whose"
        )
    sent_row = np.full(kept.n_rows, -1)
    genuine = np.flatnonzero(kept.owner_row >= 0)
    sent_row[kept.owner_row[genuine]] = genuine
    return [sent[sent_row[row]].tobytes() for row in rows]
