"""prove(): proofs of inclusion for one record, or for all records of a person (spec §14).

With the contract alone anybody who has the delivery can prove what a tracker names. Which tracker
is whose only the manifest knows: that a tracker is somebody's is the owner's word.
"""

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.client import in_memory
from verix_anon.client.given import FilePath, is_path
from verix_anon.client.manifest import Manifest, is_manifest, read_manifest
from verix_anon.client.release.source import prepared_columns
from verix_anon.client.table.digest import plain_column
from verix_anon.client.table.owned import owned
from verix_anon.client.table.person import RECORD
from verix_anon.client.table.roles import TableRole
from verix_anon.errors import MalformedDeliveryError, TableError
from verix_anon.fields import shown
from verix_anon.files.deliveries import MIXED_UP, Snapshot, damage, read_delivery, read_header
from verix_anon.files.proofs import tracker_bytes
from verix_anon.files.submissions import read_contract
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.inclusion import Proof
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.proving import Committed

__all__ = ["prove"]


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
        agreed: The contract, or the submission, of which no more is read; or the manifest, which
            also knows whose record is whose; or the path of one of them.
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
            not what was agreed: there is nothing true to prove.
        TableError: There is no such record, or something given is not what it should be.
    """
    if [tracker, record, person].count(None) != 2:
        raise TableError("say of which record: one of tracker, record and person")
    held = _held(agreed)
    kept = held if isinstance(held, Manifest) else None
    contract = held if isinstance(held, Contract) else held.contract
    if tracker is not None:
        wanted = [tracker_bytes(tracker)]
        read = _read(delivery, contract, kept)
    elif kept is None or table is None:
        raise TableError("which tracker is whose needs the manifest, and the table it was made of")
    else:
        rows = _owners_rows(kept, table, record, person)
        read = _read(delivery, contract, kept)
        wanted = _trackers(read, kept, rows)
    return tuple(map(Committed.of(contract, read).proof, wanted))


def _held(agreed: Contract | Submission | Manifest | FilePath) -> Contract | Manifest:
    """The contract or, with more in it, the manifest."""
    if isinstance(agreed, Submission):
        return agreed.contract
    if isinstance(agreed, Contract | Manifest):
        return agreed
    if is_path(agreed):
        return read_manifest(agreed) if is_manifest(agreed) else read_contract(agreed)
    raise TableError(f"agreed must be a contract or a manifest, or its path, not {shown(agreed)}")


def _read(
    delivery: Delivery | Snapshot | FilePath, contract: Contract, kept: Manifest | None
) -> Delivery:
    """The delivery, well-formed, undamaged, and of this job."""
    held = delivery.delivery if isinstance(delivery, Snapshot) else delivery
    if isinstance(held, Delivery):
        in_memory.check_types(held)
        held.check(contract, n_rows=held.header.rows if kept is None else kept.n_rows)
        damaged = delivery.damaged if isinstance(delivery, Snapshot) else ()
    elif not is_path(held):
        raise TableError(f"delivery must be a Delivery or the path of one, not {shown(held)}")
    else:
        # A delivery that lacks rows proves nothing, so without a manifest it says itself how many.
        n_rows = read_header(held).rows if kept is None else kept.n_rows
        snapshot = read_delivery(held, contract, n_rows=n_rows)
        held, damaged = snapshot.delivery, snapshot.damaged
    if damaged:
        raise MalformedDeliveryError(damage(damaged))
    if held.header.contract != contract.digest or (
        kept is not None and held.header.submission != kept.submission
    ):
        raise MalformedDeliveryError(f"the delivery {MIXED_UP}?")
    return held


def _owners_rows(
    kept: Manifest, table: object, record: int | None, person: object
) -> Sequence[int]:
    """The rows of the owner's table that are meant."""
    columns = prepared_columns(owned(table, kept.reading).table, kept)
    n_rows = len(next(iter(columns.values())))
    if record is None:
        return _rows_of(person, _person_column(kept), columns)
    if isinstance(record, bool) or not isinstance(record, int) or not 0 <= record < n_rows:
        raise TableError(f"record is a row of the table, 0 to {n_rows - 1:,}, not {shown(record)}")
    return [record]


def _person_column(kept: Manifest) -> str:
    if kept.person not in (None, RECORD):
        return str(kept.person)
    named = [name for name, role in kept.roles.items() if role == TableRole.IDENTIFIER]
    if len(named) != 1:
        raise TableError(
            f"the manifest names no person column, and the table has {len(named)} identifiers:"
            " give the row of the record"
        )
    return named[0]


def _rows_of(person: object, name: str, columns: Mapping[str, pa.Array]) -> list[int]:
    column = plain_column(columns[name])
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
    """The trackers of rows of the owner's table, if all trackers are those that were sent."""
    order = np.argsort(read.records.row, kind="stable")
    sent = read.records.tracker[order]
    is_complete = np.array_equal(read.records.row[order], np.arange(kept.n_rows))
    if not is_complete or not hmac.compare_digest(sha256(sent.data).digest(), kept.tracker_column):
        raise MalformedDeliveryError(
            "rows or trackers of the delivery are not those that were sent, so nobody's record"
            " can be named in it"
        )
    sent_row = np.full(kept.n_rows, -1)
    genuine = np.flatnonzero(kept.owner_row >= 0)
    sent_row[kept.owner_row[genuine]] = genuine
    return [sent[sent_row[row]].tobytes() for row in rows]
