"""What Spark's executors run as tasks: Arrow's tables in, Arrow's tables out.

An object of each class is sent to a task, and the task calls it. These objects are small. If a
submission is at fault, the task returns the error's text, and the driver raises the error.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import file_digest

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Ints
from verix_anon.errors import Error, ProviderError, TableError
from verix_anon.files.folder_writer import RECORD_ENCODINGS, ParquetWriter
from verix_anon.files.hostile import parquet_reader as parquet
from verix_anon.files.job_folder import RECORDS
from verix_anon.kernels import histograms
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Contract
from verix_anon.provider.spark.delivery_writer import STAGING, Place
from verix_anon.provider.spark.submission_reader import (
    ARROW,
    FaultError,
    Piece,
    RecordSource,
    faults,
    fields_of,
    keys_in,
    labels_in,
    not_once,
    one_row,
    records_in,
    survey,
)
from verix_anon.provider.spark.submission_reader import batches as read_batches
from verix_anon.provider.spark.subtrees import finish
from verix_anon.provider.spark.top import Counted, Counter, Pass, Routes, TreePart, added, summaries

Batches = Iterator[pa.RecordBatch]
BATCH_BYTES = 16 << 20
SURVEYED = "file long, digest binary, groups binary, n_bytes long, counts binary, problem string"
HASHED = "chunk long, digest binary, problem string"
FINISHED = "part int, n_nodes long, n_leaves long, digest binary"
WRITTEN = "file long, digest binary"
"""The columns that tasks return, as Spark's types."""


@dataclass(frozen=True, slots=True)
class Survey:
    """For each file: its SHA-256, and what its row groups hold or why it cannot be read."""

    source: RecordSource
    names: tuple[str, ...]
    place: Place
    """Where later tasks write; checked here, so that a fault is found early"""

    def __call__(self, batches: Batches) -> Batches:
        """Survey the files."""
        self.place.check()
        for number in _numbers(batches):
            found = survey(self.source, self.names[number])
            groups = np.array(found.group_rows, np.int64).tobytes()
            counts, problem = found.counts.tobytes(), found.problem
            yield one_row(SURVEYED, number, found.digest, groups, found.n_bytes, counts, problem)


def _numbers(batches: Batches) -> Iterator[int]:
    """Yield the numbers of the files or shares that a task works on."""
    for batch in batches:
        yield from batch.column("id").to_pylist()


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """Reads records; each task reads its own share."""

    source: RecordSource
    shares: tuple[tuple[Piece, ...], ...]

    def __call__(self, batches: Batches) -> Batches:
        """Yield all columns."""
        names = [name for name, _ in fields_of(Contract.from_bytes(self.source.contract))]
        return self.columns(batches, names)

    def columns(self, batches: Batches, wanted: Collection[str]) -> Batches:
        """Yield some columns."""
        for number in _numbers(batches):
            for piece in self.shares[number]:
                yield from read_batches(self.source, piece, wanted)


FAULT_ROW = -1
"""The row number of an error that stands in place of a record; its tracker is the error's text."""


@dataclass(frozen=True, slots=True)
class FirstRead:
    """Reads records for the first time, before any of their values was decoded."""

    read: ReadRecords

    def __call__(self, batches: Batches) -> Batches:
        """Yield all columns; at a fault, a row with the error's text in place of the rest."""
        fields = fields_of(Contract.from_bytes(self.read.source.contract))
        names = [name for name, _ in fields]
        for number in _numbers(batches):
            for piece in self.read.shares[number]:
                try:
                    with faults(piece.name):
                        yield from read_batches(self.read.source, piece, names)
                except FaultError as error:
                    columns = {name: pa.nulls(1, ARROW[kind]) for name, kind in fields}
                    columns["row"] = pa.array([FAULT_ROW], pa.int64())
                    columns["tracker"] = pa.array([str(error).encode()], pa.binary())
                    yield pa.record_batch(columns)


@dataclass(frozen=True, slots=True)
class HashChunk:
    """All records of one chunk: its digest, or what is wrong with it."""

    contract: bytes
    n_rows: int

    def __call__(self, table: pa.Table) -> pa.Table:
        """Check and hash the records."""
        chunk = table.column("chunk")[0].as_py()
        digest, problem = None, None
        try:
            digest = self._hash(chunk, table)
        except Error as error:
            problem = str(error)
        row = one_row(HASHED, -1 if chunk is None else chunk, digest, problem)
        return pa.Table.from_batches([row])

    def _hash(self, chunk: int | None, table: pa.Table) -> bytes:
        contract = Contract.from_bytes(self.contract)
        if chunk == FAULT_ROW // merkle.CHUNK_ROWS:
            raise TableError(table.column("tracker")[0].as_py().decode(errors="replace"))
        row, records = records_in(contract, table)
        assert chunk is not None
        first = chunk * merkle.CHUNK_ROWS
        wanted = np.arange(first, min(first + merkle.CHUNK_ROWS, self.n_rows))
        if chunk < 0 or not np.array_equal(row, wanted):
            raise TableError(not_once(self.n_rows))
        records.check_values(contract)
        return merkle.chunk_digest(contract, chunk, records)


