"""A submission as a folder: submission.json, contract.json and records.parquet (spec §8).

The owner wrote it, but it came over a network. So the provider reads it as carefully as the owner
reads a delivery. Anything that differs from `submission.json` was damaged on the way.

`read_submission_by_column` keeps only one column per thread in memory.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verix_anon.arrays import Bytes, Floats, Ids, Ints
from verix_anon.errors import ContractError, MemoryShortError, TableError
from verix_anon.fields import Fields
from verix_anon.files.hashed_files import Files, stated_digests
from verix_anon.files.hostile import parquet_reader as parquet
from verix_anon.files.job_folder import CONTRACT, DELIVERY_HEADER, RECORDS, SUBMISSION_HEADER
from verix_anon.files.scratch import Kept, Scratch
from verix_anon.files.store import FilePath, open_folder
from verix_anon.machine import available_cores, check_memory, give_back, lacking
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Column, Contract, Digest, Role
from verix_anon.protocol.messages import SUBMISSION_FORMAT, Submission
from verix_anon.protocol.records import (
    MAX_ROWS,
    Records,
    check_count,
    check_target,
    check_values,
    wire_type,
)

Place = tuple[parquet.Reader, int, slice | Ints]
"""A row group, and where its rows belong."""


@dataclass(frozen=True, slots=True, eq=False)
class SpilledRecords:
    """Like `Records`, but each column lies in a scratch file, as it is written."""

    tracker: Kept
    columns: tuple[Kept, ...]
    """The quasi-identifiers, in contract order"""
    target: Bytes

    @property
    def n_rows(self) -> int:
        """How many records there are."""
        return int(self.target.size)

    def column(self, number: int) -> Floats | Ids:
        """All values of a quasi-identifier."""
        return self.columns[number].read()

    def trackers(self, first: int, end: int) -> Bytes:
        """Return the trackers of some rows."""
        return self.tracker.read(first, end)


@dataclass(frozen=True, slots=True, eq=False)
class SpilledSubmission:
    """A submission that is never in memory as a whole."""

    contract: Contract
    records: SpilledRecords
    _digest: Digest

    def digest(self, *, threads: int | None = None) -> Digest:
        """Return the digest that binds a delivery to this submission."""
        return self._digest


def spill(contract: Contract, places: list[Place], n_rows: int) -> SpilledSubmission:
    """Write the records of these row groups to a scratch file, in ascending row.

    Raises:
        TableError: They do not fit the contract.
    """
    with fitting():
        check_count(contract, n_rows)
    scratch = Scratch()

    def keep(column: Column) -> Kept:
        values = _filled(places, column.name, np.empty(n_rows, wire_type(column)))
        if column.role is not Role.TARGET and column.n_values is None:
            parquet.unsign_zeros(values)
        with fitting():
            if column.role is Role.TARGET:
                check_target(contract, values)
            else:
                check_values(column, values)
        return scratch.put(values)

    tracker = scratch.put(_filled(places, "tracker", np.empty((n_rows, 32), np.uint8)))
    with ThreadPoolExecutor(min(2, available_cores())) as pool:
        kept = list(pool.map(keep, contract.columns))
    give_back()
    by_role = list(zip(contract.columns, kept, strict=True))
    target = next((k.read() for c, k in by_role if c.role is Role.TARGET), None)
    records = SpilledRecords(
        tracker,
        tuple(k for c, k in by_role if c.role is not Role.TARGET),
        np.zeros(n_rows, np.uint8) if target is None else target,
    )
    records.target.setflags(write=False)
    return SpilledSubmission(contract, records, _digest(contract, n_rows, [tracker, *kept]))


@contextmanager
def fitting() -> Iterator[None]:
    """Say in errors that the records do not fit the contract."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{RECORDS} does not fit the contract: {error}") from None


