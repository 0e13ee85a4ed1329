"""What runs in Spark's tasks: Arrow's tables in, Arrow's tables out.

Each class is what a task is sent and, called, what it does. What it is sent is small; where a
submission is at fault, a task returns the sentence, and the driver raises it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Ints
from verix_anon.errors import Error, ProviderError, TableError
from verix_anon.files.store import open_folder
from verix_anon.kernels import histograms
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Contract
from verix_anon.provider.spark.counting import Counted, Counter, added, summaries
from verix_anon.provider.spark.frames import keys_in, labels_in, numbers, records_in
from verix_anon.provider.spark.subtrees import finish
from verix_anon.provider.spark.top import Part, Pass, Routes

__all__ = ["AddCounts", "Count", "Finish", "HashChunk", "HashFile", "Number", "Route"]

Batches = Iterator[pa.RecordBatch]
BATCH_BYTES = 16 << 20
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class HashFile:
    """Name by name, the SHA-256 of a file in a folder."""

    folder: str

    def __call__(self, batches: Batches) -> Batches:
        """Hash the files."""
        for batch in batches:
            names = batch.column("name").to_pylist()
            folder = open_folder(self.folder, ProviderError)
            digests = []
            for name in names:
                digest = sha256()
                with folder.open(name) as file:
                    while data := file.read(READ_BYTES):
                        digest.update(data)
                digests.append(digest.digest())
            yield pa.record_batch(
                {"name": pa.array(names), "digest": pa.array(digests, pa.binary())}
            )


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
        return pa.table(
            {
                "chunk": pa.array([-1 if chunk is None else chunk], pa.int64()),
                "digest": pa.array([digest], pa.binary()),
                "problem": pa.array([problem], pa.string()),
            }
        )

    def _hash(self, chunk: int | None, table: pa.Table) -> bytes:
        contract = Contract.from_bytes(self.contract)
        row, records = records_in(contract, table)
        assert chunk is not None
        first = chunk * merkle.CHUNK_ROWS
        wanted = np.arange(first, min(first + merkle.CHUNK_ROWS, self.n_rows))
        if chunk < 0 or not np.array_equal(row, wanted):
            raise TableError(f"not each row from 0 to {self.n_rows - 1} is there once")
        records.check_values(contract)
        return merkle.chunk_digest(contract, chunk, records)


@dataclass(frozen=True, slots=True)
class Count:
    """Some records counted as a pass asks for: a row per cell."""

    contract: bytes
    wanted: Pass

    def __call__(self, batches: Batches) -> Batches:
        """Count the records."""
        contract = Contract.from_bytes(self.contract)
        counter = Counter(self.wanted)
        for batch in batches:
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
        found = list(summaries(cells, self.ranks))
        if found:
            yield pa.record_batch(
                {
                    "cell": pa.array([cell for cell, _ in found], pa.int32()),
                    "data": pa.array([summary.tobytes() for _, summary in found], pa.binary()),
                }
            )

    def _counts(self, batches: Batches) -> Iterator[Counted]:
        for batch in batches:
            for cell, data in zip(batch.column("cell"), batch.column("data"), strict=True):
                yield cell.as_py(), data.as_py()


@dataclass(frozen=True, slots=True)
class Route:
    """Records with the number of their part of the top."""

    contract: bytes
    routes: Routes
    part: Ints
    """For each node of the top the number of its part, -1 at a split"""

    def __call__(self, batches: Batches) -> Batches:
        """Add a column `part`."""
        contract = Contract.from_bytes(self.contract)
        for batch in batches:
            node = np.empty(batch.num_rows, np.int32)
            histograms.route(keys_in(contract, batch), *self.routes, node)
            part = pa.array(self.part[node].astype(np.int32))
            yield pa.record_batch([part, *batch.columns], ["part", *batch.schema.names])


FINISHED = (
    "part int, row long, tracker binary, leaf int, target short,"
    " n_nodes long, n_leaves long, digest binary, data binary"
)


@dataclass(frozen=True, slots=True)
class Finish:
    """All records of one part: each with its leaf, and after them a row with the subtree."""

    contract: bytes
    parts: tuple[Part, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """Grow the subtree."""
        contract = Contract.from_bytes(self.contract)
        number = table.column("part")[0].as_py()
        row, records = records_in(contract, table)
        if row.size != self.parts[number].n_rows:
            raise ProviderError("records were lost or doubled on the way to a task")
        made, leaf = finish(contract, self.parts[number], row, records)
        flat = pa.py_buffer(np.ascontiguousarray(records.tracker))
        ends = pa.py_buffer(np.arange(row.size + 1, dtype=np.int32) * np.int32(32))
        trackers = pa.Array.from_buffers(pa.binary(), row.size, [None, ends, flat])
        columns = {
            "part": pa.array(np.full(row.size + 1, number, np.int32)),
            "row": _and_none(pa.array(row)),
            "tracker": _and_none(trackers),
            "leaf": _and_none(pa.array(leaf)),
            "target": _and_none(pa.array(records.target.astype(np.int16))),
            "n_nodes": _after(row.size, made.tree.n_nodes, pa.int64()),
            "n_leaves": _after(row.size, made.tree.n_leaves, pa.int64()),
            "digest": _after(row.size, made.digest, pa.binary()),
            "data": _after(row.size, made.to_bytes(), pa.binary()),
        }
        return pa.table(columns)


def _and_none(array: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([array, pa.nulls(1, array.type)])


def _after(n_rows: int, value: object, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(n_rows, kind), pa.array([value], kind)])


@dataclass(frozen=True, slots=True)
class Number:
    """Finished records with the numbers of the whole tree's leaves."""

    first_leaf: Ints
    """Of each part"""
    has_target: bool

    def __call__(self, batches: Batches) -> Batches:
        """Number the leaves."""
        for batch in batches:
            first = self.first_leaf[numbers(batch, "part")]
            leaf = pa.array((numbers(batch, "leaf") + first).astype(np.int32))
            columns = {"row": batch.column("row"), "tracker": batch.column("tracker"), "leaf": leaf}
            if self.has_target:
                columns["target"] = batch.column("target")
            yield pa.record_batch(columns)
