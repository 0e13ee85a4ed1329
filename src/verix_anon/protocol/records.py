"""Records in the form that both parties compute on, and their canonical bytes (spec §2, §6).

The quasi-identifiers are one matrix of binary64 with a row for each column, so that an engine reads
a column as one run of memory. A category is stored as its position, which a float holds exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verix_anon.arrays import Bytes, Floats, Ids
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Contract, Role

TRACKER_SIZE = 32
# Kernels keep a row number, a label bit and more in 32 bits.
MAX_ROWS = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Records:
    """Trackers, quasi-identifiers and target of every record, by row."""

    tracker: Bytes
    """(n_rows, 32)"""
    values: Floats
    """(n_quasi, n_rows), in contract order"""
    target: Bytes
    """(n_rows,), 0 or 1; all 0 if no target is sent"""

    def __post_init__(self) -> None:
        n_rows = self.target.shape[0]
        assert self.tracker.shape == (n_rows, TRACKER_SIZE)
        assert self.tracker.dtype == np.uint8
        assert self.values.ndim == 2
        assert self.values.shape[1] == n_rows
        assert self.values.dtype == np.float64
        assert self.target.dtype == np.uint8
        for array in (self.tracker, self.values, self.target):
            array.setflags(write=False)

    @property
    def n_rows(self) -> int:
        """How many records there are."""
        return int(self.target.shape[0])

    @property
    def nbytes(self) -> int:
        """How much memory the records take."""
        return self.tracker.nbytes + self.values.nbytes + self.target.nbytes

    def part(self, rows: slice) -> "Records":
        """Return some of the records, over the same memory."""
        return Records(
            tracker=self.tracker[rows], values=self.values[:, rows], target=self.target[rows]
        )

    def column(self, number: int) -> Floats:
        """All values of a quasi-identifier."""
        values: Floats = self.values[number]
        return values

    def trackers(self, first: int, end: int) -> Bytes:
        """Return the trackers of some rows."""
        return self.tracker[first:end]

    def check(self, contract: Contract) -> None:
        """Raise TableError unless these records fit the contract."""
        if self.values.shape[0] != len(contract.quasi):
            raise TableError(
                f"the records have {self.values.shape[0]} quasi-identifiers,"
                f" the contract {len(contract.quasi)}"
            )
        check_count(contract, self.n_rows)
        self.check_values(contract)

    def check_values(self, contract: Contract) -> None:
        """Raise TableError unless every value is one that the contract allows."""
        check_target(contract, self.target)
        for column, values in zip(contract.quasi, self.values, strict=True):
            check_values(column, values)


def check_count(contract: Contract, n_rows: int) -> None:
    """Raise TableError unless a submission may have this many records."""
    if not contract.min_leaf <= n_rows <= MAX_ROWS:
        raise TableError(
            f"a submission needs at least min_leaf = {contract.min_leaf:,} records"
            f" and at most {MAX_ROWS:,}, not {n_rows:,}"
        )


def check_target(contract: Contract, target: Bytes) -> None:
    """Raise TableError unless every target is 0 or 1, or all are 0 if none is sent."""
    if target.max() > (contract.target is not None):
        raise TableError("the target has a value other than 0 and 1, or none is sent")


def check_values(column: Column, values: Floats | Ids) -> None:
    """Raise TableError unless the contract allows every value of a quasi-identifier."""
    # The bits of -0.0 are those of the least 64-bit integer.
    is_float = values.dtype == np.float64
    if is_float and values.view(np.int64).min() == np.iinfo(np.int64).min:
        raise TableError(f"column {column.name!r} has -0.0; write it as 0.0")
    # A sum is finite only if every term is. That takes one pass and no mask. Large finite values
    # may overflow the sum, so look at every value only in that case.
    with np.errstate(all="ignore"):
        suspicious = is_float and not np.isfinite(values.sum())
    if suspicious and not np.isfinite(values).all():
        raise TableError(f"column {column.name!r} has a value that is not finite")
    if (n := column.n_values) is not None and (
        values.min() < 0 or values.max() >= n or (is_float and (values != np.floor(values)).any())
    ):
        raise TableError(f"column {column.name!r} has a position outside its {n} values")


def wire_type(column: Column) -> np.dtype[np.generic]:
    """Return how a value of the column is written: little-endian f64 or i32; u8 for the target."""
    if column.role is Role.TARGET:
        return np.dtype("u1")
    return np.dtype("<f8" if column.n_values is None else "<i4")


def wire_columns(
    contract: Contract, records: Records, rows: slice
) -> Iterator[npt.NDArray[np.generic]]:
    """Return the sent columns of some rows in contract order, as they are written and hashed."""
    quasi = iter(records.values)
    for column in contract.columns:
        source = records.target if column.role is Role.TARGET else next(quasi)
        yield np.ascontiguousarray(source[rows], dtype=wire_type(column))
