"""Write submissions and deliveries as folders (spec §8), and hash what was written.

A folder appears complete or not at all. A receipt binds the provider to its own words, so that it
cannot say later that another delivery was its own.

`files/submissions.py` and `files/deliveries.py` read them back and say what the files must hold.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import rfc8785

from verix_anon.errors import TableError
from verix_anon.files import deliveries, job_folder, submissions
from verix_anon.files.atomic_write import write_bytes, written_aside
from verix_anon.files.deliveries import NODE
from verix_anon.files.folder_facts import read_header
from verix_anon.files.hashed_files import digest_of_parts
from verix_anon.files.hostile.parquet_reader import TRACKER, Array
from verix_anon.files.store import FilePath, open_folder, path_text
from verix_anon.machine import available_cores
from verix_anon.protocol.messages import (
    DELIVERY_FORMAT,
    SUBMISSION_FORMAT,
    Delivery,
    Header,
    Submission,
)
from verix_anon.protocol.records import wire_columns
from verix_anon.protocol.statements import DELIVERED, Receipt, as_time
from verix_anon.protocol.tree import Leaves, Tree

if TYPE_CHECKING:
    from verix_anon.protocol.signing import SigningKey

GROUP_ROWS = 1 << 20
"""How many rows we write as one group."""


def _to_arrow(column: Array) -> pa.Array:
    """Numbers, or trackers of (n_rows, 32), as an Arrow array over the same memory."""
    kind = TRACKER if column.ndim == 2 else pa.from_numpy_dtype(column.dtype)
    data = pa.py_buffer(np.ascontiguousarray(column))
    return pa.Array.from_buffers(kind, len(column), [None, data])


def write_parquet(path: Path, columns: Mapping[str, Array], encodings: Mapping[str, str]) -> None:
    """Write columns with zstd; those without an encoding get a dictionary."""
    with ParquetWriter(path, encodings) as writer:
        writer.add(columns)


class ParquetWriter:
    """One Parquet file, written in batches with zstd; columns without an encoding get a dictionary.

    A batch is a row group of its own, or several.
    """

    def __init__(self, path: Path, encodings: Mapping[str, str]) -> None:
        self.path, self.encodings = path, encodings
        self.file: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.file is not None:
            self.file.close()

    def add(self, columns: Mapping[str, Array]) -> None:
        """Write some rows; the first say which columns there are."""
        table = pa.table({name: _to_arrow(column) for name, column in columns.items()})
        if self.file is None:
            self.file = pq.ParquetWriter(
                self.path,
                table.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[name for name in columns if name not in self.encodings],
                column_encoding=dict(self.encodings) or None,
                write_statistics=False,
                store_schema=False,
            )
        # Fewer than what is encoded at a time costs size, more costs the reader memory.
        self.file.write_table(table, row_group_size=GROUP_ROWS)


RECORD_ENCODINGS = {"row": "DELTA_BINARY_PACKED", "tracker": "PLAIN", "leaf": "PLAIN"}
NODE_ENCODINGS = {
    "threshold": "BYTE_STREAM_SPLIT",
    "left": "DELTA_BINARY_PACKED",
    "right": "DELTA_BINARY_PACKED",
    "leaf": "DELTA_BINARY_PACKED",
}


def write_delivery(
    delivery: Delivery,
    path: FilePath,
    *,
    overwrite: bool = False,
    finish: Callable[[Path], object] | None = None,
) -> None:
    """Write a delivery's folder; it appears complete or not at all.

    `finish` is called with the folder before it takes its name, such as to put a receipt there.

    Examples:
        >>> delivery = verix_anon.LocalProvider().anonymize("job/submission")
        >>> verix_anon.write_delivery(delivery, "new/delivery")
    """
    records, n_quasi = delivery.records, delivery.leaves.minimum.shape[1]
    with written_aside(path, overwrite=overwrite, folder=True, private=False) as folder:
        write_parquet(
            folder / job_folder.LEAVES, leaf_columns(delivery.leaves), leaf_encodings(n_quasi)
        )
        write_parquet(folder / job_folder.NODES, node_columns(delivery.tree), NODE_ENCODINGS)
        write_parquet(
            folder / job_folder.RECORDS,
            {
                "row": records.row,
                "tracker": records.tracker,
                "leaf": records.leaf,
                **({"target": records.target} if records.has_target else {}),
            },
            RECORD_ENCODINGS,
        )
        stated = {name: digest_of_file(folder / name) for name in deliveries.NAMED}
        write_bytes(folder / job_folder.DELIVERY_HEADER, header_to_bytes(delivery.header, stated))
        if finish is not None:
            finish(folder)


def leaf_columns(leaves: Leaves, first: int = 0) -> dict[str, Array]:
    """Leaves as columns of leaves.parquet, numbered from `first`."""
    columns: dict[str, Array] = {
        "leaf": np.arange(first, first + leaves.n_leaves, dtype=np.int32),
        "count": leaves.count,
    }
    for j in range(leaves.minimum.shape[1]):
        columns[f"min_{j}"], columns[f"max_{j}"] = leaves.minimum[:, j], leaves.maximum[:, j]
    return columns


def leaf_encodings(n_quasi: int) -> dict[str, str]:
    """How the columns of leaves.parquet are written, of so many quasi-identifiers."""
    bounds = (f"{end}_{j}" for j in range(n_quasi) for end in ("min", "max"))
    return {"leaf": "DELTA_BINARY_PACKED", **dict.fromkeys(bounds, "BYTE_STREAM_SPLIT")}


def node_columns(tree: Tree) -> dict[str, Array]:
    """A tree as columns of nodes.parquet."""
    return {name: getattr(tree, name) for name in NODE.columns}


def header_to_bytes(header: Header, files: Mapping[str, str]) -> bytes:
    """What delivery.json holds: the header, and the digests of the other files."""
    return rfc8785.dumps(
        {
            "format": DELIVERY_FORMAT,
            "contract": header.contract.hex(),
            "submission": header.submission.hex(),
            "root": header.root.hex(),
            "engine": header.engine,
            "version": header.version,
            "rows": header.rows,
            "leaves": header.leaves,
            "nodes": header.nodes,
            "seconds": header.seconds,
            "files": dict(files),
        }
    )


def write_submission(submission: Submission, path: FilePath, *, overwrite: bool = False) -> None:
    """Write a submission's folder for its owner alone; it appears complete or not at all.

    Examples:
        >>> prepared = verix_anon.prepare("people.csv", target="income", quasi="all")
        >>> verix_anon.write_submission(prepared.submission, "new/submission")
    """
    contract, records = submission.contract, submission.records
    encodings = {"row": "DELTA_BINARY_PACKED", "tracker": "PLAIN"}
    for column, values in zip(contract.quasi, records.values, strict=True):
        # It has too many values for a dictionary, judged by its first rows.
        sample = values[:65536]
        if np.unique(sample).size > sample.size // 8:
            is_float = column.n_values is None
            encodings[column.name] = "BYTE_STREAM_SPLIT" if is_float else "DELTA_BINARY_PACKED"
    with written_aside(path, overwrite=overwrite, folder=True, private=True) as folder:
        write_bytes(folder / job_folder.CONTRACT, contract.to_bytes())
        with ParquetWriter(folder / job_folder.RECORDS, encodings) as writer:
            # A group at a time: as they are written, all together take half of what they do here.
            for first in range(0, records.n_rows, GROUP_ROWS):
                writer.add(_written(submission, first, first + GROUP_ROWS))
        stated = rfc8785.dumps(
            {
                "format": SUBMISSION_FORMAT,
                "contract": contract.digest.hex(),
                "submission": submission.digest(threads=available_cores()).hex(),
                "rows": records.n_rows,
                "files": {name: digest_of_file(folder / name) for name in submissions.NAMED},
            }
        )
        write_bytes(folder / job_folder.SUBMISSION_HEADER, stated)


def _written(submission: Submission, first: int, end: int) -> dict[str, Array]:
    """Some rows, as they stand in the file."""
    contract, records = submission.contract, submission.records
    rows = slice(first, min(end, records.n_rows))
    names = [column.name for column in contract.columns]
    return {
        "row": np.arange(rows.start, rows.stop),
        "tracker": records.tracker[rows],
        **dict(zip(names, wire_columns(contract, records, rows), strict=True)),
    }


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file of ours, in hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def digests_of_folder(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The digest of each of these in a folder of ours, be it a file or a folder of parts."""
    found = {}
    for name in names:
        if not (folder / name).is_dir():
            found[name] = digest_of_file(folder / name)
            continue
        parts = open_folder(folder, TableError).parts(name)
        digests = [bytes.fromhex(digest_of_file(folder / part)) for part in parts]
        within = [part.removeprefix(f"{name}/") for part in parts]
        found[name] = digest_of_parts(zip(within, digests, strict=True))
    return found


def without_scheme(path: FilePath) -> str:
    """Return a path or URL as text, without the file:// of a file's URL."""
    text = path_text(path)
    return text.removeprefix("file://") if text.startswith("file:///") else text


def receipt_of(folder: Path, began: datetime, finished: datetime) -> Receipt:
    """What a receipt says of a delivery's folder, whose every file is read."""
    files = digests_of_folder(folder, DELIVERED)
    return Receipt.of(read_header(folder), files, as_time(began), as_time(finished))


def write_receipt(folder: Path, key: "SigningKey", began: datetime, finished: datetime) -> Receipt:
    """Sign what the folder holds, and put the receipt beside its files."""
    # Spark's executors load this module, and have no cryptography.
    from verix_anon.protocol.signing import sign

    receipt = receipt_of(folder, began, finished)
    place = folder / job_folder.RECEIPT_FILE
    with written_aside(place, overwrite=True, folder=False, private=False) as aside:
        write_bytes(aside, sign(receipt.to_bytes(), key))
    return receipt
