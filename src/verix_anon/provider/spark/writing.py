"""A delivery that a cluster writes: records by tasks, nodes and leaves from here, in batches."""

import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from verix_anon.errors import TableError
from verix_anon.files import deliveries
from verix_anon.files.aside import check_free, write_bytes, written_aside
from verix_anon.files.hashed import RECORDS, digest_of_file
from verix_anon.files.hostile.reader import Array, Writer
from verix_anon.files.store import is_url
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.messages import Header
from verix_anon.protocol.tree import Leaves, Tree
from verix_anon.provider.spark.places import STAGING, Place

__all__ = ["check_place", "written_delivery"]

BATCH_ROWS = 1 << 18
"""How many nodes or leaves are held at a time, besides those of one part."""
HEADER = "delivery.json"
TREE = (deliveries.LEAVES, deliveries.NODES)

FOLDER = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A delivery that is being made."""

    folder: Path
    """Where nodes, leaves and the header are written, here"""
    place: Place
    """Where tasks write; the same, or a URL"""
    contract: Contract
    prefix: str = "part-"
    """How the names of the records' files begin"""

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

    def complete(self, header: Header, records: str) -> None:
        """Write delivery.json, which makes a delivery of the rest."""
        self.place.delete(STAGING)
        files = {name: digest_of_file(self.folder / name) for name in TREE}
        data = deliveries.header_to_bytes(header, {**files, RECORDS: records})
        write_bytes(self.folder / HEADER, data)


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


def check_place(out: FOLDER, submission: FOLDER, *, overwrite: bool) -> None:
    """Raise unless a delivery can be written there; asked before long work."""
    if not is_url(out):
        check_free(out, overwrite=overwrite)
        return
    target, source = str(out).rstrip("/"), str(submission).rstrip("/")
    if f"{source}/".startswith(f"{target}/"):
        raise TableError(f"{out} is, or holds, the input {submission}; choose another name")
    place = Place(target)
    if not place.has():
        return
    if not overwrite:
        raise TableError(
            f"{out} exists already; choose another name, or overwrite it (--overwrite)"
        )
    if not place.has(HEADER):
        raise TableError(f"{out} is not a folder with a {HEADER}, so it is not overwritten")


@contextmanager
def written_delivery(out: FOLDER, contract: Contract, *, overwrite: bool) -> Iterator[_Delivery]:
    """What to fill; it takes its name, or behind a URL gets its header, when all went well."""
    if is_url(out):
        with _put(Place(str(out).rstrip("/")), contract) as delivery:
            yield delivery
        return
    with written_aside(out, overwrite=overwrite, folder=True, private=False) as folder:
        place = Place(str(folder.absolute()))
        place.begin()
        yield _Delivery(folder.absolute(), place, contract)


@contextmanager
def _put(place: Place, contract: Contract) -> Iterator[_Delivery]:
    """The header comes last: without it the rest is no delivery.

    What is there already stays, beside files of other names, until all the rest is done.
    """
    old = place.names()
    prefix = f"part-{secrets.token_hex(4)}-" if old else "part-"
    with tempfile.TemporaryDirectory(prefix="verix-spark-") as folder:
        try:
            yield _Delivery(Path(folder), place, contract, prefix)
        except BaseException:
            _restore(place, old)
            raise
        try:
            place.delete_all(old & {HEADER})
            place.delete_all(old - {HEADER})
            for name in (*TREE, HEADER):
                with place.new(name) as file:
                    (Path(folder) / name).replace(file)
        except BaseException:
            place.delete()
            raise
        # A late task may have put something there again.
        place.delete(STAGING)


def _restore(place: Place, old: set[str]) -> None:
    """Leave what was there, and nothing else."""
    if not old:
        place.delete()
        return
    place.delete(STAGING)
    place.delete_all(place.names() - old)
