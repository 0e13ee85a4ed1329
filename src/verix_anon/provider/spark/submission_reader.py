"""A submission's records as tasks read them: from row groups of files to records and keys.

Spark's own reader reaches few kinds of URL without more jars, and trusts every file. This module
uses fsspec. A file is surveyed first, as carefully as the local engine reads it, and then read
again in every pass. Nothing here depends on Spark.

In Spark a submission's columns have names of our own: `row`, `tracker`, `q0`, `q1` and so on in
contract order, and `target` where it was sent.

Values are compared by keys, which are whole numbers in the same order. A position is its own key.
A number's key is made of its bits: those of a negative one are inverted, except the sign. The same
step leads back, and 0.0 is the key 0 (there is no -0.0).
"""

import math
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.errors import ProviderError, TableError
from verix_anon.files.hashed_files import Files
from verix_anon.files.hostile import parquet_footer
from verix_anon.files.hostile import parquet_reader as parquet
from verix_anon.files.hostile.parquet_reader import Array
from verix_anon.files.job_folder import RECORDS
from verix_anon.files.store import open_folder
from verix_anon.protocol.contract import Column, Contract, Role
from verix_anon.protocol.merkle import CHUNK_ROWS
from verix_anon.protocol.records import TRACKER_SIZE, Records, wire_type

BATCH_ROWS = 1 << 16
HELD_BYTES = 64 << 20
"""A task that surveys a file holds it in memory up to this size, else in a scratch file."""
LEAST_ROWS, MOST_ROWS = 1 << 10, 1 << 22
"""How many rows one task reads; a row group is never shared by tasks, even if it is larger."""
MOST_BINS = 1 << 10
"""At most so many ranges of rows are counted; every file has a count for each range."""
TAIL = 8
"""Bytes after a footer, which say how long it is."""
ARROW = {
    "long": pa.int64(),
    "binary": pa.binary(),
    "int": pa.int32(),
    "short": pa.int16(),
    "double": pa.float64(),
    "string": pa.string(),
}
"""Spark's types, as Arrow has them."""
ALL_BUT_SIGN = np.int64(np.iinfo(np.int64).max)


class FaultError(TableError):
    """The submission itself is at fault, not the machine that reads it."""


class Piece(NamedTuple):
    """A row group of one of the files."""

    name: str
    group: int
    n_rows: int


class RecordSource(NamedTuple):
    """Where records lie, and what they must be."""

    path: str
    contract: bytes
    n_rows: int
    n_parts: int
    """The number of files in the folder of records; 0 if the records are one file"""

    def expected(self) -> parquet.Expected:
        """The columns of a file, by their names."""
        contract = Contract.from_bytes(self.contract)
        columns = {c.name: pa.from_numpy_dtype(wire_type(c)) for c in contract.columns}
        return parquet.Expected(
            {"row": pa.int64(), "tracker": parquet.TRACKER, **columns}, parts=self.n_parts
        )


class Surveyed(NamedTuple):
    """What is known about a file after it was read once."""

    digest: bytes | None
    """None if the file was not read to its end"""
    group_rows: list[int]
    n_bytes: int
    """The size of its decompressed pages"""
    counts: Ints
    """How many of its rows lie in each range"""
    problem: str | None
    """Why it cannot be read"""


