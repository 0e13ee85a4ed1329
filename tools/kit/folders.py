"""Submissions and deliveries as folders (spec §8), written without the engine's code.

Parquet is written by pyarrow as it comes, so that no one needs the writers of this package to make
such a file, and every digest is the independent implementation's.
"""

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tools.kit import independent
from tools.kit.tables import KitSubmission, canonical, one_file, uniform

RECORDS = "records.parquet"
TRACKER = pa.binary(32)
ENGINE, VERSION = "independent", "1"
NODE_COLUMNS = {
    "column": pa.int32(),
    "threshold": pa.float64(),
    **dict.fromkeys(("left", "right", "leaf"), pa.int32()),
}
N_PARTS = 3
NAMES = ("a", "Z", "2", "10")


WITHOUT_LIMIT: dict[str, Any] = {
    "use_dictionary": False,
    "column_encoding": {"tracker": "DELTA_BYTE_ARRAY"},
}
"""Writes trackers in an encoding that can unfold without limit."""


def with_cell(name: str, row: int, value: object) -> Callable[[pa.Table], pa.Table]:
    """What changes one cell of a table."""

    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        values = table.column(at).to_pylist()
        values[row] = value
        return table.set_column(at, name, pa.array(values, table.schema.field(at).type))

    return change


def with_type(name: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    """What changes the type of one column of a table."""

    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        return table.set_column(at, name, table.column(at).cast(kind))

    return change


def packed_otherwise(table: pa.Table, path: Path) -> None:
    """Write them in any order, in small groups, by another codec and without a dictionary."""
    pq.write_table(
        _shuffled(table), path, compression="snappy", row_group_size=17, use_dictionary=False
    )


def as_prepared(table: pa.Table, path: Path) -> None:
    """Write them in the encodings of `prepare`, and labels in the older name of a dictionary's."""
    by_type = {pa.int64(): "DELTA_BINARY_PACKED", pa.float64(): "BYTE_STREAM_SPLIT"}
    encodings = {f.name: by_type.get(f.type, "PLAIN") for f in table.schema if f.name != "y"}
    pq.write_table(table, path, version="1.0", use_dictionary=["y"], column_encoding=encodings)


def with_minus_zeros(table: pa.Table, path: Path) -> None:
    """Write -0.0 for each zero."""
    for at, field in enumerate(table.schema):
        if field.type == pa.float64():
            values = [value or -0.0 for value in table.column(at).to_pylist()]
            table = table.set_column(at, field.name, pa.array(values, field.type))
    one_file(table, path)


def as_in_cluster(table: pa.Table) -> pa.Table:
    """Records in the types that clusters have (spec §8.3)."""
    types = {TRACKER: pa.binary(), pa.uint8(): pa.int16()}
    return table.cast(pa.schema([(f.name, types.get(f.type, f.type)) for f in table.schema]))


def parts(table: pa.Table, path: Path) -> None:
    """Write them as clusters do: a folder of parts, in any order, in its own types."""
    cast = _shuffled(as_in_cluster(table))
    path.mkdir()
    each = -(-table.num_rows // N_PARTS)
    for i in range(N_PARTS + 1):
        # The last part has no rows, as that of an empty partition.
        pq.write_table(cast.slice(i * each, each), path / f"part-{i:05}.parquet")
    (path / "_SUCCESS").touch()


def parts_by_name(table: pa.Table, path: Path) -> None:
    """Write them as parts whose names other orders than that of code points sort otherwise."""
    path.mkdir()
    each = -(-table.num_rows // len(NAMES))
    for i, name in enumerate(NAMES):
        pq.write_table(table.slice(i * each, each), path / f"{name}.parquet")
    (path / ".2.parquet.crc").write_bytes(b"crc\x00")


def _shuffled(table: pa.Table) -> pa.Table:
    n = table.num_rows
    drawn = uniform(99, n)
    return table.take(pa.array(sorted(range(n), key=lambda row: drawn[row])))


def write_submission(sent: KitSubmission, folder: Path) -> None:
    """Write a submission's folder."""
    folder.mkdir(parents=True)
    (folder / "contract.json").write_bytes(sent.contract)
    sent.write(sent.change(_records(sent)), folder / RECORDS)
    # What the digest is made of, whether the contract and the records are valid or not.
    joined = [
        # Adding 0.0 turns -0.0 into 0.0, here and below: no file holds it (spec §2.1).
        independent.Column(
            column["name"], column["role"], column["kind"], 0, [value + 0.0 for value in values]
        )
        for column, values in zip(sent.described, sent.columns, strict=True)
    ]
    work = independent.Work("", 0, 0, sent.trackers, joined, [], [])
    contract = independent.sha256(sent.contract)
    header = {
        "format": "verix/submission/2",
        "contract": contract.hex(),
        "submission": independent.submission_digest(work, contract).hex(),
        "rows": len(sent.trackers),
        **sent.header,
        "files": {name: _digest(folder, name) for name in ("contract.json", RECORDS)},
    }
    (folder / "submission.json").write_bytes(sent.header_bytes(header))
    if sent.left_out:
        (folder / sent.left_out).unlink()


def _records(sent: KitSubmission) -> pa.Table:
    """The table in records.parquet of a submission."""
    n, columns = len(sent.trackers), sent.described
    row, tracker = pa.array(range(n), pa.int64()), pa.array(sent.trackers, TRACKER)
    arrays = [_column(column, values) for column, values in zip(columns, sent.columns, strict=True)]
    # By place: in a contract that must be refused two columns may have one name.
    names = ["row", "tracker", *(column["name"] for column in columns)]
    return pa.Table.from_arrays([row, tracker, *arrays], names)


def _column(column: Mapping[str, Any], values: Sequence[float]) -> pa.Array:
    if column["role"] == "target":
        return pa.array(values, pa.uint8())
    if column["kind"] in ("categorical", "rank"):
        return pa.array(values, pa.int32())
    return pa.array([value + 0.0 for value in values], pa.float64())


def write_delivery(sent: KitSubmission, result: independent.Anonymized, folder: Path) -> None:
    """Write the delivery that answers a submission."""
    folder.mkdir(parents=True)
    records = {
        "row": pa.array(range(len(sent.trackers)), pa.int64()),
        "tracker": pa.array(sent.trackers, TRACKER),
        "leaf": pa.array(result.leaf_of_row, pa.int32()),
    }
    for column, values in zip(sent.described, sent.columns, strict=True):
        if column["role"] == "target":
            records["target"] = pa.array(values, pa.uint8())
    one_file(pa.table(records), folder / RECORDS)
    leaves = {
        "leaf": pa.array(range(len(result.leaves)), pa.int32()),
        "count": pa.array([count for count, _ in result.leaves], pa.int64()),
    }
    for j in range(len(result.leaves[0][1])):
        for i, end in enumerate(("min", "max")):
            values = [bounds[j][i] for _, bounds in result.leaves]
            leaves[f"{end}_{j}"] = pa.array(values, pa.float64())
    one_file(pa.table(leaves), folder / "leaves.parquet")
    nodes = zip(NODE_COLUMNS.items(), zip(*result.nodes, strict=True), strict=True)
    arrays = {name: pa.array(values, kind) for (name, kind), values in nodes}
    one_file(pa.table(arrays), folder / "nodes.parquet")
    header = {
        "format": "verix/delivery/2",
        "contract": result.contract_digest,
        "submission": result.submission_digest,
        "root": result.root,
        "engine": ENGINE,
        "version": VERSION,
        "rows": len(result.leaf_of_row),
        "leaves": len(result.leaves),
        "nodes": len(result.nodes),
        "seconds": 0,
        "files": {name: _digest(folder, name) for name in sorted(p.name for p in folder.iterdir())},
    }
    (folder / "delivery.json").write_bytes(canonical(header))


def _digest(folder: Path, name: str) -> str:
    """SHA-256 of a file, or of a folder of parts (spec §8.3)."""
    path = folder / name
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    whole = b""
    for part in sorted(each for each in path.iterdir() if each.suffix == ".parquet"):
        written = part.name.encode()
        digest = hashlib.sha256(part.read_bytes()).digest()
        whole += struct.pack("<Q", len(written)) + written + digest
    return hashlib.sha256(whole).hexdigest()
