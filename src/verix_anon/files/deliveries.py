"""A delivery as a folder (spec §8), read as the work of somebody who means harm (spec §11).

What the provider controls: every byte of every file. What bounds it: the contract, which
says how many columns there are and how small a leaf may be, and the number of rows sent.
Each file is read once, hashed, and decoded from those very bytes.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
import pyarrow as pa
import rfc8785

from verix_anon.arrays import Floats
from verix_anon.errors import MalformedDeliveryError, TableError
from verix_anon.fields import Fields
from verix_anon.files.hostile import reader as parquet
from verix_anon.files.store import Folder, open_folder, written_aside
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.messages import DELIVERY_FORMAT, Delivered, Delivery, Header
from verix_anon.protocol.tree import Leaves, Tree

__all__ = ["Snapshot", "read_delivery", "read_header", "write_delivery"]

HEADER_FIELDS = frozenset(
    {"format", "contract", "submission", "root", "engine", "version", "rows", "leaves"}
    | {"nodes", "seconds"}
)
MAX_HEADER_BYTES = 1 << 16
COUNTS = range(2**32)
MAX_WORD = 64
"""How long `engine` and `version` may be."""
MAX_SECONDS = 2**53

RECORDS = {"row": pa.int64(), "tracker": parquet.TRACKER, "leaf": pa.int32()}
TARGET = {"target": pa.uint8()}
NODES = parquet.Expected(
    {
        "column": pa.int32(),
        "threshold": pa.float64(),
        "left": pa.int32(),
        "right": pa.int32(),
        "leaf": pa.int32(),
    }
)
RECORD_ENCODINGS = {"row": "DELTA_BINARY_PACKED", "tracker": "PLAIN", "leaf": "PLAIN"}
NODE_ENCODINGS = {
    "threshold": "BYTE_STREAM_SPLIT",
    "left": "DELTA_BINARY_PACKED",
    "right": "DELTA_BINARY_PACKED",
    "leaf": "DELTA_BINARY_PACKED",
}


def _leaves(n_quasi: int) -> parquet.Expected:
    bounds = {f"{end}_{j}": pa.float64() for j in range(n_quasi) for end in ("min", "max")}
    return parquet.Expected({"leaf": pa.int32(), "count": pa.int64(), **bounds})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Snapshot:
    """A delivery, and the SHA-256 of each file it was read from."""

    delivery: Delivery
    files: Mapping[str, str] = field(repr=False)


def write_delivery(
    delivery: Delivery, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a delivery's folder; it appears complete or not at all."""
    records, leaves, tree = delivery.records, delivery.leaves, delivery.tree
    leaf_columns: dict[str, object] = {
        "leaf": np.arange(leaves.n_leaves, dtype=np.int32),
        "count": leaves.count,
    }
    encodings = {"leaf": "DELTA_BINARY_PACKED"}
    for j in range(leaves.minimum.shape[1]):
        for end, bound in (("min", leaves.minimum), ("max", leaves.maximum)):
            leaf_columns[f"{end}_{j}"] = bound[:, j]
            encodings[f"{end}_{j}"] = "BYTE_STREAM_SPLIT"
    node_columns = {name: getattr(tree, name) for name in NODES.columns}
    with written_aside(path, overwrite=overwrite, folder=True) as folder:
        parquet.write(folder / "leaves.parquet", pa.table(leaf_columns), encodings)
        parquet.write(folder / "nodes.parquet", pa.table(node_columns), NODE_ENCODINGS)
        parquet.write(
            folder / "records.parquet",
            pa.table(
                {
                    "row": records.row,
                    "tracker": parquet.trackers(records.tracker),
                    "leaf": records.leaf,
                    **({"target": records.target} if records.has_target else {}),
                }
            ),
            RECORD_ENCODINGS,
        )
        (folder / "delivery.json").write_bytes(_header_to_bytes(delivery.header))


def read_delivery(path: str | os.PathLike[str], contract: Contract, *, n_rows: int) -> Snapshot:
    """Read a delivery for a submission of `n_rows` records under a contract.

    What comes back is well-formed: a canonical tree no deeper than agreed, finite ordered
    bounds for each of its leaves, and rows and leaf numbers in range. Whether any of it is
    true is for the layers to say.

    Raises:
        MalformedDeliveryError: The bytes are not such a delivery.
        TableError: There is no folder at that path, or it is a submission's.
    """
    folder = open_folder(path, MalformedDeliveryError)
    if folder.has("contract.json") and not folder.has("delivery.json"):
        raise TableError(f"{path} is a submission, not a delivery")
    files = _Files(folder)
    header = _parse_header(files.read("delivery.json", MAX_HEADER_BYTES))
    # What the counts promise bounds what is read below.
    header.check(contract, n_rows=n_rows)
    delivery = Delivery(
        header=header,
        leaves=_read_leaves(files, header.leaves, len(contract.quasi)),
        tree=_read_tree(files, header.nodes),
        records=_read_records(files, header, n_rows, has_target=contract.target is not None),
    )
    delivery.check(contract, n_rows=n_rows)
    return Snapshot(delivery=delivery, files=files.digests)


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read only what delivery.json says."""
    folder = open_folder(path, MalformedDeliveryError)
    return _parse_header(folder.read("delivery.json", limit=MAX_HEADER_BYTES))


class _Files:
    """The files of one delivery: each read once, and hashed."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.digests: dict[str, str] = {}

    def read(self, name: str, limit: int) -> bytes:
        data = self.folder.read(name, limit=limit)
        self.digests[name] = sha256(data).hexdigest()
        return data

    def table(self, name: str, expected: parquet.Expected, n_rows: int) -> dict[str, parquet.Array]:
        """The whole of one file with exactly so many rows."""
        data = self.read(name, expected.bytes_for(n_rows))
        reader = parquet.Reader(name, data, expected, MalformedDeliveryError, most_rows=n_rows)
        if reader.n_rows != n_rows:
            raise MalformedDeliveryError(
                f"{name} has {reader.n_rows} rows, but delivery.json says {n_rows}"
            )
        return reader.read()


