"""A delivery as a folder (spec §8), read as the work of somebody who means harm (spec §11).

What the provider controls: every byte of every file. What bounds it: the contract, which
says how many columns there are and how small a leaf may be, and the number of rows sent.
Each file is read once, hashed, and decoded from those very bytes.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import rfc8785

from verix_anon.arrays import Floats, Ids, Ints
from verix_anon.errors import MalformedDeliveryError, ReceiptError, TableError
from verix_anon.fields import Fields
from verix_anon.files.aside import write_bytes, written_aside
from verix_anon.files.hashed import RECORDS, Files, digest_of_file, stated_digests
from verix_anon.files.hostile import reader as parquet
from verix_anon.files.store import Folder, open_folder
from verix_anon.machine import available_cores
from verix_anon.protocol.contract import Contract, Digest
from verix_anon.protocol.messages import DELIVERY_FORMAT, Delivered, Delivery, Header
from verix_anon.protocol.tree import Leaves, Tree

__all__ = [
    "LEAVES",
    "MIXED_UP",
    "NAMED",
    "NODES",
    "NODE_ENCODINGS",
    "RECEIPT_FILE",
    "Snapshot",
    "damage",
    "header_to_bytes",
    "leaf_columns",
    "leaf_encodings",
    "most_bytes",
    "node_columns",
    "read_delivery",
    "read_header",
    "write_delivery",
]

HEADER_FIELDS = frozenset(
    {"format", "contract", "submission", "root", "engine", "version", "rows", "leaves"}
    | {"nodes", "seconds", "files"}
)
MIXED_UP = "answers another submission; are folders mixed up"
LEAVES, NODES = "leaves.parquet", "nodes.parquet"
NAMED = (LEAVES, NODES, RECORDS)
"""The files whose digests are stated."""
RECEIPT_FILE = "receipt.dsse.json"
"""The provider's receipt, where there is one"""
MAX_HEADER_BYTES = 1 << 16
COUNTS = range(2**32)
MAX_WORD = 64
"""How long `engine` and `version` may be."""
MAX_SECONDS = 2**53

