"""One job on a cluster, as its driver sees it: check, grow the top, finish, number, write.

The driver never holds data of the size of the table. A pass sends it a few numbers per open node
and column. At the end it gets the tree and its leaves, one part after another.

Every pass reads the submission's own files. From the pass before it needs only the top of the tree,
which the driver holds. So a lost executor costs only the tasks that it had. The parts that tasks
finish are written to the disk before they are numbered.
"""

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from verix_anon.arrays import Ints
from verix_anon.errors import TableError
from verix_anon.files.hashed_files import digest_of_parts
from verix_anon.files.job_folder import RECORDS
from verix_anon.files.store import MAX_PARTS
from verix_anon.files.submissions import Stated
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.records import check_count
from verix_anon.provider.spark import executors
from verix_anon.provider.spark.delivery_writer import Place
from verix_anon.provider.spark.submission_reader import (
    Piece,
    RecordSource,
    fields_of,
    not_once,
    rows_of_bins,
    schema,
    share_out,
)
from verix_anon.provider.spark.subtrees import JoinedTree, Subtree, SubtreeSize
from verix_anon.provider.spark.top import Pass, Summary, Top, TreePart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


TASKS_PER_CORE = 4
"""Several, so that a lost or slow task costs little."""


def _task(work: Callable[..., object]) -> Callable[..., object]:
    """Wrap the work in a plain function, as Spark wants it."""
    return lambda given: work(given)


