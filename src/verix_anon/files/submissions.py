"""A submission as a folder: submission.json, contract.json and records.parquet (spec §8).

It is the owner's word, but it came over a wire: the provider reads it as carefully as the owner
reads a delivery, and what is not what `submission.json` says was damaged on the way.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import rfc8785

from verix_anon.arrays import Floats, Ints
from verix_anon.errors import ContractError, MemoryShortError, TableError
from verix_anon.fields import Fields
from verix_anon.files.aside import write_bytes, written_aside
from verix_anon.files.hashed import RECORDS, Files, digest_of_file, stated_digests
from verix_anon.files.hostile import reader as parquet
from verix_anon.files.spilled import Place, SpilledSubmission, fitting, spill
from verix_anon.files.store import open_folder, path_text
from verix_anon.machine import available_cores, check_memory, lacking
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.messages import SUBMISSION_FORMAT, Submission
from verix_anon.protocol.table import MAX_ROWS, Records, wire_columns, wire_type

__all__ = [
    "Stated",
    "open_submission",
    "read_contract",
    "read_submission",
    "read_submission_by_column",
    "write_submission",
]

HEADER, CONTRACT = "submission.json", "contract.json"
NAMED = (CONTRACT, RECORDS)
"""The files whose digests are stated."""
MAX_HEADER_BYTES = 1 << 16
MAX_CONTRACT_BYTES = 256 << 20
# Trackers do not compress: half of what they take shows that there are as many rows as is said.
LEAST_BYTES_PER_ROW = 16


def write_submission(
    submission: Submission, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a submission's folder for its owner alone; it appears complete or not at all."""
    contract, records = submission.contract, submission.records
    encodings = {"row": "DELTA_BINARY_PACKED", "tracker": "PLAIN"}
    for column, values in zip(contract.quasi, records.values, strict=True):
        if _is_varied(values):
            is_float = column.n_values is None
            encodings[column.name] = "BYTE_STREAM_SPLIT" if is_float else "DELTA_BINARY_PACKED"
    with written_aside(path, overwrite=overwrite, folder=True, private=True) as folder:
        write_bytes(folder / CONTRACT, contract.to_bytes())
        with parquet.Writer(folder / RECORDS, encodings) as writer:
            # A group at a time: as they are written, all together take half of what they do here.
            for first in range(0, records.n_rows, parquet.GROUP_ROWS):
                writer.add(_written(submission, first, first + parquet.GROUP_ROWS))
        stated = rfc8785.dumps(
            {
                "format": SUBMISSION_FORMAT,
                "contract": contract.digest.hex(),
                "submission": submission.digest(threads=available_cores()).hex(),
                "rows": records.n_rows,
                "files": {name: digest_of_file(folder / name) for name in NAMED},
            }
        )
        write_bytes(folder / HEADER, stated)


def _written(submission: Submission, first: int, end: int) -> dict[str, parquet.Array]:
    """Some rows, as they stand in the file."""
    contract, records = submission.contract, submission.records
    rows = slice(first, min(end, records.n_rows))
    names = [column.name for column in contract.columns]
    return {
        "row": np.arange(rows.start, rows.stop),
        "tracker": records.tracker[rows],
        **dict(zip(names, wire_columns(contract, records, rows), strict=True)),
    }


