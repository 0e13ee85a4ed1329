"""A delivery that a cluster writes: records by Spark, nodes and leaves from here, in batches."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from verix_anon.errors import ProviderError
from verix_anon.files import deliveries
from verix_anon.files.aside import write_bytes, written_aside
from verix_anon.files.hashed import RECORDS, digest_of_file
from verix_anon.files.hostile.reader import Array, Writer
from verix_anon.files.store import open_folder
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.messages import Header
from verix_anon.protocol.tree import Leaves, Tree
from verix_anon.provider.spark.job import parts_digest
from verix_anon.provider.spark.session import place_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["written_delivery"]

BATCH_ROWS = 1 << 18
"""How many nodes or leaves are held at a time, besides those of one part."""
STAGING = ".staging"


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A folder that is being filled."""

    folder: Path
    contract: Contract

    @property
    def staging(self) -> str:
        """Where tasks keep what they have finished, for Spark."""
        return place_for_spark(self.folder / STAGING)

    @property
    def records(self) -> str:
        """Where the records go, for Spark."""
        return place_for_spark(self.folder / RECORDS)

    def write_tree(self, pieces: Iterable[tuple[Tree, Leaves | None]]) -> None:
        """Write nodes and leaves, which come in order."""
        encodings = deliveries.leaf_encodings(len(self.contract.quasi))
        n_leaves = 0
        with (
            Writer(self.folder / deliveries.NODES, deliveries.NODE_ENCODINGS) as nodes,
            Writer(self.folder / deliveries.LEAVES, encodings) as leaves,
            _Batches(nodes) as of_nodes,
            _Batches(leaves) as of_leaves,
        ):
            for tree, some in pieces:
                of_nodes.add(deliveries.node_columns(tree))
                if some is not None:
                    of_leaves.add(deliveries.leaf_columns(some, n_leaves))
                    n_leaves += some.n_leaves

    def complete(self, header: Header, spark: "SparkSession") -> None:
        """Hash the files and write delivery.json, which makes a delivery of the folder."""
        shutil.rmtree(self.folder / STAGING)
        for entry in (self.folder / RECORDS).iterdir():
            if entry.name.startswith((".", "_")):
                entry.unlink()
        files = {
            name: digest_of_file(self.folder / name)
            for name in (deliveries.LEAVES, deliveries.NODES)
        }
        files[RECORDS] = parts_digest(spark, open_folder(self.folder, ProviderError))
        write_bytes(self.folder / "delivery.json", deliveries.header_to_bytes(header, files))


class _Batches:
    """Columns that are collected until they are worth a row group."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.waiting: list[dict[str, Array]] = []
        self.n_rows = 0

    def __enter__(self) -> "_Batches":
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None and self.waiting:
            self._write()

    def add(self, columns: dict[str, Array]) -> None:
        """Take some rows."""
        self.waiting.append(columns)
        self.n_rows += len(next(iter(columns.values())))
        if self.n_rows >= BATCH_ROWS:
            self._write()

    def _write(self) -> None:
        names = self.waiting[0]
        self.writer.add({n: np.concatenate([some[n] for some in self.waiting]) for n in names})
        self.waiting, self.n_rows = [], 0


@contextmanager
def written_delivery(
    path: str | os.PathLike[str], contract: Contract, *, overwrite: bool
) -> Iterator[_Delivery]:
    """A folder beside `path` to fill, which takes its name when all went well."""
    with written_aside(path, overwrite=overwrite, folder=True, private=False) as folder:
        yield _Delivery(folder.absolute(), contract)
