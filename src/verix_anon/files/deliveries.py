"""Reads a delivery's folder (spec §8) as the work of an attacker (spec §11).

The provider controls every byte of every file. The contract and the number of rows sent limit how
much is read. Each file is read once, hashed, and decoded from the same bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Ids, Ints
from verix_anon.errors import MalformedDeliveryError, MixedUpError, ReceiptError, TableError
from verix_anon.fields import Fields
from verix_anon.files import job_folder
from verix_anon.files.hashed_files import Files, stated_digests
from verix_anon.files.hostile import parquet_reader as parquet
from verix_anon.files.store import FilePath, Folder, open_folder
from verix_anon.machine import available_cores
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.messages import DELIVERY_FORMAT, Delivered, Delivery, Header
from verix_anon.protocol.statements import read_word
from verix_anon.protocol.tree import Leaves, Tree

HEADER_FIELDS = frozenset(
    {"format", "contract", "submission", "root", "engine", "version", "rows", "leaves"}
    | {"nodes", "seconds", "files"}
)
MIXED_UP = "answers another submission; are folders mixed up?"
NAMED = (job_folder.LEAVES, job_folder.NODES, job_folder.RECORDS)
"""The files whose digests are stated."""
MAX_HEADER_BYTES = 1 << 16
COUNTS = range(2**32)
MAX_SECONDS = 2**53

COLUMNS = {"row": pa.int64(), "tracker": parquet.TRACKER, "leaf": pa.int32()}
TARGET = {"target": pa.uint8()}
NODE = parquet.Expected(
    {"column": pa.int32(), "threshold": pa.float64()}
    | dict.fromkeys(("left", "right", "leaf"), pa.int32())
)


def leaf_file(n_quasi: int) -> parquet.Expected:
    """What leaves.parquet must hold, of so many quasi-identifiers."""
    bounds = {f"{end}_{j}": pa.float64() for j in range(n_quasi) for end in ("min", "max")}
    return parquet.Expected({"leaf": pa.int32(), "count": pa.int64(), **bounds})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Snapshot:
    """A delivery, and the SHA-256 of each file it was read from.

    Examples:
        >>> kept = verix_anon.read_manifest("job/manifest.verix")
        >>> snapshot = verix_anon.read_delivery("job/delivery", kept.contract, n_rows=kept.n_rows)
    """

    delivery: Delivery
    files: Mapping[str, str] = field(repr=False)
    damaged: tuple[str, ...] = ()
    """The files that are not those whose digests delivery.json states"""
    receipt: bytes | ReceiptError | None = field(default=None, repr=False)
    """The provider's receipt as it came, why it cannot be read, or None if there is none"""


def read_delivery(
    path: FilePath, contract: Contract, *, n_rows: int, submission: Digest | None = None
) -> Snapshot:
    """Read a delivery for a submission of `n_rows` records under a contract.

    The result is well-formed: a canonical tree no deeper than agreed, finite ordered bounds for
    each leaf, and rows and leaf numbers in range. The layers judge whether it is true, its digests
    included.

    Raises:
        MixedUpError: It says that it is for another submission than the one given.
        MalformedDeliveryError: The bytes are not such a delivery.
        TableError: There is no folder at that path, or it is a submission's or a job's.

    Examples:
        >>> kept = verix_anon.read_manifest("job/manifest.verix")
        >>> snapshot = verix_anon.read_delivery("job/delivery", kept.contract, n_rows=kept.n_rows)
    """
    folder = open_folder(path, MalformedDeliveryError)
    if not folder.has(job_folder.DELIVERY_HEADER):
        if folder.has(job_folder.SUBMISSION_HEADER):
            raise TableError(f"{path} is a submission, not a delivery")
        if folder.has(job_folder.MANIFEST):
            raise TableError(
                f"{path} is a job's folder; did you mean {path}/{job_folder.DELIVERY}?"
            )
    files = Files(folder)
    header, stated = parse_header(files.read(job_folder.DELIVERY_HEADER, MAX_HEADER_BYTES))
    if submission is not None:
        # Check this first: nothing else is read then, so the provider of a mixed-up delivery learns
        # nothing.
        check_answers(header, submission)
    try:
        # The counts limit what is read below.
        header.check(contract, n_rows=n_rows)
        delivery = Delivery(
            header=header,
            leaves=_read_leaves(files, header.leaves, len(contract.quasi)),
            tree=_read_tree(files, header.nodes),
            records=_read_records(files, header, n_rows, has_target=contract.target is not None),
        )
        delivery.check(contract, n_rows=n_rows)
    except MalformedDeliveryError as error:
        if header.contract != contract.digest:
            raise MalformedDeliveryError(f"it {MIXED_UP} ({error})") from None
        if damaged := files.different(stated):
            raise MalformedDeliveryError(f"{error}; {damage(damaged)}") from None
        raise
    return Snapshot(
        delivery=delivery,
        files=files.digests,
        damaged=files.different(stated),
        receipt=_read_receipt(folder),
    )


def check_answers(header: Header, submission: Digest) -> None:
    """Raise MixedUpError if a delivery says that it is for another submission."""
    if header.submission != submission:
        raise MixedUpError(
            f"this delivery {MIXED_UP} It names {header.submission.hex()[:16]}, and the manifest"
            f" is of {submission.hex()[:16]}. It was not judged"
        )


