"""Read the owner's table: each column once, for its digest and for what is needed, then let go.

This is the one reader of the owner's values. prepare() reads what is sent, release() what is
published, explore() both, and prove() the column that names people. Where the table must be the
one that was prepared, its digest decides before anything is said about its columns (spec §7, §12).

k counts people. Where an identifier repeats, a row is not a person, and the owner has to say which
column tells people apart.
"""

import hmac
import shlex
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.client.table.columns import Columns, columns_of, with_derived
from verix_anon.client.table.digest import column_digest, digest_over, plain_column
from verix_anon.client.table.encode import encode_quasi, encode_target
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.table.roles import ATTRIBUTES, SENT, Declared, Missing, unknown_column
from verix_anon.client.table.task import Labels, TableRole
from verix_anon.errors import ContractError, TableError
from verix_anon.files.scratch import Kept, Scratch
from verix_anon.machine import available_cores
from verix_anon.protocol.contract import Column, Digest, Kind, Role

RECORD = "record"
"""The word in place of a column's name, if each record is a person."""


def repeats(array: pa.Array) -> bool:
    """Whether a column has fewer values than records; missing ones are no one's."""
    present = plain_column(array).drop_null()
    return len(pc.unique(present)) < len(present)


def person_column(
    arrays: Mapping[str, pa.Array], roles: Mapping[str, str], said: str | None
) -> str | None:
    """The column that tells people apart, None if each record is a person.

    Raises:
        TableError: There is no such column; or nothing is said, and an identifier repeats.
    """
    if said == RECORD:
        return None
    if said is not None:
        if said not in arrays:
            raise unknown_column(said, list(arrays))
        return said
    for name in arrays:
        if roles.get(name) == TableRole.IDENTIFIER and repeats(array := arrays[name]):
            n_values, n_rows = len(pc.unique(plain_column(array).drop_null())), len(array)
            raise TableError(
                f"identifier {name!r} has {n_values:,} values in {n_rows:,} rows, so a person may"
                " have several rows, and a class of k rows may be one person: say who a person is,"
                f" person={name!r} (--person {shlex.quote(name)}), or person={RECORD!r} if each row"
                " is one"
            )
    return None


def person_numbers(array: pa.Array) -> Ints:
    """A number for every record's person; a record without one is a person of its own."""
    plain = plain_column(array)
    if pa.types.is_null(plain.type):
        return np.arange(len(plain))
    numbers = plain.dictionary_encode().indices
    if numbers.null_count:
        own = pa.array(np.arange(len(plain), 2 * len(plain)))
        numbers = pc.coalesce(numbers.cast(pa.int64()), own).dictionary_encode().indices
    found: Ints = numbers.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


T = TypeVar("T")


def read_columns(
    columns: Columns,
    use: Callable[[str, pa.Array], T],
    *,
    threads: int | None = None,
    prepared: Digest | None = None,
) -> tuple[list[T], Digest]:
    """Read each column once, and keep what `use` returns for it.

    Args:
        columns: The columns of the table.
        use: Called with the name and the values of each column, in several threads.
        threads: How many columns are read side by side; None: as many as there are cores.
        prepared: The digest of the table that this one must be. None: it may be any.

    Returns:
        What `use` returned, in table order, and the digest of the table.

    Raises:
        TableError: The table is not the one that was prepared, or `use` refuses a column.
    """

    def read(name: str) -> tuple[bytes, T | TableError]:
        made = columns.derived.get(name)
        # Only the owner's own columns count.
        own = columns.own(name) if made is None or made.source == name else None
        digest = b"" if own is None else column_digest(name, own)
        try:
            return digest, use(name, own if made is None else columns[name])
        except (ContractError, TableError) as error:
            # A name or a label that no contract can have is, here, a fault of the table.
            wrong = TableError(str(error))
        if prepared is None:
            raise wrong
        # It matters only if the table is the one that was prepared.
        return digest, wrong

    with ThreadPoolExecutor(threads or available_cores()) as pool:
        found = list(pool.map(read, columns))
    digest = digest_over([own for own, _ in found if own], columns.n_rows)
    if prepared is not None and not hmac.compare_digest(digest, prepared):
        raise another_table()
    kept = []
    for _, each in found:
        if isinstance(each, TableError):
            raise each
        kept.append(each)
    return kept, digest