def survey(source: RecordSource, name: str) -> Surveyed:
    """Hash a file, check all that can be checked without decoding a value, and count its rows."""
    expected, digest = source.expected(), None
    files = Files(open_folder(source.path, FaultError))
    if not files.folder.has(name):
        path = source.path
        raise ProviderError(f"the driver has found {name} in {path}, and an executor has not")
    files.room = HELD_BYTES
    most = expected.bytes_for(source.n_rows)
    try:
        held = files.hold(name, most)
        digest = bytes.fromhex(files.digests[name])
        found = parquet.Reader(
            name, held, expected, FaultError, most_rows=source.n_rows, most_bytes=most
        )
        counts = np.zeros_like(rows_of_bins(source.n_rows))
        for group in found.groups():
            for row in found.batches(group, "row", BATCH_ROWS):
                rows: Ints = row.astype(np.int64, copy=False)
                if not 0 <= rows.min() <= rows.max() < source.n_rows:
                    raise FaultError(f"{name}: {not_once(source.n_rows)}")
                counts += np.bincount(rows // _bin_rows(source.n_rows), minlength=counts.size)
    except FaultError as error:
        return Surveyed(digest, [], 0, np.zeros(0, np.int64), str(error))
    return Surveyed(digest, found.group_rows, found.n_bytes, counts, None)


def rows_of_bins(n_rows: int) -> Ints:
    """Return how many rows each range has. All ranges except the last hold whole chunks."""
    width = _bin_rows(n_rows)
    return np.minimum(width, n_rows - np.arange(0, n_rows, width))


def _bin_rows(n_rows: int) -> int:
    return CHUNK_ROWS * math.ceil(math.ceil(n_rows / CHUNK_ROWS) / MOST_BINS)


def not_once(n_rows: int) -> str:
    """Return the message for rows that are not exactly the stated ones."""
    return f"not each row from 0 to {n_rows - 1} is there once"


@contextmanager
def faults(name: str) -> Iterator[None]:
    """What decoders say is the fault of the bytes; what the system says, or a store, is not."""
    try:
        yield
    except parquet.DECODERS as error:
        # Arrow's own is a plain one without a number, and for memory it has an error of both kinds.
        is_arrows = type(error) is OSError and error.errno is None
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and not is_arrows):
            raise
        reason = " ".join(str(error).split())[:200]
        raise FaultError(f"{name} is not a readable Parquet file ({reason})") from None


