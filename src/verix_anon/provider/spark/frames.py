"""Records between Spark's tables, Arrow's and ours.

In Spark a submission's columns have names of our own: `row`, `tracker`, `q0`, `q1` and so on in
contract order, and `target` where it was sent.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.errors import TableError
from verix_anon.files.hostile.reader import Array
from verix_anon.protocol.contract import Column, Contract, Role
from verix_anon.protocol.table import TRACKER_SIZE, Records
from verix_anon.provider.spark.keys import keys_of

__all__ = ["ARROW", "fields_of", "keys_in", "labels_in", "numbers", "records_in", "schema"]

ARROW = {
    "long": pa.int64(),
    "binary": pa.binary(),
    "int": pa.int32(),
    "short": pa.int16(),
    "double": pa.float64(),
}
"""Spark's types, as Arrow has them."""


def _type(column: Column) -> str:
    if column.role is Role.TARGET:
        return "short"
    return "double" if column.n_values is None else "int"


def fields_of(contract: Contract) -> list[tuple[str, str]]:
    """The columns of a submission's records by our own names, and Spark's types."""
    numbers = iter(range(len(contract.quasi)))
    return [
        ("row", "long"),
        ("tracker", "binary"),
        *(
            ("target" if column.role is Role.TARGET else f"q{next(numbers)}", _type(column))
            for column in contract.columns
        ),
    ]


def numbers(table: pa.Table | pa.RecordBatch, name: str) -> Array:
    """A column of numbers; one without a value is the submission's fault."""
    column = table.column(name)
    if column.null_count:
        raise TableError("a record has no value in one of the columns")
    found: Array = np.asarray(column)
    return found


def _trackers(table: pa.Table) -> Bytes:
    column = table.column("tracker")
    if column.null_count:
        raise TableError("a record has no tracker")
    found = np.empty((table.num_rows, TRACKER_SIZE), np.uint8)
    at = 0
    for chunk in column.chunks:
        _, offsets, data = chunk.buffers()
        ends = np.frombuffer(offsets, np.int32)[chunk.offset :][: len(chunk) + 1]
        if (np.diff(ends) != TRACKER_SIZE).any():
            raise TableError("a tracker does not have 32 bytes")
        flat = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
        found[at : at + len(chunk)] = flat.reshape(-1, TRACKER_SIZE)
        at += len(chunk)
    return found


def _values(column: Column, table: pa.Table | pa.RecordBatch, name: str) -> Floats:
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else; a signalling NaN would warn.
    with np.errstate(invalid="ignore"):
        return numbers(table, name).astype(np.float64) + 0.0


def records_in(contract: Contract, table: pa.Table) -> tuple[Ints, Records]:
    """The records of a table and their rows, in ascending row."""
    row = numbers(table, "row").astype(np.int64)
    order = np.argsort(row, kind="stable")
    values = np.empty((len(contract.quasi), row.size))
    for j, column in enumerate(contract.quasi):
        values[j] = _values(column, table, f"q{j}")[order]
    tracker, target = _trackers(table)[order], labels_in(contract, table)[order]
    return row[order], Records(tracker=tracker, values=values, target=target)


def labels_in(contract: Contract, table: pa.Table | pa.RecordBatch) -> Bytes:
    """The labels, 0 throughout where none were sent."""
    if contract.target is None:
        return np.zeros(table.num_rows, np.uint8)
    labels = numbers(table, "target")
    if labels.size and not 0 <= labels.min() <= labels.max() <= 1:
        raise TableError("the target has a value other than 0 and 1")
    return labels.astype(np.uint8)


def keys_in(contract: Contract, batch: pa.RecordBatch) -> Ints:
    """The keys of some records, (n_records, n_quasi)."""
    keys = np.empty((batch.num_rows, len(contract.quasi)), np.int64)
    for j, column in enumerate(contract.quasi):
        keys[:, j] = keys_of(column, _values(column, batch, f"q{j}"))
    return keys


def schema(fields: Iterable[tuple[str, str]]) -> str:
    """Fields as Spark reads them."""
    return ", ".join(f"{name} {kind}" for name, kind in fields)
