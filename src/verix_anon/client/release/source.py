"""The owner's table, checked to be the one that was prepared, and read once for the release."""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.client.manifest import Manifest
from verix_anon.client.release import privacy
from verix_anon.client.release.present import Form, Presentation
from verix_anon.client.release.privacy import Attribute
from verix_anon.client.table.columns import Columns, arrow_columns, columns_of
from verix_anon.client.table.digest import column_digest, digest_over, table_digest
from verix_anon.client.table.encode import Encoded, encode_quasi
from verix_anon.client.table.person import RECORD, person_column
from verix_anon.client.table.roles import Declared, Missing, TableRole, unknown_column
from verix_anon.client.table.task import Task
from verix_anon.errors import ContractError, TableError
from verix_anon.files.scratch import Kept, Scratch
from verix_anon.machine import available_cores, give_back
from verix_anon.protocol.contract import Column

__all__ = ["ATTRIBUTES", "Source", "prepared_columns", "read_source"]

ATTRIBUTES = (TableRole.TARGET, TableRole.KEPT, TableRole.SENSITIVE)
"""Whose columns are published as they are."""
MOST_HELD = 1 << 30
"""Bytes of the values of quasi-identifiers: they are needed twice, and classes in between."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The owner's table, read once: what was sent of it, what is published as it is, and who."""

    types: Mapping[str, pa.DataType]
    """Of every column."""
    quasi: Sequence[Column]
    values: list[Floats | Kept]
    """Of each quasi-identifier; NaN where one is missing and to be marked."""
    n_rows: int
    forms: Mapping[str, Form]
    person: str | None
    """The column that tells people apart, None if each record is a person."""
    person_of_row: Ints | None
    attributes: Sequence[Attribute]
    """The target and the columns that were never sent."""
    kept: Mapping[str, pa.Array]
    """The columns of `attributes` themselves."""

    @classmethod
    def of(
        cls,
        arrays: Mapping[str, pa.Array],
        encoded: Encoded,
        declared: Declared,
        ordered: Iterable[str],
        wanted: Presentation,
    ) -> "Source":
        """What was encoded of a table in memory; what was missing is marked in it, if so said."""
        person = person_column(arrays, encoded.roles, declared.person)
        types = {name: array.type for name, array in arrays.items()}
        forms = wanted.chosen(encoded.quasi, _ordered(types, ordered), encoded.hierarchies)
        for column, of_column in zip(encoded.quasi, encoded.values, strict=True):
            if column.name in encoded.absent:
                _mark(of_column, encoded.absent[column.name], declared)
        kept = {name: a for name, a in arrays.items() if encoded.roles[name] in ATTRIBUTES}
        task = encoded.labels.task
        return cls(
            types=types,
            quasi=encoded.quasi,
            values=list(encoded.values),
            n_rows=encoded.values.shape[1],
            forms=forms,
            person=person,
            person_of_row=None if person is None else privacy.person_numbers(arrays[person]),
            attributes=[_attribute(n, a, encoded.roles[n], task) for n, a in kept.items()],
            kept=kept,
        )

    def of_quasi(self, j: int, *, last: bool = False) -> Floats:
        """The values of a quasi-identifier; the `last` time they end with the caller."""
        held = self.values[j]
        if last:
            self.values[j] = np.empty(0)
        return held.read() if isinstance(held, Kept) else held


def prepared_columns(table: object, manifest: Manifest) -> dict[str, pa.Array]:
    """The columns of the very table that was prepared, each in one piece."""
    arrays = arrow_columns(table)
    if not hmac.compare_digest(table_digest(pa.table(arrays)), manifest.table):
        raise _another()
    return arrays


def _another() -> TableError:
    return TableError(
        "the table is not the one that was prepared: its names, order, types or values differ"
    )