def batches(
    source: RecordSource, piece: Piece, wanted: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Some columns of a row group by our own names, in Spark's types."""
    types = dict(fields_of(Contract.from_bytes(source.contract)))
    at = {name: str(i) for i, name in enumerate(types) if name in wanted}
    with _opened(source, piece.name) as file:
        # Arrow's threads would take cores that Spark has given to other tasks.
        for batch in file.iter_batches(
            BATCH_ROWS, row_groups=[piece.group], columns=list(at.values()), use_threads=False
        ):
            columns = [
                _for_spark(batch.column(number), ARROW[types[name]]) for name, number in at.items()
            ]
            yield pa.record_batch(columns, list(at))


def share_out(pieces: Sequence[Piece], n_cores: int) -> tuple[tuple[Piece, ...], ...]:
    """What each task reads: about as much as any other, in two rounds of all cores or more."""
    n_rows = sum(piece.n_rows for piece in pieces)
    enough = min(MOST_ROWS, max(LEAST_ROWS, n_rows // (2 * n_cores)))
    shares: list[tuple[Piece, ...]] = []
    waiting: list[Piece] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(each.n_rows for each in waiting) >= enough:
            shares.append(tuple(waiting))
            waiting = []
    return (*shares, tuple(waiting)) if waiting else tuple(shares)


@contextmanager
def _opened(source: RecordSource, name: str) -> Iterator[pq.ParquetFile]:
    with open_folder(source.path, TableError).open(name) as file:
        n_columns, n_rows = len(source.expected().columns), source.n_rows
        most = parquet.FOOTER_BYTES + parquet.FOOTER_BYTES_PER_COLUMN * n_columns + n_rows
        size = file.seek(0, os.SEEK_END)
        file.seek(size - TAIL)
        length = int.from_bytes(file.read(4), "little")
        file.seek(size - TAIL - length)
        footer = parquet_footer.read_footer(file.read(), most=most)
        metadata = pq.read_metadata(pa.BufferReader(footer.clean))
        types = metadata.schema.to_arrow_schema().types
        # Read as they are stored: a dictionary with one long entry would unfold without limit.
        packed = [str(i) for i, found in enumerate(types) if found == pa.binary()]
        yield pq.ParquetFile(file, metadata=metadata, read_dictionary=packed)


def _for_spark(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The same values in a type that Spark has; one that does not fit it is refused."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.unique(pc.binary_length(array.dictionary)).to_pylist()
        if any(length != parquet.TRACKER.byte_width for length in lengths):
            raise FaultError(f"{RECORDS}: a tracker does not have 32 bytes")
        return array.dictionary_decode()
    return array.cast(wanted)


def _turned(bits: Ints) -> Ints:
    return bits ^ ((bits >> np.int64(63)) & ALL_BUT_SIGN)


def keys_of(column: Column, values: Floats) -> Ints:
    """The keys of a column's values."""
    if column.n_values is not None:
        return values.astype(np.int64)
    return _turned(np.ascontiguousarray(values, np.float64).view(np.int64))


def key_of(column: Column, value: float) -> int:
    """The key of one value."""
    return int(keys_of(column, np.array([value]))[0])


def value_of(column: Column, key: int) -> float:
    """The value of a key."""
    if column.n_values is not None:
        return float(key)
    return float(_turned(np.array([key])).view(np.float64)[0])


def reach(column: Column) -> tuple[int, int]:
    """The least and the greatest key that the column may have."""
    if column.n_values is not None:
        return 0, column.n_values - 1
    most = float(np.finfo(np.float64).max)
    return key_of(column, -most), key_of(column, most)


def fields_of(contract: Contract) -> list[tuple[str, str]]:
    """The columns of a submission's records by our own names, and Spark's types."""
    fields = [("row", "long"), ("tracker", "binary")]
    numbers = iter(range(len(contract.quasi)))
    for column in contract.columns:
        kind = "double" if column.n_values is None else "int"
        is_target = column.role is Role.TARGET
        fields.append(("target", "short") if is_target else (f"q{next(numbers)}", kind))
    return fields


def numbers(table: pa.Table | pa.RecordBatch, name: str) -> Array:
    """A column of numbers; one without a value is the submission's fault."""
    column = table.column(name)
    if column.null_count:
        raise TableError("a record has no value in one of the columns")
    found: Array = np.asarray(column)
    return found


def _trackers(table: pa.Table) -> Bytes:
    column = table.column("tracker")
    if column.null_count:
        raise TableError("a record has no tracker")
    found = np.empty((table.num_rows, TRACKER_SIZE), np.uint8)
    at = 0
    for chunk in column.chunks:
        _, offsets, data = chunk.buffers()
        ends = np.frombuffer(offsets, np.int32)[chunk.offset :][: len(chunk) + 1]
        if (np.diff(ends) != TRACKER_SIZE).any():
            raise TableError("a tracker does not have 32 bytes")
        flat = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
        found[at : at + len(chunk)] = flat.reshape(-1, TRACKER_SIZE)
        at += len(chunk)
    return found


def _values(table: pa.Table | pa.RecordBatch, name: str) -> Floats:
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else; a signalling NaN would warn.
    with np.errstate(invalid="ignore"):
        return numbers(table, name).astype(np.float64) + 0.0


def records_in(contract: Contract, table: pa.Table) -> tuple[Ints, Records]:
    """The records of a table and their rows, in ascending row."""
    row = numbers(table, "row").astype(np.int64)
    order = np.argsort(row, kind="stable")
    values = np.empty((len(contract.quasi), row.size))
    for j in range(len(contract.quasi)):
        values[j] = _values(table, f"q{j}")[order]
    tracker, target = _trackers(table)[order], labels_in(contract, table)[order]
    return row[order], Records(tracker=tracker, values=values, target=target)


def labels_in(contract: Contract, table: pa.Table | pa.RecordBatch) -> Bytes:
    """The labels, 0 throughout where none were sent."""
    if contract.target is None:
        return np.zeros(table.num_rows, np.uint8)
    labels = numbers(table, "target")
    if labels.size and not 0 <= labels.min() <= labels.max() <= 1:
        raise TableError("the target has a value other than 0 and 1")
    return labels.astype(np.uint8)


def keys_in(contract: Contract, batch: pa.RecordBatch) -> Ints:
    """The keys of some records, (n_records, n_quasi)."""
    keys = np.empty((batch.num_rows, len(contract.quasi)), np.int64)
    for j, column in enumerate(contract.quasi):
        keys[:, j] = keys_of(column, _values(batch, f"q{j}"))
    return keys


def schema(fields: Iterable[tuple[str, str]]) -> str:
    """Fields as Spark reads them."""
    return ", ".join(f"{name} {kind}" for name, kind in fields)


def one_row(fields: str, *values: object) -> pa.RecordBatch:
    """A row of fields that Spark reads so."""
    names, kinds = zip(*(field.split() for field in fields.split(", ")), strict=True)
    pairs = zip(values, kinds, strict=True)
    return pa.record_batch([pa.array([value], ARROW[kind]) for value, kind in pairs], names)
