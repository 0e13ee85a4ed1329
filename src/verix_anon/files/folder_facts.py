"""Read facts, first records, header or contract of a submission or delivery, without judging it.

Nothing here is a secret, and none of it has been verified.
"""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.errors import MalformedDeliveryError, TableError
from verix_anon.files import deliveries, submissions
from verix_anon.files.hostile.parquet_reader import Expected
from verix_anon.files.job_folder import (
    CONTRACT,
    DELIVERY_HEADER,
    LEAVES,
    NODES,
    RECORDS,
    SUBMISSION,
    SUBMISSION_HEADER,
)
from verix_anon.files.store import FilePath, Folder, open_folder, path_text
from verix_anon.protocol.contract import Column, Contract
from verix_anon.protocol.messages import Header

Facts = dict[str, object]


def inspect_folder(path: FilePath) -> Facts:
    """Return facts about the submission or delivery in a folder."""
    folder = open_folder(path, TableError)
    if folder.has(DELIVERY_HEADER):
        return _delivery(folder.failing(MalformedDeliveryError))
    if folder.has(SUBMISSION_HEADER):
        return _submission(folder)
    if folder.is_folder(SUBMISSION):
        return _submission(folder.folder(SUBMISSION))
    raise TableError(
        f"{folder.path} is neither a delivery ({DELIVERY_HEADER}) nor a submission"
        f" ({SUBMISSION_HEADER})"
    )


def _submission(folder: Folder) -> Facts:
    submission = submissions.read_submission(folder.path)
    contract, records = submission.contract, submission.records
    return {
        "kind": "submission",
        "submission_id": contract.submission_id,
        "contract": contract.digest.hex(),
        "submission": submission.digest().hex(),
        "rows": records.n_rows,
        "k": contract.k,
        "min_leaf": contract.min_leaf,
        "max_depth": contract.max_depth,
        "commitment": contract.commitment.value,
        "columns": {column.name: _describe(column) for column in contract.columns},
        "bytes": _sizes(folder, [SUBMISSION_HEADER, CONTRACT, *folder.parts(RECORDS)]),
    }


def _delivery(folder: Folder) -> Facts:
    header = read_header(folder.path)
    names = [DELIVERY_HEADER, LEAVES, NODES, *folder.parts(RECORDS)]
    return {
        "kind": "delivery",
        "root": header.root.hex(),
        "contract": header.contract.hex(),
        "submission": header.submission.hex(),
        "rows": header.rows,
        "leaves": header.leaves,
        "nodes": header.nodes,
        "engine": header.engine,
        "version": header.version,
        "seconds": header.seconds,
        "bytes": _sizes(folder, names),
    }


def _describe(column: Column) -> str:
    if column.categories is not None:
        detail = f", {len(column.categories):,} categories"
    else:
        detail = f" in {column.unit}" if column.unit is not None else ""
    return f"{column.role}, {column.kind}{detail}"


def _sizes(folder: Folder, names: list[str]) -> Facts:
    sizes = {name: folder.size(name) for name in names}
    return {**sizes, "all": sum(sizes.values())}


GLIMPSED = 5


class Glimpse(NamedTuple):
    """The first records that the provider gets."""

    n_rows: int
    names: list[str]
    rows: list[list[str]]


def glimpse(submission: Path) -> Glimpse:
    """Read the first records of a submission as they are sent, and no more of the file."""
    try:
        with pq.ParquetFile(submission / RECORDS) as file:
            batch = next(file.iter_batches(batch_size=GLIMPSED), None)
            n_rows = file.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"the submission {submission} cannot be read ({error})") from None
    if batch is None:
        return Glimpse(n_rows, [], [])
    rows = [[_shown(value) for value in row.values()] for row in batch.to_pylist()]
    return Glimpse(n_rows, batch.schema.names, rows)


def _shown(value: object) -> str:
    return f"{value[:4].hex()}…" if isinstance(value, bytes) else str(value)


def most_bytes(contract: Contract, *, n_rows: int, n_parts: int = 0) -> dict[str, int]:
    """Return how large each file of a delivery may be; parts of the records share one limit."""
    n_leaves = n_rows // contract.min_leaf
    target = {} if contract.target is None else deliveries.TARGET
    return {
        DELIVERY_HEADER: deliveries.MAX_HEADER_BYTES,
        LEAVES: deliveries.leaf_file(len(contract.quasi)).bytes_for(n_leaves),
        NODES: deliveries.NODE.bytes_for(2 * n_leaves - 1),
        RECORDS: Expected(deliveries.COLUMNS | target, parts=n_parts).bytes_for(n_rows),
    }


def read_header(path: FilePath) -> Header:
    """Read the header of a delivery, delivery.json, and nothing else."""
    folder = open_folder(path, MalformedDeliveryError)
    data = folder.read(DELIVERY_HEADER, limit=deliveries.MAX_HEADER_BYTES)
    return deliveries.parse_header(data)[0]


def read_contract(path: FilePath) -> Contract:
    """Read a contract: contract.json itself, or the one in a submission's folder.

    Raises:
        ContractError: It is not a contract.
        TableError: There is no such file.
    """
    place, slash, name = path_text(path).rpartition("/")
    if not name.endswith(".json"):
        return submissions.open_submission(path).contract
    folder = open_folder(place + slash or ".", TableError)
    return submissions.parse_contract(folder.read(name, limit=submissions.MAX_CONTRACT_BYTES))
