"""A submission's records in a scratch file: written once and read back by column.

For whoever looks at one column after the other, such as the owner who verifies: what is in
memory at a time is a column for each thread.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from verix_anon.arrays import Bytes, Floats, Ids, Ints
from verix_anon.errors import TableError
from verix_anon.files.hashed import RECORDS
from verix_anon.files.hostile import reader as parquet
from verix_anon.files.scratch import Kept, Scratch
from verix_anon.machine import available_cores, give_back
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Column, Contract, Digest, Role
from verix_anon.protocol.table import check_count, check_target, check_values, wire_type

__all__ = ["Place", "SpilledRecords", "SpilledSubmission", "fitting", "spill"]

Place = tuple[parquet.Reader, int, slice | Ints]
"""A row group, and where its rows belong."""


@dataclass(frozen=True, slots=True, eq=False)
class SpilledRecords:
    """What `Records` are, but for the memory: each column as it is written, by its place."""

    tracker: Kept
    columns: tuple[Kept, ...]
    """The quasi-identifiers, in contract order"""
    target: Bytes

    @property
    def n_rows(self) -> int:
        """How many records there are."""
        return int(self.target.size)

    def column(self, number: int) -> Floats | Ids:
        """All values of a quasi-identifier."""
        return self.columns[number].read()

    def trackers(self, first: int, end: int) -> Bytes:
        """Those of some rows."""
        return self.tracker.read(first, end)


@dataclass(frozen=True, slots=True, eq=False)
class SpilledSubmission:
    """What was sent, of which nobody holds all at once."""

    contract: Contract
    records: SpilledRecords
    _digest: Digest

    def digest(self, *, threads: int | None = None) -> Digest:
        """What binds a delivery to this very submission."""
        return self._digest


def spill(contract: Contract, places: list[Place], n_rows: int) -> SpilledSubmission:
    """Write the records of these row groups to a scratch file, in ascending row.

    Raises:
        TableError: They do not fit the contract.
    """
    with fitting():
        check_count(contract, n_rows)
    scratch = Scratch()

    def keep(column: Column) -> Kept:
        values = _filled(places, column.name, np.empty(n_rows, wire_type(column)))
        if column.role is not Role.TARGET and column.n_values is None:
            # Adding 0.0 turns -0.0 into 0.0; a signalling NaN would warn.
            with np.errstate(invalid="ignore"):
                np.add(values, 0.0, out=values)
        with fitting():
            if column.role is Role.TARGET:
                check_target(contract, values)
            else:
                check_values(column, values)
        return scratch.put(values)

    tracker = scratch.put(_filled(places, "tracker", np.empty((n_rows, 32), np.uint8)))
    with ThreadPoolExecutor(min(2, available_cores())) as pool:
        kept = list(pool.map(keep, contract.columns))
    give_back()
    by_role = list(zip(contract.columns, kept, strict=True))
    target = next((k.read() for c, k in by_role if c.role is Role.TARGET), None)
    records = SpilledRecords(
        tracker,
        tuple(k for c, k in by_role if c.role is not Role.TARGET),
        np.zeros(n_rows, np.uint8) if target is None else target,
    )
    records.target.setflags(write=False)
    return SpilledSubmission(contract, records, _digest(contract, n_rows, [tracker, *kept]))


@contextmanager
def fitting() -> Iterator[None]:
    """Where records are held to the contract."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{RECORDS} does not fit the contract: {error}") from None


def _filled(places: list[Place], name: str, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
    for reader, group, where in places:
        out[where] = reader.read_group(group, [name])[name]
    return out


def _digest(contract: Contract, n_rows: int, columns: list[Kept]) -> Digest:
    """That of the submission: columns lie in the file as they are hashed."""

    def chunk(number: int) -> bytes:
        first = number * merkle.CHUNK_ROWS
        parts: Iterator[npt.NDArray[Any]] = (
            kept.read(first, first + merkle.CHUNK_ROWS) for kept in columns
        )
        return merkle.columns_digest(number, parts)

    with ThreadPoolExecutor(available_cores()) as pool:
        chunks = pool.map(chunk, range(-(-n_rows // merkle.CHUNK_ROWS)))
        return merkle.chunks_digest(contract, n_rows, chunks)