def _read_leaves(files: _Files, n_leaves: int, n_quasi: int) -> Leaves:
    columns = files.table("leaves.parquet", _leaves(n_quasi), n_leaves)
    if not np.array_equal(columns["leaf"], np.arange(n_leaves)):
        raise MalformedDeliveryError("leaves.parquet: column 'leaf' does not count from 0 upwards")
    minimum, maximum = np.empty((2, n_leaves, n_quasi))
    for j in range(n_quasi):
        minimum[:, j] = _unsigned_zeros(columns[f"min_{j}"])
        maximum[:, j] = _unsigned_zeros(columns[f"max_{j}"])
    count = np.asarray(columns["count"], np.int64)
    return Leaves(count=count, minimum=minimum, maximum=maximum)


def _unsigned_zeros(column: parquet.Array) -> Floats:
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else; a signalling NaN would warn.
    with np.errstate(invalid="ignore"):
        return np.asarray(column, np.float64) + 0.0


def _read_tree(files: _Files, n_nodes: int) -> Tree:
    columns = files.table("nodes.parquet", NODES, n_nodes)
    return Tree(
        column=columns["column"].astype(np.int32),
        threshold=_unsigned_zeros(columns["threshold"]),
        left=columns["left"].astype(np.int32),
        right=columns["right"].astype(np.int32),
        leaf=columns["leaf"].astype(np.int32),
    )


def _read_records(files: _Files, header: Header, n_rows: int, *, has_target: bool) -> Delivered:
    expected = parquet.Expected(RECORDS | TARGET if has_target else RECORDS)
    # Together the parts may hold no more than one file could, packed or unfolded.
    limit = most_bytes = expected.bytes_for(n_rows)
    row, leaf = np.empty(header.rows, np.int64), np.empty(header.rows, np.int32)
    tracker, target = np.empty((header.rows, 32), np.uint8), np.zeros(header.rows, np.uint8)
    at = 0
    for part in files.folder.parts("records.parquet"):
        data = files.read(part, limit)
        reader = parquet.Reader(
            part,
            data,
            expected,
            MalformedDeliveryError,
            most_rows=header.rows - at,
            most_bytes=most_bytes,
        )
        limit, most_bytes = limit - len(data), most_bytes - reader.n_bytes
        for group in reader.row_groups():
            rows = slice(at, at + len(group["row"]))
            row[rows], tracker[rows] = group["row"], group["tracker"]
            leaf[rows] = group["leaf"]
            if has_target:
                target[rows] = group["target"]
            at = rows.stop
    if at != header.rows:
        raise MalformedDeliveryError(
            f"records.parquet has {at} rows, but delivery.json says {header.rows}"
        )
    return Delivered(row=row, tracker=tracker, leaf=leaf, target=target, has_target=has_target)


def _header_to_bytes(header: Header) -> bytes:
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
        }
    )


def _parse_header(data: bytes) -> Header:
    fields = Fields.parse(data, "delivery.json", MalformedDeliveryError)
    fields.expect("format", DELIVERY_FORMAT)
    fields.only(HEADER_FIELDS)
    return Header(
        contract=Digest(fields.digest("contract")),
        submission=Digest(fields.digest("submission")),
        root=Digest(fields.digest("root")),
        engine=_word(fields, "engine"),
        version=_word(fields, "version"),
        rows=fields.whole("rows", COUNTS),
        leaves=fields.whole("leaves", COUNTS),
        nodes=fields.whole("nodes", COUNTS),
        seconds=_seconds(fields),
    )


def _word(fields: Fields, name: str) -> str:
    value = fields.text(name)
    if len(value) > MAX_WORD or not value.isprintable():
        raise fields.wrong(name, f"printable text of at most {MAX_WORD} characters")
    return value


def _seconds(fields: Fields) -> float:
    value = fields.number("seconds")
    if not 0 <= value <= MAX_SECONDS:
        raise fields.wrong("seconds", "a number of seconds")
    return float(value)
