"""A submission's records as tasks read them: row groups of files, on a disk or behind a URL.

Spark's own reader reaches few kinds of URL without more jars, and believes every file. Here it is
fsspec that reaches them. A file is surveyed first, as carefully as the local engine reads it, and
then read again in every pass. Nothing here knows Spark.
"""

import math
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from verix_anon.arrays import Ints
from verix_anon.errors import ProviderError, TableError
from verix_anon.files.hashed import RECORDS, Files
from verix_anon.files.hostile import footers
from verix_anon.files.hostile import reader as parquet
from verix_anon.files.store import open_folder
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.merkle import CHUNK_ROWS
from verix_anon.protocol.table import wire_type
from verix_anon.provider.spark.frames import fields_of

__all__ = [
    "FaultError",
    "Piece",
    "Source",
    "Surveyed",
    "batches",
    "faults",
    "not_once",
    "rows_of_bins",
    "share_out",
    "survey",
]

BATCH_ROWS = 1 << 16
HELD_BYTES = 64 << 20
"""What a task holds of a file that it surveys; a larger one goes through a scratch file."""
LEAST_ROWS, MOST_ROWS = 1 << 10, 1 << 22
"""Of what one task reads, but that a row group is read by one."""
MOST_BINS = 1 << 10
"""Ranges of rows that are counted: each file has its counts of all of them."""
TAIL = 8
"""Bytes after a footer, which say how long it is."""


class FaultError(TableError):
    """The submission itself is at fault, and not the machine that reads it."""


class Piece(NamedTuple):
    """A row group of one of the files."""

    name: str
    group: int
    n_rows: int


class Source(NamedTuple):
    """Where records lie, and what they must be."""

    path: str
    contract: bytes
    n_rows: int
    n_parts: int
    """Into how many files a folder is divided; 0: it is one file, and no folder"""

    def expected(self) -> parquet.Expected:
        """The columns of a file, by their names."""
        contract = Contract.from_bytes(self.contract)
        columns = {c.name: pa.from_numpy_dtype(wire_type(c)) for c in contract.columns}
        return parquet.Expected(
            {"row": pa.int64(), "tracker": parquet.TRACKER, **columns}, parts=self.n_parts
        )


class Surveyed(NamedTuple):
    """What is known of a file when it has been read once."""

    digest: bytes | None
    """None: it is not read to its end"""
    group_rows: list[int]
    n_bytes: int
    """What its pages unfold to"""
    counts: Ints
    """How many of its rows lie in each range"""
    problem: str | None
    """Why it cannot be read"""


def survey(source: Source, name: str) -> Surveyed:
    """Hash a file, check all that can be checked without decoding a value, and count its rows."""
    expected, digest = source.expected(), None
    files = Files(open_folder(source.path, FaultError))
    if not files.folder.has(name):
        raise ProviderError(
            f"the driver has found {name} in {source.path}, and an executor has not"
        )
    files.room = HELD_BYTES
    most = expected.bytes_for(source.n_rows)
    try:
        held = files.hold(name, most)
        digest = bytes.fromhex(files.digests[name])
        found = parquet.Reader(
            name, held, expected, FaultError, most_rows=source.n_rows, most_bytes=most
        )
        counts = _counted(found, source.n_rows)
    except FaultError as error:
        return Surveyed(digest, [], 0, np.zeros(0, np.int64), str(error))
    return Surveyed(digest, found.group_rows, found.n_bytes, counts, None)


def rows_of_bins(n_rows: int) -> Ints:
    """How many rows each range has: whole chunks, but for the last."""
    width = _bin_rows(n_rows)
    return np.minimum(width, n_rows - np.arange(0, n_rows, width))


def _bin_rows(n_rows: int) -> int:
    return CHUNK_ROWS * math.ceil(math.ceil(n_rows / CHUNK_ROWS) / MOST_BINS)


def _counted(reader: parquet.Reader, n_rows: int) -> Ints:
    width, counts = _bin_rows(n_rows), np.zeros_like(rows_of_bins(n_rows))
    for group in reader.groups():
        for row in reader.batches(group, "row", BATCH_ROWS):
            found: Ints = row.astype(np.int64, copy=False)
            if not 0 <= found.min() <= found.max() < n_rows:
                raise FaultError(f"{reader.name}: {not_once(n_rows)}")
            counts += np.bincount(found // width, minlength=counts.size)
    return counts


def not_once(n_rows: int) -> str:
    """What is wrong with rows that are others than those stated."""
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


def batches(source: Source, piece: Piece, wanted: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a row group by our own names, in Spark's types."""
    names = [name for name, _ in fields_of(Contract.from_bytes(source.contract))]
    at = {name: str(i) for i, name in enumerate(names) if name in wanted}
    with _opened(source, piece.name) as file:
        # Arrow's threads would take cores that Spark has given to other tasks.
        for batch in file.iter_batches(
            BATCH_ROWS, row_groups=[piece.group], columns=list(at.values()), use_threads=False
        ):
            columns = [_for_spark(batch.column(number)) for number in at.values()]
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
def _opened(source: Source, name: str) -> Iterator[pq.ParquetFile]:
    with open_folder(source.path, TableError).open(name) as file:
        footer = _footer(file, len(source.expected().columns), source.n_rows)
        metadata = pq.read_metadata(pa.BufferReader(footer.clean))
        types = metadata.schema.to_arrow_schema().types
        # Read as they are stored: a dictionary with one long entry would unfold without limit.
        packed = [str(i) for i, found in enumerate(types) if found == pa.binary()]
        yield pq.ParquetFile(file, metadata=metadata, read_dictionary=packed)


def _footer(file: IO[bytes], n_columns: int, n_rows: int) -> footers.Footer:
    most = parquet.FOOTER_BYTES + parquet.FOOTER_BYTES_PER_COLUMN * n_columns + n_rows
    size = file.seek(0, os.SEEK_END)
    file.seek(size - TAIL)
    length = int.from_bytes(file.read(4), "little")
    file.seek(size - TAIL - length)
    return footers.read_footer(file.read(), most=most)


def _for_spark(array: pa.Array) -> pa.Array:
    """The same values in a type that Spark has."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.unique(pc.binary_length(array.dictionary)).to_pylist()
        if any(length != parquet.TRACKER.byte_width for length in lengths):
            raise FaultError(f"{RECORDS}: a tracker does not have 32 bytes")
        return array.dictionary_decode()
    if pa.types.is_fixed_size_binary(array.type):
        return array.cast(pa.binary())
    return array.cast(pa.int16()) if array.type == pa.uint8() else array
