"""A submission as a folder: contract.json and records.parquet (spec §8)."""

import os
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Floats
from verix_anon.errors import ContractError, TableError
from verix_anon.files.hostile import reader as parquet
from verix_anon.files.store import Folder, open_folder, written_aside
from verix_anon.machine import check_memory
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.table import MAX_ROWS, Records, wire_columns, wire_type

__all__ = ["read_submission", "write_submission"]

MAX_CONTRACT_BYTES = 256 << 20


def write_submission(
    submission: Submission, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a submission's folder; it appears complete or not at all."""
    contract, records = submission.contract, submission.records
    everything = slice(0, records.n_rows)
    table = pa.Table.from_arrays(
        [
            pa.array(np.arange(records.n_rows)),
            parquet.trackers(records.tracker),
            *(pa.array(column) for column in wire_columns(contract, records, everything)),
        ],
        ["row", "tracker", *(column.name for column in contract.columns)],
    )
    encodings = {"row": "DELTA_BINARY_PACKED", "tracker": "PLAIN"}
    for column, values in zip(contract.quasi, records.values, strict=True):
        if column.n_values is None and _is_varied(values):
            encodings[column.name] = "BYTE_STREAM_SPLIT"
    with written_aside(path, overwrite=overwrite, folder=True) as folder:
        (folder / "contract.json").write_bytes(contract.to_bytes())
        parquet.write(folder / "records.parquet", table, encodings)


def _is_varied(values: Floats) -> bool:
    """Whether a column has too many values for a dictionary, judged by its first rows."""
    sample = values[:65536]
    return bool(np.unique(sample).size > sample.size // 8)


def read_submission(path: str | os.PathLike[str]) -> Submission:
    """Read a submission's folder.

    Raises:
        ContractError: contract.json is not a contract.
        TableError: a file is missing, or the records do not fit the contract.
    """
    folder = open_folder(path, TableError)
    contract = _read_contract(folder)
    expected = parquet.Expected(
        {
            "row": pa.int64(),
            "tracker": parquet.TRACKER,
            **{c.name: pa.from_numpy_dtype(wire_type(c)) for c in contract.columns},
        }
    )
    with ExitStack() as opened:
        readers = [
            parquet.Reader(part, opened.enter_context(folder.open(part)), expected, TableError)
            for part in folder.parts("records.parquet")
        ]
        n_rows = sum(reader.n_rows for reader in readers)
        if n_rows > MAX_ROWS:
            raise TableError(f"records.parquet has {n_rows} rows; {MAX_ROWS} is the most")
        check_memory(
            _needed_bytes(len(contract.quasi), n_rows),
            f"reading records.parquet ({n_rows:,} rows, {len(contract.quasi)} quasi-identifiers)",
            TableError,
        )
        try:
            records = _fill(contract, readers, n_rows)
        except MemoryError:
            raise TableError(f"records.parquet has {n_rows} rows, more than memory holds") from None
    try:
        return Submission(contract=contract, records=records)
    except TableError as error:
        raise TableError(f"records.parquet does not fit the contract: {error}") from None


def _needed_bytes(n_quasi: int, n_rows: int) -> int:
    """The records, and one group of rows as it is decoded, at the size we write them in."""
    return (8 * n_quasi + 33) * n_rows + 16 * n_quasi * min(n_rows, parquet.GROUP_ROWS)


def _read_contract(folder: Folder) -> Contract:
    data = folder.read("contract.json", limit=MAX_CONTRACT_BYTES)
    try:
        return Contract.from_bytes(data)
    except ContractError as error:
        raise ContractError(f"contract.json: {error}") from None


def _fill(contract: Contract, readers: list[parquet.Reader], n_rows: int) -> Records:
    """The records, copied group by group, so that only one group is held twice."""
    tracker = np.empty((n_rows, 32), np.uint8)
    values = np.empty((len(contract.quasi), n_rows))
    target = np.zeros(n_rows, np.uint8)
    names = [column.name for column in contract.quasi]
    at = 0
    for reader in readers:
        for group in reader.row_groups():
            rows = slice(at, at + len(group["row"]))
            if not np.array_equal(group["row"], np.arange(rows.start, rows.stop)):
                raise TableError(f"{reader.name}: column 'row' does not count from 0 upwards")
            tracker[rows] = group["tracker"]
            if contract.target is not None:
                target[rows] = group[contract.target.name]
            for name, column in zip(names, values, strict=True):
                # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
                with np.errstate(invalid="ignore"):
                    np.add(group[name], 0.0, out=column[rows])
            at = rows.stop
    return Records(tracker=tracker, values=values, target=target)