def _read_receipt(folder: Folder) -> bytes | ReceiptError | None:
    """Return the receipt's bytes, why they cannot be read, or None if there is no receipt."""
    if not folder.has(job_folder.RECEIPT_FILE):
        return None
    # Executors of a cluster write deliveries, and do not have the packages for signatures.
    from verix_anon.protocol.envelopes import MAX_BYTES

    try:
        return folder.failing(ReceiptError).read(job_folder.RECEIPT_FILE, limit=MAX_BYTES)
    except ReceiptError as error:
        return error


def damage(names: tuple[str, ...]) -> str:
    """Return the words for files whose digests differ from those in delivery.json."""
    return f"{', '.join(names)} damaged on the way or altered (not the SHA-256 in delivery.json)"


def _fill(
    files: Files, name: str, expected: parquet.Expected, into: Mapping[str, parquet.Array]
) -> None:
    """Fill arrays from one file, which must have exactly as many rows."""
    n_rows = len(into["leaf"])
    data = files.hold(name, expected.bytes_for(n_rows))
    reader = parquet.Reader(name, data, expected, MalformedDeliveryError, most_rows=n_rows)
    _check_count(name, reader.n_rows, n_rows)
    parquet.copy_all([reader], into, available_cores())


def _check_count(name: str, found: int, stated: int) -> None:
    if found != stated:
        raise MalformedDeliveryError(f"{name} has {found} rows, but delivery.json says {stated}")


def _read_leaves(files: Files, n_leaves: int, n_quasi: int) -> Leaves:
    leaf, count = np.empty(n_leaves, np.int32), np.empty(n_leaves, np.int64)
    # One column after the other in memory, as the layers read them.
    minimum, maximum = np.empty((n_quasi, n_leaves)), np.empty((n_quasi, n_leaves))
    into: dict[str, parquet.Array] = {"leaf": leaf, "count": count}
    for j in range(n_quasi):
        into[f"min_{j}"], into[f"max_{j}"] = minimum[j], maximum[j]
    _fill(files, job_folder.LEAVES, leaf_file(n_quasi), into)
    if not np.array_equal(leaf, np.arange(n_leaves)):
        raise MalformedDeliveryError("leaves.parquet: column 'leaf' does not count from 0 upwards")
    return Leaves(count=count, minimum=minimum.T, maximum=maximum.T)


def _read_tree(files: Files, n_nodes: int) -> Tree:
    threshold = np.empty(n_nodes)
    column, left, right, leaf = (np.empty(n_nodes, np.int32) for _ in range(4))
    arrays = {"column": column, "left": left, "right": right, "leaf": leaf}
    _fill(files, job_folder.NODES, NODE, {**arrays, "threshold": threshold})
    return Tree(threshold=threshold, **arrays)


def _read_records(files: Files, header: Header, n_rows: int, *, has_target: bool) -> Delivered:
    """Return the records in ascending row, whatever their order in the files."""
    expected, parts = files.hold_records(COLUMNS | TARGET if has_target else COLUMNS, n_rows)
    readers = parquet.open_parts(
        parts,
        expected,
        MalformedDeliveryError,
        n_rows=header.rows,
        most_bytes=expected.bytes_for(n_rows),
    )
    _check_count(job_folder.RECORDS, sum(reader.n_rows for reader in readers), header.rows)
    row = np.empty(header.rows, np.int64)
    parquet.copy_all(readers, {"row": row}, available_cores())
    places = _places(row)
    row.sort()
    leaf, tracker = np.empty(header.rows, np.int32), np.empty((header.rows, 32), np.uint8)
    target = np.zeros(header.rows, np.uint8)
    into: dict[str, parquet.Array] = {"tracker": tracker, "leaf": leaf}
    if has_target:
        into["target"] = target
    parquet.copy_all(readers, into, available_cores(), places)
    return Delivered(row=row, tracker=tracker, leaf=leaf, target=target, has_target=has_target)


def _places(row: Ints) -> Ids | None:
    """Return each record's place in ascending row, stable if rows repeat; None if in order."""
    if (row[1:] >= row[:-1]).all():
        return None
    places = np.empty(row.size, np.int32)
    places[np.argsort(row, kind="stable")] = np.arange(row.size, dtype=np.int32)
    return places


def parse_header(data: bytes) -> tuple[Header, dict[str, str]]:
    """The header, and the digests of the other files."""
    fields = Fields.parse(data, job_folder.DELIVERY_HEADER, MalformedDeliveryError)
    fields.expect("format", DELIVERY_FORMAT)
    fields.only(HEADER_FIELDS)
    header = Header(
        contract=Digest(fields.digest("contract")),
        submission=Digest(fields.digest("submission")),
        root=Digest(fields.digest("root")),
        engine=read_word(fields, "engine"),
        version=read_word(fields, "version"),
        rows=fields.whole("rows", COUNTS),
        leaves=fields.whole("leaves", COUNTS),
        nodes=fields.whole("nodes", COUNTS),
        seconds=_seconds(fields),
    )
    return header, stated_digests(fields, NAMED)


def _seconds(fields: Fields) -> float:
    value = fields.number("seconds")
    if not 0 <= value <= MAX_SECONDS:
        raise fields.wrong("seconds", "a number of seconds")
    return float(value)