def read_source(
    table: object, manifest: Manifest, person: str | None, wanted: Presentation
) -> Source:
    """Check the table, and encode it as it was encoded to be sent; a column at a time."""
    columns = columns_of(table)
    if {*columns} != {*manifest.roles}:
        raise _another()
    declared = replace(_declared(manifest), person=person or manifest.person)
    is_large = 8 * columns.n_rows * len(manifest.quasi) > MOST_HELD
    reading = _Reading(
        columns=columns,
        declared=declared,
        roles=declared.roles(columns.names),
        task=manifest.task,
        scratch=Scratch() if is_large else None,
    )
    with ThreadPoolExecutor(available_cores()) as pool:
        found = list(pool.map(reading.column, columns))
    digest = digest_over([each.digest for each in found], columns.n_rows)
    if not hmac.compare_digest(digest, manifest.table):
        raise _another()
    give_back()
    return reading.source(found, manifest, wanted)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Column:
    """What is left of a column that was read."""

    name: str
    digest: bytes
    type: pa.DataType
    wrong: TableError | None = None
    """Why it cannot be encoded, which matters only if the table is the one that was prepared."""
    quasi: Column | None = None
    values: Floats | Kept | None = None
    attribute: Attribute | None = None
    kept: pa.Array | None = None
    people: Ints | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Reading:
    """How the columns of a table are read, each by itself and but once."""

    columns: Columns
    declared: Declared
    roles: Mapping[str, TableRole]
    task: Task
    scratch: Scratch | None
    """Where values are kept that are too many to hold beside classes."""

    def column(self, name: str) -> _Column:
        """What is needed of one column."""
        array, role = self.columns[name], self.roles[name]
        found = _Column(name=name, digest=column_digest(name, array), type=array.type)
        try:
            if role is TableRole.QUASI:
                quasi, values = self._quasi(name, array)
                found = replace(found, quasi=quasi, values=values)
            elif role in ATTRIBUTES:
                attribute = _attribute(name, array, role, self.task)
                found = replace(found, attribute=attribute, kept=array)
            return replace(found, people=self._people(name, array))
        except (ContractError, TableError) as error:
            return replace(found, wrong=TableError(str(error)))

    def _quasi(self, name: str, array: pa.Array) -> tuple[Column, Floats | Kept]:
        values = np.empty(len(array))
        column, is_missing = encode_quasi(name, array, self.declared, values)
        _mark(values, is_missing, self.declared)
        return column, values if self.scratch is None else self.scratch.put(values)

    def _people(self, name: str, array: pa.Array) -> Ints | None:
        if self.declared.person is None:
            # Raises if the column is an identifier that repeats.
            person_column({name: array}, self.roles, None)
        return privacy.person_numbers(array) if name == self.declared.person else None

    def source(self, found: Sequence[_Column], manifest: Manifest, wanted: Presentation) -> Source:
        """All of it, if all could be read."""
        for wrong in (each.wrong for each in found if each.wrong is not None):
            raise wrong
        quasi = tuple(each.quasi for each in found if each.quasi is not None)
        if quasi != manifest.quasi:
            raise TableError("the manifest's columns do not fit the table")
        types = {each.name: each.type for each in found}
        hierarchies = {
            c.name: self.declared.hierarchy(c.name).only(c.categories or ())
            for c in quasi
            if c.name in self.declared.hierarchies
        }
        said = self.declared.person
        if said not in (None, RECORD, *types):
            raise unknown_column(str(said), list(types))
        return Source(
            types=types,
            quasi=quasi,
            values=[each.values for each in found if each.values is not None],
            n_rows=self.columns.n_rows,
            forms=wanted.chosen(quasi, _ordered(types, manifest.ordered), hierarchies),
            person=None if said == RECORD else said,
            person_of_row=next((e.people for e in found if e.people is not None), None),
            attributes=[each.attribute for each in found if each.attribute is not None],
            kept={each.name: each.kept for each in found if each.kept is not None},
        )


def _mark(values: Floats, is_missing: Flags, declared: Declared) -> None:
    if declared.missing == Missing.MARK:
        values[is_missing] = np.nan


def _ordered(types: Mapping[str, pa.DataType], declared: Iterable[str]) -> set[str]:
    """The columns whose categories have an order of the owner's, declared or of an ordered type."""
    return {name for name, t in types.items() if pa.types.is_dictionary(t) and t.ordered} | {
        *declared
    }


def _declared(manifest: Manifest) -> Declared:
    """What the owner declared, as far as it tells how the table is encoded."""
    with_role = {
        role: [name for name, given in manifest.roles.items() if given == role]
        for role in TableRole
    }
    return Declared(
        target=manifest.target,
        quasi=with_role[TableRole.QUASI],
        identifier=with_role[TableRole.IDENTIFIER],
        kept=with_role[TableRole.KEPT],
        sensitive=with_role[TableRole.SENSITIVE],
        kinds={column.name: column.kind for column in manifest.quasi},
        orders={
            c.name: c.categories
            for c in manifest.quasi
            if c.categories is not None and c.name not in manifest.hierarchies
        },
        hierarchies=manifest.hierarchies,
        missing=manifest.missing,
        task=manifest.task,
    )


def _attribute(name: str, array: pa.Array, role: TableRole, task: Task) -> Attribute:
    """A column that is published as it is; classes of a target have no order."""
    column = privacy.attribute(name, role, array)
    is_quantity = role is not TableRole.TARGET or task is Task.QUANTITY
    return replace(column, is_ordered=column.is_ordered and is_quantity)
