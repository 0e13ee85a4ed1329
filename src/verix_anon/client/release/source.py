"""The owner's table as it is released: checked to be the one prepared, with forms for its cells."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace

import pyarrow as pa

from verix_anon.client.manifest import Manifest
from verix_anon.client.release import privacy
from verix_anon.client.release.privacy import Attribute
from verix_anon.client.release.representation import ColumnForm, Presentation
from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.table.owner_table import OwnerTable, another_table, read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.task import TableRole, Task
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.scratch import Scratch
from verix_anon.machine import available_cores, give_back

MOST_HELD = 1 << 30
"""Bytes of the values of quasi-identifiers: they are needed twice, and classes in between."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Source(OwnerTable):
    """The owner's table, with what the release needs to know about its columns."""

    forms: Mapping[str, ColumnForm]
    attributes: Sequence[Attribute]
    """The target and the columns that were never sent."""

    @classmethod
    def of(
        cls, table: OwnerTable, task: Task, ordered: Iterable[str], wanted: Presentation
    ) -> "Source":
        """Take a table that was read to be published; categories of `ordered` have an order."""
        of_types = {n for n, t in table.types.items() if pa.types.is_dictionary(t) and t.ordered}

        def attribute(name: str) -> Attribute:
            role = table.roles[name]
            column = privacy.attribute(name, role, table.kept[name])
            # Classes of a target have no order.
            is_quantity = role is not TableRole.TARGET or task is Task.QUANTITY
            return replace(column, is_ordered=column.is_ordered and is_quantity)

        with ThreadPoolExecutor(available_cores()) as pool:
            return cls(
                **{each.name: getattr(table, each.name) for each in fields(OwnerTable)},
                forms=wanted.chosen(table.quasi, of_types.union(ordered), table.hierarchies),
                attributes=list(pool.map(attribute, table.kept)),
            )


def read_source(
    table: object, manifest: Manifest, person: str | None, wanted: Presentation
) -> Source:
    """Check that the table is the one that was prepared, and encode it as it was then."""
    columns = columns_of(table)
    if {*columns} != {*manifest.roles}:
        raise another_table()
    is_large = 8 * columns.n_rows * len(manifest.quasi) > MOST_HELD
    read = read_owner_table(
        columns,
        replace(_declared(manifest), person=person or manifest.person),
        to_send=False,
        to_publish=True,
        scratch=Scratch() if is_large else None,
        prepared=manifest.table,
    )
    if read.quasi != manifest.quasi:
        raise TableError("the manifest's columns do not fit the table")
    give_back()
    return Source.of(read, manifest.task, manifest.ordered, wanted)


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
        hierarchies={
            name: Hierarchy.from_json(Fields(kept, f"the hierarchy of {name!r}", TableError))
            for name, kept in manifest.hierarchies.items()
        },
        missing=manifest.missing,
        task=manifest.task,
    )