@dataclass(frozen=True, slots=True)
class Count:
    """Some records counted as a pass asks for: a row per cell."""

    read: ReadRecords
    wanted: Pass

    def __call__(self, batches: Batches) -> Batches:
        """Count the records."""
        contract = Contract.from_bytes(self.read.source.contract)
        counter = Counter(self.wanted)
        names = {name for name, _ in fields_of(contract)} - {"row", "tracker"}
        for batch in self.read.columns(batches, names):
            counter.add(keys_in(contract, batch), labels_in(contract, batch))
        some: list[Counted] = []
        n_bytes = 0
        for cell in counter.result():
            some.append(cell)
            n_bytes += len(cell[1])
            if n_bytes > BATCH_BYTES:
                yield _counts(some)
                some, n_bytes = [], 0
        if some:
            yield _counts(some)


def _counts(some: list[Counted]) -> pa.RecordBatch:
    cells, data = zip(*some, strict=True)
    return pa.record_batch(
        {"cell": pa.array(cells, pa.int32()), "data": pa.array(data, pa.binary())}
    )


@dataclass(frozen=True, slots=True)
class AddCounts:
    """What tasks have counted of some cells, added up and summarized."""

    ranks: Ints
    n_buckets: int

    def __call__(self, batches: Batches) -> Batches:
        """Add the counts."""
        cells = added(self._counts(batches), self.n_buckets)
        found = [(cell, summary.tobytes()) for cell, summary in summaries(cells, self.ranks)]
        if found:
            yield _counts(found)

    def _counts(self, batches: Batches) -> Iterator[Counted]:
        for batch in batches:
            for cell, data in zip(batch.column("cell"), batch.column("data"), strict=True):
                yield cell.as_py(), data.as_py()


@dataclass(frozen=True, slots=True)
class Route:
    """Records with the number of their part of the top."""

    read: ReadRecords
    routes: Routes
    part: Ints
    """For each node of the top the number of its part, -1 at a split"""

    def __call__(self, batches: Batches) -> Batches:
        """Add a column `part`."""
        contract = Contract.from_bytes(self.read.source.contract)
        for batch in self.read(batches):
            node = np.empty(batch.num_rows, np.int32)
            histograms.route(keys_in(contract, batch), *self.routes, node)
            part = pa.array(self.part[node].astype(np.int32))
            yield pa.record_batch([part, *batch.columns], ["part", *batch.schema.names])


def kept(part: int, kind: str) -> str:
    """Under which name a task keeps what it has finished: `records` or a `subtree`."""
    return f"{STAGING}/{kind}-{part:05}"


@dataclass(frozen=True, slots=True)
class Finish:
    """All records of one part: keeps them with their leaves, and the subtree; says its size."""

    contract: bytes
    parts: tuple[TreePart, ...]
    place: Place

    def __call__(self, table: pa.Table) -> pa.Table:
        """Grow the subtree."""
        contract = Contract.from_bytes(self.contract)
        number = table.column("part")[0].as_py()
        row, records = records_in(contract, table)
        if row.size != self.parts[number].n_rows:
            raise ProviderError("records were lost or doubled on the way to a task")
        made, leaf = finish(contract, self.parts[number], row, records)
        with self.place.new(kept(number, "records")) as path, path.open("wb") as file:
            tracker, target = records.tracker, records.target
            np.savez(file, row=row, tracker=tracker, leaf=leaf, target=target)
        with self.place.new(kept(number, "subtree")) as path:
            path.write_bytes(made.to_bytes())
        tree = made.tree
        found = one_row(FINISHED, number, tree.n_nodes, tree.n_leaves, made.digest)
        return pa.Table.from_batches([found])


@dataclass(frozen=True, slots=True)
class Deliver:
    """Finished records with the numbers of the whole tree's leaves, file by file."""

    first_leaf: Ints
    """Of each part"""
    files: tuple[range, ...]
    """The parts of each file"""
    has_target: bool
    place: Place
    prefix: str

    def __call__(self, batches: Batches) -> Batches:
        """Write the files."""
        for number in _numbers(batches):
            with self.place.new(file_name(self.prefix, number)) as path:
                with ParquetWriter(path, RECORD_ENCODINGS) as writer:
                    for part in self.files[number]:
                        writer.add(self._numbered(part))
                with path.open("rb") as file:
                    digest = file_digest(file, "sha256").digest()
            yield one_row(WRITTEN, number, digest)

    def _numbered(self, part: int) -> dict[str, parquet.Array]:
        with self.place.open(kept(part, "records")) as file, np.load(file) as arrays:
            columns = {name: arrays[name] for name in ("row", "tracker", "leaf", "target")}
        columns["leaf"] = (columns["leaf"] + self.first_leaf[part]).astype(np.int32)
        if not self.has_target:
            del columns["target"]
        return columns


def file_name(prefix: str, number: int) -> str:
    """A file of a delivery's records."""
    return f"{RECORDS}/{prefix}{number:05}.parquet"