def another_table() -> TableError:
    """The error for a table that is not the one that was prepared."""
    return TableError(
        "the table is not the one that was prepared: its names, order, types or values differ"
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OwnerTable:
    """What was read of the owner's table."""

    digest: Digest
    n_rows: int
    types: Mapping[str, pa.DataType]
    """Of every column, in table order."""
    roles: Mapping[str, TableRole]
    quasi: tuple[Column, ...]
    values: list[Floats | Kept]
    """Of each quasi-identifier; see `read_owner_table` for values that were missing."""
    n_missing: Mapping[str, int]
    """How many values each quasi-identifier lacked; those that lacked none are not named."""
    fill: Mapping[str, float]
    """The value that replaces missing ones, for each of these columns."""
    hierarchies: Mapping[str, Hierarchy]
    """Of quasi-identifiers that have one, for the categories that occur."""
    labels: Labels
    """Of the target, if it was read to be sent."""
    kept: Mapping[str, pa.Array]
    """The columns that are published as they are, if the table was read to be published."""
    person: str | None
    """The column that tells people apart; None if each record is a person."""
    person_of_row: Ints | None

    def of_quasi(self, j: int, *, last: bool = False) -> Floats:
        """The values of a quasi-identifier; the `last` time they end with the caller."""
        held = self.values[j]
        if last:
            self.values[j] = np.empty(0)
        return held.read() if isinstance(held, Kept) else held

    def imputed(self, j: int) -> Floats:
        """The same, with imputed values in place of those that are marked as missing."""
        values, name = self.of_quasi(j), self.quasi[j].name
        if name in self.fill:
            values = np.where(np.isnan(values), self.fill[name], values)
        return values

    @property
    def matrix(self) -> Floats:
        """A copy of all values, (n_quasi, n_rows)."""
        return np.array([self.of_quasi(j) for j in range(len(self.quasi))])

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that may be sent in table order, the target if it has two classes."""
        if not self.labels.is_binary:
            return self.quasi
        sent = [name for name, role in self.roles.items() if role in SENT]
        at = next(i for i, name in enumerate(sent) if self.roles[name] is TableRole.TARGET)
        kind, classes = Kind.CATEGORICAL, self.labels.classes
        target = Column(name=sent[at], role=Role.TARGET, kind=kind, categories=classes)
        return (*self.quasi[:at], target, *self.quasi[at:])

    @property
    def target(self) -> Bytes:
        """The labels of two classes as the rule `variance-reduction` counts them."""
        if not self.labels.is_binary:
            return np.zeros(self.n_rows, np.uint8)
        return self.labels.values.astype(np.uint8)


@dataclass(slots=True, eq=False)
class _Read:
    """What is left of a column that was read."""

    type: pa.DataType
    quasi: Column | None = None
    values: Floats | Kept | None = None
    n_missing: int = 0
    fill: float = np.nan
    labels: Labels | None = None
    kept: pa.Array | None = None
    people: Ints | None = None


def read_owner_table(
    table: object,
    declared: Declared,
    *,
    to_send: bool = True,
    to_publish: bool = False,
    threads: int | None = None,
    scratch: Scratch | None = None,
    prepared: Digest | None = None,
) -> OwnerTable:
    """Read and encode the columns of a table, as their roles say.

    Args:
        table: A pandas, polars or pyarrow table, or its columns.
        declared: The role of every column, and what to read differently than by default.
        to_send: Whether the labels of the target are wanted.
        to_publish: Whether people are wanted, and the columns that are published as they are.
            Missing values are then NaN, if they are to be marked. Otherwise they are imputed.
        threads: How many columns are read side by side; None: as many as there are cores.
        scratch: Where to put the values of quasi-identifiers, if they are too many to hold.
        prepared: The digest of the table that this one must be. None: it may be any.

    Raises:
        TableError: The table does not fit what was declared; the message says what to do. Or it
            is not the one that was prepared.
    """
    columns = with_derived(columns_of(table), declared.made)
    roles = declared.roles(columns.names)
    if columns.n_rows == 0 and prepared is None:
        raise TableError("the table has no rows")
    is_marked = to_publish and declared.missing == Missing.MARK

    def read(name: str, array: pa.Array) -> _Read:
        found, role = _Read(array.type), roles[name]
        if role is TableRole.QUASI:
            encoded = encode_quasi(name, array, declared)
            found.quasi, found.n_missing, found.fill = encoded.column, *encoded.missing
            values = encoded.values
            if found.n_missing and not is_marked:
                values[np.isnan(values)] = found.fill
            found.values = values if scratch is None else scratch.put(values)
        if role is TableRole.TARGET and to_send:
            found.labels = encode_target(name, array, declared)
        if to_publish:
            found.kept = array if role in ATTRIBUTES else None
            if declared.person is None:
                # Raises if the column is an identifier that repeats.
                person_column({name: array}, declared.naming(roles), None)
            elif declared.person == name:
                found.people = person_numbers(array)
        return found

    read_of, digest = read_columns(columns, read, threads=threads, prepared=prepared)
    found = dict(zip(columns, read_of, strict=True))
    if to_publish and declared.person not in (None, RECORD, *columns):
        raise unknown_column(str(declared.person), columns.names)
    quasi = tuple(each.quasi for each in read_of if each.quasi is not None)
    labels = (each.labels for each in read_of if each.labels is not None)
    return OwnerTable(
        digest=digest,
        n_rows=columns.n_rows,
        types={name: each.type for name, each in found.items()},
        roles=roles,
        quasi=quasi,
        values=[each.values for each in read_of if each.values is not None],
        n_missing={name: each.n_missing for name, each in found.items() if each.n_missing},
        fill={name: each.fill for name, each in found.items() if each.n_missing},
        hierarchies={
            column.name: declared.hierarchy(column.name).only(column.categories or ())
            for column in quasi
            if column.name in declared.hierarchies
        },
        labels=next(labels, None) or Labels.none(columns.n_rows),
        kept={name: each.kept for name, each in found.items() if each.kept is not None},
        person=None if declared.person == RECORD else declared.person,
        person_of_row=next((each.people for each in read_of if each.people is not None), None),
    )