def _is_varied(values: Floats) -> bool:
    """Whether a column has too many values for a dictionary, judged by its first rows."""
    sample = values[:65536]
    return bool(np.unique(sample).size > sample.size // 8)


def read_submission(path: str | os.PathLike[str]) -> Submission:
    """Read a submission's folder.

    Raises:
        ContractError: contract.json is not a contract.
        TableError: a file is missing or was damaged on the way, or the records do not fit the
            contract.
        MemoryShortError: there is not the memory for it.
    """
    stated, readers = _opened(path)
    contract, n_rows = stated.contract, stated.n_rows
    check_memory(
        (8 * len(contract.quasi) + 34) * n_rows,
        f"reading {RECORDS} ({n_rows:,} rows, {len(contract.quasi)} quasi-identifiers)",
        MemoryShortError,
    )
    with _reading(n_rows):
        records = _fill(contract, readers, n_rows)
    with fitting():
        submission = Submission(contract=contract, records=records)
    stated.check_digest(submission.digest(threads=available_cores()))
    return submission


def read_submission_by_column(
    path: str | os.PathLike[str], *, most_values: int
) -> Submission | SpilledSubmission:
    """The same for whoever looks at one column after the other.

    Values of more than so many bytes are not held: the records go to a scratch file.
    """
    stated = open_submission(path)
    if stated.n_rows * len(stated.contract.quasi) * 8 <= most_values:
        return read_submission(path)
    stated, readers = _opened(path)
    n_rows = stated.n_rows
    with _reading(n_rows):
        submission = spill(stated.contract, _places(readers, n_rows), n_rows)
    stated.check_digest(submission.digest())
    return submission


def _opened(path: str | os.PathLike[str]) -> tuple["Stated", list[parquet.Reader]]:
    """What submission.json says, and the records, of which none is decoded yet."""
    stated = open_submission(path)
    files, contract, n_rows = stated.files, stated.contract, stated.n_rows
    columns = {c.name: pa.from_numpy_dtype(wire_type(c)) for c in contract.columns}
    expected, parts = files.hold_records(
        {"row": pa.int64(), "tracker": parquet.TRACKER, **columns}, n_rows
    )
    stated.check_files()
    readers = parquet.open_parts(
        parts, expected, TableError, n_rows=n_rows, most_bytes=expected.bytes_for(n_rows)
    )
    found = sum(reader.n_rows for reader in readers)
    stated.check(found == n_rows, f"{RECORDS} has {found:,} rows, and not the {n_rows:,}")
    if sum(part.size for part in parts.values()) < LEAST_BYTES_PER_ROW * n_rows:
        raise TableError(f"{RECORDS} is too small for the trackers of {n_rows:,} rows")
    return stated, readers


@contextmanager
def _reading(n_rows: int) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise MemoryShortError(lacking(f"reading {RECORDS} ({n_rows:,} rows)")) from None


def open_submission(path: str | os.PathLike[str]) -> "Stated":
    """Open a submission's folder: the contract and what submission.json says, and no record.

    Raises:
        ContractError: contract.json is not a contract.
        TableError: a file is missing or was damaged on the way.
    """
    folder = open_folder(path, TableError)
    if folder.has("delivery.json"):
        raise TableError(f"{path} is a delivery, not a submission")
    return Stated(Files(folder))


def read_contract(path: str | os.PathLike[str]) -> Contract:
    """Read a contract: contract.json, or that of a submission's folder, of which no more is read.

    Raises:
        ContractError: It is not a contract.
        TableError: There is none.
    """
    place, slash, name = path_text(path).rpartition("/")
    if not name.endswith(".json"):
        return open_submission(path).contract
    folder = open_folder(place + slash or ".", TableError)
    return _contract(folder.read(name, limit=MAX_CONTRACT_BYTES))


def _contract(data: bytes) -> Contract:
    try:
        return Contract.from_bytes(data)
    except ContractError as error:
        raise ContractError(f"{CONTRACT}: {error}") from None


class Stated:
    """What submission.json says; whatever else is found was damaged on the way."""

    def __init__(self, files: Files) -> None:
        data = files.read(HEADER, MAX_HEADER_BYTES)
        fields = Fields.parse(data, HEADER, TableError)
        fields.expect("format", SUBMISSION_FORMAT)
        fields.only({"format", "contract", "submission", "rows", "files"})
        self.files = files
        self.contract_digest = fields.digest("contract")
        self.submission = fields.digest("submission").hex()
        self.n_rows = fields.whole("rows", range(1, MAX_ROWS + 1))
        self.digests = stated_digests(fields, NAMED)
        self.contract = self._contract()

    def check(self, holds: bool, problem: str) -> None:
        """Raise unless something holds that submission.json says."""
        if not holds:
            raise TableError(
                f"{self.files.folder.path} was damaged on the way: {problem} that {HEADER} states"
            )

    def check_files(self) -> None:
        """Raise unless the files read so far are those that are named."""
        different = self.files.different(self.digests)
        self.check(not different, f"{' and '.join(different)} differs from the SHA-256")

    def check_digest(self, found: Digest) -> None:
        """Raise unless the records are those that are meant."""
        self.check(found.hex() == self.submission, "its records are not those of the digest")

    def _contract(self) -> Contract:
        """The contract, if it is the one that is meant."""
        data = self.files.read(CONTRACT, MAX_CONTRACT_BYTES)
        self.check_files()
        contract = _contract(data)
        is_same = contract.digest == self.contract_digest
        self.check(is_same, f"{CONTRACT} is not the contract")
        return contract


def _fill(contract: Contract, readers: list[parquet.Reader], n_rows: int) -> Records:
    """The records in ascending row, wherever they stand in the files."""
    tracker = np.empty((n_rows, 32), np.uint8)
    values = np.empty((len(contract.quasi), n_rows))
    target = np.zeros(n_rows, np.uint8)
    into: dict[str, parquet.Array] = {"tracker": tracker}
    into |= {column.name: out for column, out in zip(contract.quasi, values, strict=True)}
    if contract.target is not None:
        into[contract.target.name] = target
    with ThreadPoolExecutor(available_cores()) as pool:
        for reader, group, where in _places(readers, n_rows):
            parquet.copy_group(reader, group, into, where, pool)
    for column, out in zip(contract.quasi, values, strict=True):
        if column.n_values is None:
            # Adding 0.0 turns -0.0 into 0.0 and changes nothing else; a signalling NaN would warn.
            with np.errstate(invalid="ignore"):
                np.add(out, 0.0, out=out)
    return Records(tracker=tracker, values=values, target=target)


def _places(readers: list[parquet.Reader], n_rows: int) -> list[Place]:
    """Where the rows of each group belong, which are all rows, each once."""
    is_there = np.zeros(n_rows, np.bool_)
    places = []
    for reader in readers:
        for group in reader.groups():
            where = _place(reader, group, n_rows)
            is_there[where] = True
            places.append((reader, group, where))
    if not is_there.all():
        row = int(np.argmin(is_there))
        raise TableError(f"{RECORDS}: row {row} is missing, and another occurs twice")
    return places


def _place(reader: parquet.Reader, group: int, n_rows: int) -> slice | Ints:
    """Where the rows of a group belong; one run of memory if they ascend without gaps."""
    row: Ints = reader.read_group(group, ["row"])["row"].astype(np.int64, copy=False)
    if row.min() < 0 or row.max() >= n_rows:
        raise TableError(f"{reader.name}: a row is not one of 0 to {n_rows - 1}")
    is_run = bool((np.diff(row) == 1).all())
    return slice(int(row[0]), int(row[0]) + row.size) if is_run else row