COLUMNS = {"row": pa.int64(), "tracker": parquet.TRACKER, "leaf": pa.int32()}
TARGET = {"target": pa.uint8()}
NODE = parquet.Expected(
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
    damaged: tuple[str, ...] = ()
    """The files that are not those whose digests delivery.json states"""
    receipt: bytes | ReceiptError | None = field(default=None, repr=False)
    """The provider's receipt as it came, why it cannot be read, or None if there is none"""


def write_delivery(
    delivery: Delivery,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    finish: Callable[[Path], object] | None = None,
) -> None:
    """Write a delivery's folder; it appears complete or not at all.

    `finish` is called with the folder before it takes its name, such as to put a receipt there.
    """
    records, n_quasi = delivery.records, delivery.leaves.minimum.shape[1]
    with written_aside(path, overwrite=overwrite, folder=True, private=False) as folder:
        parquet.write(folder / LEAVES, leaf_columns(delivery.leaves), leaf_encodings(n_quasi))
        parquet.write(folder / NODES, node_columns(delivery.tree), NODE_ENCODINGS)
        parquet.write(
            folder / RECORDS,
            {
                "row": records.row,
                "tracker": records.tracker,
                "leaf": records.leaf,
                **({"target": records.target} if records.has_target else {}),
            },
            RECORD_ENCODINGS,
        )
        stated = {name: digest_of_file(folder / name) for name in NAMED}
        write_bytes(folder / "delivery.json", header_to_bytes(delivery.header, stated))
        if finish is not None:
            finish(folder)


def leaf_columns(leaves: Leaves, first: int = 0) -> dict[str, parquet.Array]:
    """Leaves as columns of leaves.parquet, numbered from `first`."""
    columns: dict[str, parquet.Array] = {
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


def node_columns(tree: Tree) -> dict[str, parquet.Array]:
    """A tree as columns of nodes.parquet."""
    return {name: getattr(tree, name) for name in NODE.columns}


def read_delivery(
    path: str | os.PathLike[str], contract: Contract, *, n_rows: int, signed_zeros: bool = False
) -> Snapshot:
    """Read a delivery for a submission of `n_rows` records under a contract.

    -0.0 is read as 0.0, unless it is asked for as it stands.
    What comes back is well-formed: a canonical tree no deeper than agreed, finite ordered
    bounds for each of its leaves, and rows and leaf numbers in range. Whether any of it is
    true, its digests included, is for the layers to say.

    Raises:
        MalformedDeliveryError: The bytes are not such a delivery.
        TableError: There is no folder at that path, or it is a submission's.
    """
    folder = open_folder(path, MalformedDeliveryError)
    if folder.has("submission.json") and not folder.has("delivery.json"):
        raise TableError(f"{path} is a submission, not a delivery")
    files = Files(folder)
    header, stated = _parse_header(files.read("delivery.json", MAX_HEADER_BYTES))
    try:
        # What the counts promise bounds what is read below.
        header.check(contract, n_rows=n_rows)
        delivery = Delivery(
            header=header,
            leaves=_read_leaves(files, header.leaves, len(contract.quasi), signed_zeros),
            tree=_read_tree(files, header.nodes, signed_zeros),
            records=_read_records(files, header, n_rows, has_target=contract.target is not None),
        )
        delivery.check(contract, n_rows=n_rows)
    except MalformedDeliveryError as error:
        if header.contract != contract.digest:
            raise MalformedDeliveryError(f"it {MIXED_UP}? ({error})") from None
        if damaged := files.different(stated):
            raise MalformedDeliveryError(f"{error}; {damage(damaged)}") from None
        raise
    return Snapshot(
        delivery=delivery,
        files=files.digests,
        damaged=files.different(stated),
        receipt=_read_receipt(folder),
    )


def _read_receipt(folder: Folder) -> bytes | ReceiptError | None:
    """What lies there as a receipt: it says nothing about whether the rest is a delivery."""
    if not folder.has(RECEIPT_FILE):
        return None
    # Executors of a cluster write deliveries, and have no use for what signatures need.
    from verix_anon.protocol.envelopes import MAX_BYTES

    try:
        return folder.failing(ReceiptError).read(RECEIPT_FILE, limit=MAX_BYTES)
    except ReceiptError as error:
        return error


def most_bytes(contract: Contract, *, n_rows: int, n_parts: int = 0) -> dict[str, int]:
    """How large each file of a delivery may be; parts of the records share what they may."""
    n_leaves = n_rows // contract.min_leaf
    columns = COLUMNS if contract.target is None else COLUMNS | TARGET
    return {
        "delivery.json": MAX_HEADER_BYTES,
        LEAVES: _leaves(len(contract.quasi)).bytes_for(n_leaves),
        NODES: NODE.bytes_for(2 * n_leaves - 1),
        RECORDS: parquet.Expected(columns, parts=n_parts).bytes_for(n_rows),
    }


def damage(names: tuple[str, ...]) -> str:
    """What it means that files are not those whose digests delivery.json states."""
    return (
        f"{' and '.join(names)} damaged on the way or altered"
        " (not of the SHA-256 that delivery.json states)"
    )


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read only what delivery.json says."""
    folder = open_folder(path, MalformedDeliveryError)
    return _parse_header(folder.read("delivery.json", limit=MAX_HEADER_BYTES))[0]


def _fill(
    files: Files, name: str, expected: parquet.Expected, into: Mapping[str, parquet.Array]
) -> None:
    """Fill arrays with the whole of one file, which has exactly so many rows."""
    n_rows = len(into["leaf"])
    data = files.hold(name, expected.bytes_for(n_rows))
    reader = parquet.Reader(name, data, expected, MalformedDeliveryError, most_rows=n_rows)
    _check_count(name, reader.n_rows, n_rows)
    parquet.copy_all([reader], into, available_cores())


def _check_count(name: str, found: int, stated: int) -> None:
    if found != stated:
        raise MalformedDeliveryError(f"{name} has {found} rows, but delivery.json says {stated}")


def _read_leaves(files: Files, n_leaves: int, n_quasi: int, signed_zeros: bool) -> Leaves:
    leaf, count = np.empty(n_leaves, np.int32), np.empty(n_leaves, np.int64)
    # One column after the other in memory, as the layers read them.
    minimum, maximum = np.empty((n_quasi, n_leaves)), np.empty((n_quasi, n_leaves))
    into: dict[str, parquet.Array] = {"leaf": leaf, "count": count}
    for j in range(n_quasi):
        into[f"min_{j}"], into[f"max_{j}"] = minimum[j], maximum[j]
    _fill(files, LEAVES, _leaves(n_quasi), into)
    if not np.array_equal(leaf, np.arange(n_leaves)):
        raise MalformedDeliveryError("leaves.parquet: column 'leaf' does not count from 0 upwards")
    if not signed_zeros:
        _unsign_zeros(minimum)
        _unsign_zeros(maximum)
    return Leaves(count=count, minimum=minimum.T, maximum=maximum.T)


def _unsign_zeros(values: Floats) -> None:
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else; a signalling NaN would warn.
    with np.errstate(invalid="ignore"):
        np.add(values, 0.0, out=values)


def _read_tree(files: Files, n_nodes: int, signed_zeros: bool) -> Tree:
    threshold = np.empty(n_nodes)
    column, left, right, leaf = (np.empty(n_nodes, np.int32) for _ in range(4))
    arrays = {"column": column, "left": left, "right": right, "leaf": leaf}
    _fill(files, NODES, NODE, {**arrays, "threshold": threshold})
    if not signed_zeros:
        _unsign_zeros(threshold)
    return Tree(threshold=threshold, **arrays)


def _read_records(files: Files, header: Header, n_rows: int, *, has_target: bool) -> Delivered:
    """The records in ascending row, wherever they stand in the files."""
    expected, parts = files.hold_records(COLUMNS | TARGET if has_target else COLUMNS, n_rows)
    readers = parquet.open_parts(
        parts,
        expected,
        MalformedDeliveryError,
        n_rows=header.rows,
        most_bytes=expected.bytes_for(n_rows),
    )
    _check_count(RECORDS, sum(reader.n_rows for reader in readers), header.rows)
    row = np.empty(header.rows, np.int64)
    parquet.copy_all(readers, {"row": row}, available_cores())
    places = _places(row)
    row.sort()
    leaf, tracker = np.empty(header.rows, np.int32), np.empty((header.rows, 32), np.uint8)
    target = np.zeros(header.rows, np.uint8)
    into: dict[str, parquet.Array] = {"tracker": tracker, "leaf": leaf}
    if has_target:
        into["target"] = target
    parquet.copy_all(readers, into, available_cores(), places)
    return Delivered(row=row, tracker=tracker, leaf=leaf, target=target, has_target=has_target)


def _places(row: Ints) -> Ids | None:
    """Where each record goes for rows to ascend, stable where they repeat; None: none moves."""
    if (row[1:] >= row[:-1]).all():
        return None
    places = np.empty(row.size, np.int32)
    places[np.argsort(row, kind="stable")] = np.arange(row.size, dtype=np.int32)
    return places


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


def _parse_header(data: bytes) -> tuple[Header, dict[str, str]]:
    """The header, and the digests of the other files."""
    fields = Fields.parse(data, "delivery.json", MalformedDeliveryError)
    fields.expect("format", DELIVERY_FORMAT)
    fields.only(HEADER_FIELDS)
    header = Header(
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
    return header, stated_digests(fields, NAMED)


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
