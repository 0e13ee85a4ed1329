"""One job on a cluster, as its driver sees it: check, grow the top, finish, number, write.

Nothing of the size of the table passes through here: of a pass, a few numbers per open node and
column; of the end, the tree and its leaves, one part after another.

Every pass reads the submission's own files and needs nothing from the pass before it but the top,
which is here. So a lost executor costs the tasks that it had, and no more. What the tasks finish is
written to the disk before it is numbered.
"""

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from verix_anon.arrays import Ints
from verix_anon.errors import TableError
from verix_anon.files.hashed import RECORDS, digest_of_parts
from verix_anon.files.store import Folder
from verix_anon.files.submissions import Stated
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Digest
from verix_anon.provider.spark import tasks
from verix_anon.provider.spark.frames import fields_of, schema, sent_fields
from verix_anon.provider.spark.joining import Joined, Size
from verix_anon.provider.spark.medians import Summary
from verix_anon.provider.spark.session import place_for_spark
from verix_anon.provider.spark.subtrees import Subtree
from verix_anon.provider.spark.top import Part, Pass, Top

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Job", "parts_digest"]

# Spark's words for its types.
TYPES = {"long": "bigint", "short": "smallint"}
MAX_PARTS = 10_000
"""How many files a folder of records may have (spec §8.3)."""


def parts_digest(spark: "SparkSession", folder: Folder) -> str:
    """The digest of a folder's records (spec §8.3), hashed in tasks."""
    names = folder.parts(RECORDS)
    listed = spark.createDataFrame([(name,) for name in names], "name string")
    frame = listed.repartition(len(names)).mapInArrow(
        _task(tasks.HashFile(folder.path)), "name string, digest binary"
    )
    found = {each["name"]: bytes(each["digest"]) for each in frame.collect()}
    if names == [RECORDS]:
        return found[RECORDS].hex()
    return digest_of_parts((name.removeprefix(f"{RECORDS}/"), found[name]) for name in names)


def _task(work: Callable[..., object]) -> Callable[..., object]:
    """A plain function, as Spark wants it, of what a task is sent."""
    return lambda given: work(given)


class Job:
    """A submission on a cluster."""

    def __init__(self, spark: "SparkSession", stated: Stated) -> None:
        self.spark, self.stated = spark, stated
        self.contract, self.n_rows = stated.contract, stated.n_rows
        self.sent = self.contract.to_bytes()
        """The contract, as tasks get it."""

    def check(self) -> Digest:
        """The submission's digest; raises TableError unless its records are those stated."""
        files = self.stated.files
        files.digests[RECORDS] = parts_digest(self.spark, files.folder)
        self.stated.check_files()
        n_chunks = math.ceil(self.n_rows / merkle.CHUNK_ROWS)
        chunks = (
            self.frame.selectExpr("shiftright(row, 16) AS chunk", "*")
            .groupBy("chunk")
            .applyInArrow(
                _task(tasks.HashChunk(self.sent, self.n_rows)),
                "chunk long, digest binary, problem string",
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

    @cached_property
    def frame(self) -> "DataFrame":
        """The records, by our names of the columns; each pass reads the files anew."""
        place = place_for_spark(f"{self.stated.files.folder.path.rstrip('/')}/{RECORDS}")
        frame = self.spark.read.option("mergeSchema", "true").parquet(place)
        wanted = [(name, TYPES.get(kind, kind)) for name, kind in sent_fields(self.contract)]
        found = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
        if found != wanted:
            wrong = next((each for each in found if each not in wanted), None)
            what = (
                f"column {wrong[0][:64]!r} has type {wrong[1]}, or" if wrong else "columns lack, or"
            )
            raise TableError(f"{RECORDS}: {what} they are not in the agreed order")
        return frame.toDF(*(name for name, _ in fields_of(self.contract)))

    def run(self, wanted: Pass) -> tuple[Ints, Summary]:
        """One pass over all records."""
        kind = "cell int, data binary"
        n_tasks = min(wanted.ranks.size, max(1, self.spark.sparkContext.defaultParallelism))
        found = (
            self.frame.drop("row", "tracker")
            .mapInArrow(_task(tasks.Count(self.sent, wanted)), kind)
            .repartition(n_tasks, "cell")
            .mapInArrow(_task(tasks.AddCounts(wanted.ranks, wanted.n_buckets)), kind)
            .collect()
        )
        numbers = np.array([np.frombuffer(each["data"], np.int64) for each in found])
        return np.array([each["cell"] for each in found]), Summary(*numbers.T)

    def finish(self, top: Top, place: str) -> Joined:
        """Have tasks finish what the top has left, and keep it; the whole tree's outline."""
        entries = list(top.preorder())
        parts = tuple(each for _, each in entries if isinstance(each, Part))
        number = np.full(len(top.nodes), -1, np.int64)
        number[[node for node, each in entries if isinstance(each, Part)]] = np.arange(len(parts))
        fields = [("part", "int"), *fields_of(self.contract)]
        route = tasks.Route(self.sent, top.routes(), number)
        (
            self.frame.mapInArrow(_task(route), schema(fields))
            .groupBy("part")
            .applyInArrow(_task(tasks.Finish(self.sent, parts)), tasks.FINISHED)
            .write.parquet(place)
        )
        kept = self.spark.read.parquet(place).where("data IS NOT NULL")
        sizes = {
            each["part"]: Size(each["n_nodes"], each["n_leaves"], Digest(bytes(each["digest"])))
            for each in kept.select("part", "n_nodes", "n_leaves", "digest").collect()
        }
        in_order = iter(range(len(parts)))
        return Joined(
            self.contract,
            tuple(sizes[next(in_order)] if isinstance(e, Part) else e for _, e in entries),
        )

    def subtrees(self, joined: Joined, place: str) -> Iterator[Subtree]:
        """The subtrees from left to right, fetched one after another."""
        kept = self.spark.read.parquet(place).where("data IS NOT NULL").select("part", "data")
        in_order = kept.repartitionByRange(len(joined.sizes), "part").sortWithinPartitions("part")
        for each, size in zip(in_order.toLocalIterator(), joined.sizes, strict=True):
            yield Subtree.from_bytes(bytes(each["data"]), size.digest)

    def write_records(self, joined: Joined, place: str, out: str) -> None:
        """Write the records with the numbers of their leaves."""
        has_target = self.contract.target is not None
        fields = "row long, tracker binary, leaf int" + (", target short" if has_target else "")
        kept = self.spark.read.parquet(place).where("data IS NULL")
        numbered = kept.select("part", "row", "tracker", "leaf", "target").mapInArrow(
            _task(tasks.Number(joined.first_leaves(), has_target)), fields
        )
        if numbered.rdd.getNumPartitions() > MAX_PARTS:
            numbered = numbered.coalesce(MAX_PARTS)
        # Trackers are all different: a dictionary of them is only larger.
        numbered.write.option("compression", "zstd").option(
            "parquet.enable.dictionary", "false"
        ).parquet(out)