class SparkJob:
    """A submission on a cluster."""

    def __init__(self, spark: "SparkSession", stated: Stated) -> None:
        self.spark, self.stated = spark, stated
        self.contract, self.n_rows = stated.contract, stated.n_rows
        check_count(self.contract, self.n_rows)
        folder = stated.files.folder
        if not folder.has(RECORDS):
            raise TableError(f"{RECORDS} is missing in {folder.path}")
        self.names = folder.parts(RECORDS)
        n_parts = 0 if self.names == [RECORDS] else len(self.names)
        self.source = RecordSource(folder.path, self.contract.to_bytes(), self.n_rows, n_parts)
        self.pieces: list[Piece] = []

    def tell(self, what: str) -> None:
        """Tell Spark's pages what the cluster does from here on."""
        self.spark.sparkContext.setJobGroup(f"verix-anon {what}", f"verix-anon: {what}")

    def check(self, place: Place) -> Digest:
        """Return the submission's digest; TableError unless its records are those stated."""
        self._survey(place)
        n_chunks = math.ceil(self.n_rows / merkle.CHUNK_ROWS)
        self.tell("check records")
        first = executors.FirstRead(self.read)
        chunks = (
            self._map(len(self.read.shares), first, schema(fields_of(self.contract)))
            .selectExpr("shiftright(row, 16) AS chunk", "*")
            .repartition(min(n_chunks, TASKS_PER_CORE * self.n_cores), "chunk")
            .groupBy("chunk")
            .applyInArrow(
                _task(executors.HashChunk(self.source.contract, self.n_rows)), executors.HASHED
            )
            .collect()
        )
        for each in chunks:
            if each["problem"] is not None:
                raise TableError(f"{RECORDS} does not fit the contract: {each['problem']}")
        by_number = {each["chunk"]: bytes(each["digest"]) for each in chunks}
        is_whole = by_number.keys() == set(range(n_chunks))
        self.stated.check(is_whole, f"{RECORDS} has not the {self.n_rows:,} rows")
        in_order = [by_number[number] for number in range(n_chunks)]
        found = merkle.chunks_digest(self.contract, self.n_rows, in_order)
        is_same = found.hex() == self.stated.submission
        self.stated.check(is_same, "its records are not those of the digest")
        return found

    def _survey(self, place: Place) -> None:
        """Hash the files, and learn where their records are."""
        self.tell("check files")
        work = executors.Survey(self.source, tuple(self.names), place)
        found = self._map(len(self.names), work, executors.SURVEYED).collect()
        found = sorted(found, key=lambda each: each["file"])
        for each in found:
            if each["digest"] is None:
                raise TableError(each["problem"])
        digests = [bytes(each["digest"]) for each in found]
        self.stated.files.digests[RECORDS] = (
            digest_of_parts(zip(map(_short, self.names), digests, strict=True))
            if self.source.n_parts
            else digests[0].hex()
        )
        self.stated.check_files()
        for name, each in zip(self.names, found, strict=True):
            if each["problem"] is not None:
                raise TableError(each["problem"])
            groups = enumerate(np.frombuffer(each["groups"], np.int64).tolist())
            self.pieces += [Piece(name, i, n_rows) for i, n_rows in groups if n_rows]
        n_rows = sum(piece.n_rows for piece in self.pieces)
        is_whole = n_rows == self.n_rows
        self.stated.check(is_whole, f"{RECORDS} has {n_rows:,} rows, and not the {self.n_rows:,}")
        most = self.source.expected().bytes_for(self.n_rows)
        if sum(each["n_bytes"] for each in found) > most:
            raise TableError(f"{RECORDS} unfolds to more than {most} bytes, the limit for its rows")
        counts = sum(np.frombuffer(each["counts"], np.int64) for each in found)
        # Checked before records are sent by chunk: else one chunk's task could get far too many.
        if not np.array_equal(counts, rows_of_bins(self.n_rows)):
            raise TableError(f"{RECORDS}: {not_once(self.n_rows)}")

    @cached_property
    def read(self) -> executors.ReadRecords:
        """How tasks read the records, again in each pass."""
        return executors.ReadRecords(self.source, share_out(self.pieces, self.n_cores))

    @property
    def n_cores(self) -> int:
        """The cores of the cluster, as far as Spark knows."""
        return max(1, int(self.spark.sparkContext.defaultParallelism))

    def _map(self, n_tasks: int, work: Callable[..., object], kind: str) -> "DataFrame":
        """Return the results of this many tasks; each task is told its number."""
        return self.spark.range(0, n_tasks, 1, n_tasks).mapInArrow(_task(work), kind)

    def run(self, wanted: Pass) -> tuple[Ints, Summary]:
        """Run one pass over all records."""
        self.tell("split")
        kind = "cell int, data binary"
        n_tasks = min(wanted.ranks.size, self.n_cores)
        found = (
            self._map(len(self.read.shares), executors.Count(self.read, wanted), kind)
            .repartition(n_tasks, "cell")
            .mapInArrow(_task(executors.AddCounts(wanted.ranks, wanted.n_buckets)), kind)
            .collect()
        )
        numbers = np.array([np.frombuffer(each["data"], np.int64) for each in found])
        return np.array([each["cell"] for each in found]), Summary(*numbers.T)

    def finish(self, top: Top, place: Place) -> JoinedTree:
        """Let tasks grow and keep the parts below the top; return the outline of the whole tree."""
        self.tell("grow")
        entries = list(top.preorder())
        parts = tuple(each for _, each in entries if isinstance(each, TreePart))
        number = np.full(len(top.nodes), -1, np.int64)
        ends = [node for node, each in entries if isinstance(each, TreePart)]
        number[ends] = np.arange(len(parts))
        fields = [("part", "int"), *fields_of(self.contract)]
        route = executors.Route(self.read, top.routes(), number)
        found = (
            self._map(len(self.read.shares), route, schema(fields))
            # Without this, Spark would leave the output of one task with one task.
            .repartition(len(parts), "part")
            .groupBy("part")
            .applyInArrow(
                _task(executors.Finish(self.source.contract, parts, place)), executors.FINISHED
            )
            .collect()
        )
        in_order = iter(
            SubtreeSize(each["n_nodes"], each["n_leaves"], Digest(bytes(each["digest"])))
            for each in sorted(found, key=lambda each: each["part"])
        )
        joined = (next(in_order) if isinstance(each, TreePart) else each for _, each in entries)
        return JoinedTree(self.contract, tuple(joined))

    def subtrees(self, joined: JoinedTree, place: Place) -> Iterator[Subtree]:
        """Yield the subtrees from left to right, fetched one after another."""
        for part, size in enumerate(joined.sizes):
            with place.open(executors.kept(part, "subtree")) as file:
                yield Subtree.from_bytes(file.read(), size.digest)

    def write_records(self, joined: JoinedTree, place: Place, prefix: str) -> str:
        """Write the records with their leaves' numbers to files; return the files' digest."""
        self.tell("write")
        n_parts = len(joined.sizes)
        n_files = min(n_parts, MAX_PARTS)
        ends = [n_parts * i // n_files for i in range(n_files + 1)]
        files = tuple(range(*each) for each in pairwise(ends))
        has_target = self.contract.target is not None
        work = executors.Deliver(joined.first_leaves(), files, has_target, place, prefix)
        found = self._map(n_files, work, executors.WRITTEN).collect()
        return digest_of_parts(
            (_short(executors.file_name(prefix, each["file"])), bytes(each["digest"]))
            for each in sorted(found, key=lambda each: each["file"])
        )


def _short(name: str) -> str:
    return name.removeprefix(f"{RECORDS}/")
