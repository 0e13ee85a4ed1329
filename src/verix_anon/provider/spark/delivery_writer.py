"""A delivery written by a cluster: tasks write the records, the driver writes nodes and leaves.

A file's name says what it holds. So a task that runs again, or twice at once, puts the same bytes
under the same name. Nothing here depends on Spark.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from verix_anon.errors import ProviderError, TableError
from verix_anon.files.atomic_write import check_free, write_bytes, written_aside
from verix_anon.files.folder_writer import (
    NODE_ENCODINGS,
    ParquetWriter,
    digest_of_file,
    header_to_bytes,
    leaf_columns,
    leaf_encodings,
    node_columns,
)
from verix_anon.files.hostile.parquet_reader import Array
from verix_anon.files.job_folder import DELIVERY_HEADER, LEAVES, NODES, RECORDS
from verix_anon.files.store import is_url, reason
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.messages import Header
from verix_anon.protocol.tree import Leaves, Tree

STAGING = ".staging"
"""A folder that exists only while a job runs."""


class Place(NamedTuple):
    """A folder or a URL."""

    path: str

    def begin(self) -> None:
        """Make the folders that tasks write to, so that a late task does not make them again."""
        if not is_url(self.path):
            for name in (STAGING, RECORDS):
                (Path(self.path) / name).mkdir()

    def check(self) -> None:
        """Raise ProviderError unless a task can write there."""
        try:
            with self.new(f"{STAGING}/{secrets.token_hex(8)}") as path:
                path.touch()
        except OSError as error:
            raise ProviderError(
                f"an executor cannot write to {self.path} ({reason(error)}): it must find it under"
                " that name and, if it is a folder, run as the driver's user"
            ) from None

    @contextmanager
    def new(self, name: str) -> Iterator[Path]:
        """Yield a file to fill; it gets its name when it is complete."""
        if is_url(self.path):
            with tempfile.TemporaryDirectory(prefix="verix-spark-") as folder:
                yield Path(folder) / "file"
                fs, top = self._store()
                fs.put_file(str(Path(folder) / "file"), f"{top}/{name}")
            return
        aside = Path(self.path) / STAGING / secrets.token_hex(8)
        try:
            yield aside
            aside.replace(Path(self.path) / name)
        finally:
            aside.unlink(missing_ok=True)

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading."""
        if is_url(self.path):
            fs, top = self._store()
            return fs.open(f"{top}/{name}", "rb")  # type: ignore[no-any-return]
        return (Path(self.path) / name).open("rb")

    def has(self, name: str = "") -> bool:
        """Whether a file or folder with this name exists."""
        if is_url(self.path):
            fs, top = self._store()
            return bool(fs.exists(f"{top}/{name}".rstrip("/")))
        return (Path(self.path) / name).exists()

    def delete(self, name: str = "") -> None:
        """Delete everything below a name, if it exists; in a local folder the name is needed."""
        if not is_url(self.path):
            # Renamed first, so that a late task cannot add a file meanwhile.
            with suppress(FileNotFoundError):
                gone = (Path(self.path) / name).rename(Path(self.path) / f".{secrets.token_hex(8)}")
                shutil.rmtree(gone, ignore_errors=True)
            return
        fs, top = self._store()
        if fs.exists(f"{top}/{name}".rstrip("/")):
            fs.rm(f"{top}/{name}".rstrip("/"), recursive=True)

    def names(self) -> set[str]:
        """Return all files behind a URL."""
        fs, top = self._store()
        return {str(path).removeprefix(f"{top}/") for path in fs.find(top)}

    def delete_all(self, names: Collection[str]) -> None:
        """Delete these files behind a URL; they must exist."""
        fs, top = self._store()
        if names:
            fs.rm([f"{top}/{name}" for name in sorted(names)])

    def _store(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        # Other processes write there too, so a cached listing would be wrong.
        fs, top = url_to_fs(self.path, use_listings_cache=False)
        return fs, str(top).rstrip("/")


BATCH_ROWS = 1 << 18
"""How many nodes or leaves are held at a time, in addition to those of one part."""
TREE = (LEAVES, NODES)

FOLDER = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A delivery that is being made."""

    folder: Path
    """Where nodes, leaves and the header are written, on this machine"""
    place: Place
    """Where tasks write: the same folder, or a URL"""
    contract: Contract
    prefix: str = "part-"
    """How the names of the records' files begin"""

    def write_tree(self, pieces: Iterable[tuple[Tree, Leaves | None]]) -> None:
        """Write nodes and leaves, which must come in order."""
        encodings = leaf_encodings(len(self.contract.quasi))
        n_leaves = 0
        with (
            ParquetWriter(self.folder / NODES, NODE_ENCODINGS) as nodes,
            ParquetWriter(self.folder / LEAVES, encodings) as leaves,
            _Batches(nodes) as of_nodes,
            _Batches(leaves) as of_leaves,
        ):
            for tree, some in pieces:
                of_nodes.add(node_columns(tree))
                if some is not None:
                    of_leaves.add(leaf_columns(some, n_leaves))
                    n_leaves += some.n_leaves

    def complete(self, header: Header, records: str) -> None:
        """Write delivery.json, with which the files become a delivery."""
        self.place.delete(STAGING)
        files = {name: digest_of_file(self.folder / name) for name in TREE}
        data = header_to_bytes(header, {**files, RECORDS: records})
        write_bytes(self.folder / DELIVERY_HEADER, data)


class _Batches:
    """Columns that are collected until there are enough rows for a row group."""

    def __init__(self, writer: ParquetWriter) -> None:
        self.writer = writer
        self.waiting: list[dict[str, Array]] = []
        self.n_rows = 0

    def __enter__(self) -> "_Batches":
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None and self.waiting:
            self._write()

    def add(self, columns: dict[str, Array]) -> None:
        """Add some rows."""
        self.waiting.append(columns)
        self.n_rows += len(next(iter(columns.values())))
        if self.n_rows >= BATCH_ROWS:
            self._write()

    def _write(self) -> None:
        names = self.waiting[0]
        self.writer.add({n: np.concatenate([some[n] for some in self.waiting]) for n in names})
        self.waiting, self.n_rows = [], 0


def check_place(out: FOLDER, submission: FOLDER, *, overwrite: bool) -> None:
    """Raise unless a delivery can be written to `out`; called before the long work begins."""
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
    if not place.has(DELIVERY_HEADER):
        raise TableError(
            f"{out} is not a folder with a {DELIVERY_HEADER}, so it is not overwritten"
        )


@contextmanager
def written_delivery(out: FOLDER, contract: Contract, *, overwrite: bool) -> Iterator[_Delivery]:
    """Yield the delivery to fill. At success the folder gets its name, or the URL its header."""
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
    """Yield a delivery behind a URL, and write its header last: without it, it is not a delivery.

    An old delivery stays until everything else is done; the new files have other names.
    """
    old = place.names()
    prefix = f"part-{secrets.token_hex(4)}-" if old else "part-"
    with tempfile.TemporaryDirectory(prefix="verix-spark-") as folder:
        try:
            yield _Delivery(Path(folder), place, contract, prefix)
        except BaseException:
            # Only what was there before stays.
            place.delete(STAGING if old else "")
            if old:
                place.delete_all(place.names() - old)
            raise
        try:
            place.delete_all(old & {DELIVERY_HEADER})
            place.delete_all(old - {DELIVERY_HEADER})
            for name in (*TREE, DELIVERY_HEADER):
                with place.new(name) as file:
                    (Path(folder) / name).replace(file)
        except BaseException:
            place.delete()
            raise
        # A late task may have written there again.
        place.delete(STAGING)