def _filled(places: list[Place], name: str, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
    for reader, group, where in places:
        out[where] = reader.read_group(group, [name])[name]
    return out


def _digest(contract: Contract, n_rows: int, columns: list[Kept]) -> Digest:
    """Return the submission's digest. Columns lie in the file as they are hashed."""

    def chunk(number: int) -> bytes:
        first, end = number * merkle.CHUNK_ROWS, (number + 1) * merkle.CHUNK_ROWS
        return merkle.columns_digest(number, (kept.read(first, end) for kept in columns))

    with ThreadPoolExecutor(available_cores()) as pool:
        chunks = pool.map(chunk, range(-(-n_rows // merkle.CHUNK_ROWS)))
        return merkle.chunks_digest(contract, n_rows, chunks)


NAMED = (CONTRACT, RECORDS)
"""The files whose digests are stated."""
MAX_HEADER_BYTES = 1 << 16
MAX_CONTRACT_BYTES = 256 << 20
# Trackers do not compress, so a file with fewer bytes cannot hold the stated number of rows.
LEAST_BYTES_PER_ROW = 16


def read_submission(path: FilePath) -> Submission:
    """Read a submission's folder.

    Raises:
        ContractError: contract.json is not a contract.
        TableError: a file is missing or was damaged on the way, or the records do not fit the
            contract.
        MemoryShortError: there is not the memory for it.

    Examples:
        >>> submission = verix_anon.read_submission("job/submission")
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
    path: FilePath, *, most_values: int
) -> Submission | SpilledSubmission:
    """Read a submission for code that looks at one column after the other.

    Values of more than `most_values` bytes go to a scratch file instead of memory.
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


def _opened(path: FilePath) -> tuple["Stated", list[parquet.Reader]]:
    """Return what submission.json says, and the records before any is decoded."""
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


def open_submission(path: FilePath) -> "Stated":
    """Open a submission's folder and read its contract and submission.json, but no records.

    Raises:
        ContractError: contract.json is not a contract.
        TableError: a file is missing or was damaged on the way.
    """
    folder = open_folder(path, TableError)
    if folder.has(DELIVERY_HEADER):
        raise TableError(f"{path} is a delivery, not a submission")
    return Stated(Files(folder))


def parse_contract(data: bytes) -> Contract:
    """What contract.json holds; raises ContractError."""
    try:
        return Contract.from_bytes(data)
    except ContractError as error:
        raise ContractError(f"{CONTRACT}: {error}") from None


class Stated:
    """What submission.json says. Anything that differs from it was damaged on the way."""

    def __init__(self, files: Files) -> None:
        data = files.read(SUBMISSION_HEADER, MAX_HEADER_BYTES)
        fields = Fields.parse(data, SUBMISSION_HEADER, TableError)
        fields.expect("format", SUBMISSION_FORMAT)
        fields.only({"format", "contract", "submission", "rows", "files"})
        self.files = files
        self.contract_digest = fields.digest("contract")
        self.submission = fields.digest("submission").hex()
        self.n_rows = fields.whole("rows", range(1, MAX_ROWS + 1))
        self.digests = stated_digests(fields, NAMED)
        data = files.read(CONTRACT, MAX_CONTRACT_BYTES)
        self.check_files()
        self.contract = parse_contract(data)
        is_same = self.contract.digest == self.contract_digest
        self.check(is_same, f"{CONTRACT} is not the contract")

    def check(self, holds: bool, problem: str) -> None:
        """Raise unless what submission.json says holds."""
        if not holds:
            raise TableError(
                f"{self.files.folder.path} was damaged on the way: {problem} that"
                f" {SUBMISSION_HEADER} states"
            )

    def check_files(self) -> None:
        """Raise unless the files read so far have the stated digests."""
        different = self.files.different(self.digests)
        self.check(not different, f"{' and '.join(different)} differs from the SHA-256")

    def check_digest(self, found: Digest) -> None:
        """Raise unless the records have the stated digest."""
        self.check(found.hex() == self.submission, "its records are not those of the digest")


def _fill(contract: Contract, readers: list[parquet.Reader], n_rows: int) -> Records:
    """Return the records in ascending row, whatever their order in the files."""
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
            parquet.unsign_zeros(out)
    return Records(tracker=tracker, values=values, target=target)


def _places(readers: list[parquet.Reader], n_rows: int) -> list[Place]:
    """Return where the rows of each group belong. Every row must occur exactly once."""
    is_there = np.zeros(n_rows, np.bool_)
    places = []
    for reader in readers:
        for group in reader.groups():
            row: Ints = reader.read_group(group, ["row"])["row"].astype(np.int64, copy=False)
            if row.min() < 0 or row.max() >= n_rows:
                raise TableError(f"{reader.name}: a row is not one of 0 to {n_rows - 1}")
            # Rows that ascend without gaps are one run of memory.
            is_run = bool((np.diff(row) == 1).all())
            where = slice(int(row[0]), int(row[0]) + row.size) if is_run else row
            is_there[where] = True
            places.append((reader, group, where))
    if not is_there.all():
        lacking_row = int(np.argmin(is_there))
        raise TableError(f"{RECORDS}: row {lacking_row} is missing, and another occurs twice")
    return places
