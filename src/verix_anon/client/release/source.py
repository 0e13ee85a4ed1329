"""The owner's table, checked to be the one that was prepared, and read once for the release."""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Floats, Ints
from verix_anon.client.manifest import Manifest
from verix_anon.client.release import privacy
from verix_anon.client.release.present import Form, Presentation
from verix_anon.client.release.privacy import Attribute
from verix_anon.client.table.columns import arrow_columns
from verix_anon.client.table.digest import table_digest
from verix_anon.client.table.encode import Encoded, encode
from verix_anon.client.table.person import person_column
from verix_anon.client.table.roles import Declared, Missing, TableRole
from verix_anon.client.table.task import Task
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column

__all__ = ["Source", "prepared_columns", "read_source"]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The owner's table, read once: its columns, what was sent of them, and the people."""

    arrays: Mapping[str, pa.Array]
    quasi: Sequence[Column]
    values: Floats
    """Of quasi-identifiers; NaN where one is missing and to be marked."""
    forms: Mapping[str, Form]
    person: str | None
    """The column that tells people apart, None if each record is a person."""
    person_of_row: Ints | None
    attributes: Sequence[Attribute]
    """The target and the columns that were never sent."""

    @classmethod
    def of(
        cls,
        arrays: Mapping[str, pa.Array],
        encoded: Encoded,
        declared: Declared,
        ordered: Iterable[str],
        wanted: Presentation,
    ) -> "Source":
        """What was encoded of the table; what was missing is marked in it, if it is to be."""
        person = person_column(arrays, encoded.roles, declared.person)
        chosen = wanted.chosen(encoded.quasi, _ordered(arrays, ordered), encoded.hierarchies)
        people = None if person is None else privacy.person_numbers(arrays[person])
        if declared.missing == Missing.MARK:
            for column, of_column in zip(encoded.quasi, encoded.values, strict=True):
                if column.name in encoded.absent:
                    of_column[encoded.absent[column.name]] = np.nan
        attributes = _attributes(arrays, encoded)
        return cls(arrays, encoded.quasi, encoded.values, chosen, person, people, attributes)

    @property
    def n_rows(self) -> int:
        """How many records the table has."""
        return int(self.values.shape[1])

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The type of each column."""
        return {name: array.type for name, array in self.arrays.items()}


def prepared_columns(table: object, manifest: Manifest) -> dict[str, pa.Array]:
    """The columns of the very table that was prepared, each in one piece."""
    arrays = arrow_columns(table)
    if not hmac.compare_digest(table_digest(pa.table(arrays)), manifest.table):
        raise TableError(
            "the table is not the one that was prepared: its names, order, types or values differ"
        )
    return arrays


def read_source(
    table: object, manifest: Manifest, person: str | None, wanted: Presentation
) -> Source:
    """Check the table, and encode it as it was encoded to be sent."""
    arrays = prepared_columns(table, manifest)
    table = pa.table(arrays)
    declared = replace(_declared(manifest), person=person or manifest.person)
    encoded = encode(table, declared)
    if encoded.quasi != manifest.quasi:
        raise TableError("the manifest's columns do not fit the table")
    return Source.of(arrays, encoded, declared, manifest.ordered, wanted)


def _ordered(arrays: Mapping[str, pa.Array], declared: Iterable[str]) -> set[str]:
    """The columns whose categories have an order of the owner's, declared or of an ordered type."""
    types = {name: array.type for name, array in arrays.items()}
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


def _attributes(arrays: Mapping[str, pa.Array], encoded: Encoded) -> list[Attribute]:
    """The target and the columns that were never sent; classes of a target have no order."""
    found = []
    for name, array in arrays.items():
        role = encoded.roles[name]
        if role in (TableRole.TARGET, TableRole.KEPT, TableRole.SENSITIVE):
            column = privacy.attribute(name, role, array)
            is_quantity = role != TableRole.TARGET or encoded.labels.task is Task.QUANTITY
            found.append(replace(column, is_ordered=column.is_ordered and is_quantity))
    return found
