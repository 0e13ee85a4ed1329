"""The owner's table as it is released: checked to be the one prepared, with forms for its cells."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.client.manifest import Manifest
from verix_anon.client.release import privacy
from verix_anon.client.release.cells import joined, write_cells
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.privacy import Attribute
from verix_anon.client.release.ranges import auto_widths, multiple_below, range_of
from verix_anon.client.release.representation import AUTO, BY_NAME, ColumnForm, Presentation, starts
from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.digest import plain_column
from verix_anon.client.table.encode import PER_DAY, decode, kind_of, moments, numbers
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.table.owner_table import OwnerTable, another_table, read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.task import TableRole, Task
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.scratch import Scratch
from verix_anon.machine import available_cores, give_back
from verix_anon.protocol.contract import Column, Kind, Unit

Array = TypeVar("Array", Floats, Ints)
Domain = tuple[Floats, Floats]
MOST_HELD = 1 << 30
"""Bytes of the values of quasi-identifiers: they are needed twice, and classes in between."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Source(OwnerTable):
    """The owner's table, with what the release needs to know about its columns."""

    forms: Mapping[str, ColumnForm]
    attributes: Sequence[Attribute]
    """The target and the columns that were never sent, as they are published."""
    changed: Mapping[str, Mapping[str, object]]
    """Which of them are not published as they are, and what was done to each."""
    rows: Ints | None = None
    """The owner's rows that are published; None if all are."""
    domains: Sequence[Domain] = ()
    """The domains in the whole table, if not all rows are published."""

    def of_quasi(self, j: int, *, last: bool = False) -> Floats:
        """The values of a quasi-identifier in the rows that are published."""
        values = OwnerTable.of_quasi(self, j, last=last)
        return values if self.rows is None else values[self.rows]

    def domain(self, j: int, values: Floats) -> Domain:
        """The least and the greatest value of a quasi-identifier; of categories their number."""
        if self.domains:
            return self.domains[j]
        if self.quasi[j].categories is None:
            return np.fmin.reduce(values, keepdims=True), np.fmax.reduce(values, keepdims=True)
        n_categories = privacy.distinct(values[~np.isnan(values)].astype(np.int64)).size
        return np.zeros(1), np.array([n_categories - 1.0])

    def only(self, rows: Ints) -> "Source":
        """Return the table with only these rows."""
        people = self.person_of_row

        def left(column: Attribute) -> Attribute:
            # Values that no one has any more count for nothing.
            codes = np.unique(column.codes[rows], return_inverse=True)[1].astype(np.int64)
            return replace(column, codes=codes)

        return replace(
            self,
            n_rows=rows.size,
            kept={name: array.take(pa.array(rows)) for name, array in self.kept.items()},
            attributes=[left(column) for column in self.attributes],
            person_of_row=None if people is None else people[rows],
            rows=rows,
            domains=[self.domain(j, self.of_quasi(j)) for j in range(len(self.quasi))],
        )

    @classmethod
    def of(
        cls, table: OwnerTable, task: Task, ordered: Iterable[str], wanted: Presentation
    ) -> "Source":
        """Take a table that was read to be published; categories of `ordered` have an order."""
        of_types = {n for n, t in table.types.items() if pa.types.is_dictionary(t) and t.ordered}
        wanted.check_names(table.roles)
        kept = {name: array for name, array in table.kept.items() if name not in wanted.drop}
        coarse = {n: _Coarse.of(n, a) for n, a in kept.items() if wanted.remedies(n)}
        others = [each.column for each in coarse.values()]
        forms = wanted.chosen(table.quasi, of_types.union(ordered), table.hierarchies, others)
        measured = dict(kept)
        for name, each in coarse.items():
            kept[name], measured[name] = each.published(wanted)

        def attribute(name: str) -> Attribute:
            role = table.roles[name]
            column = privacy.attribute(name, role, measured[name])
            # Classes of a target have no order.
            is_quantity = role is not TableRole.TARGET or task is Task.QUANTITY
            return replace(column, is_ordered=column.is_ordered and is_quantity)

        with ThreadPoolExecutor(available_cores()) as pool:
            return cls(
                **{each.name: getattr(table, each.name) for each in fields(OwnerTable)}
                | {"kept": kept},
                forms=forms,
                attributes=list(pool.map(attribute, kept)),
                changed={name: wanted.remedies(name) for name in coarse},
            )


class _Coarse(NamedTuple):
    """A kept or sensitive column that is not published as it is."""

    column: Column
    array: pa.Array
    values: Floats
    """NaN where one is missing; none of text."""

    @classmethod
    def of(cls, name: str, array: pa.Array) -> "_Coarse":
        """Read a column; days of dates."""
        kind = kind_of(array.type) or Kind.CATEGORICAL
        if kind is Kind.CATEGORICAL:
            return cls(Column(name=name, kind=kind, categories=("",)), array, np.empty(0))
        if kind is Kind.NUMERIC:
            return cls(Column(name=name, kind=kind), array, numbers(name, array))
        unit, values = moments(name, array)
        days = np.floor(values / PER_DAY[unit])
        return cls(Column(name=name, kind=kind, unit=Unit.DAY), array, days)

    def published(self, wanted: Presentation) -> tuple[pa.Array, pa.Array]:
        """What is published, and what is measured of it: the same, or numbers in its order.

        Bins read like those of quasi-identifiers. What is rounded goes to the nearest multiple, or
        to the first day of its period, and what is top-coded to the cap.
        """
        name, form = self.column.name, wanted.form_of(self.column)
        if self.column.kind is Kind.CATEGORICAL:
            texts = plain_column(self.array).cast(pa.large_string())
            begin = pc.utf8_slice_codeunits(texts, 0, int(form.bins or 1))
            cut = pc.if_else(pc.equal(begin, texts), texts, joined(begin, "*", ""))
            return cut, cut
        is_there = ~np.isnan(self.values)
        values = self.values[is_there]
        if not values.size:
            return self.array, self.array
        if form.bins == AUTO:
            # The coarsest: here bins are a remedy.
            widths = [None, *auto_widths(self.column, values, form)]
            form = replace(form, bins=widths[-1])
        if form.bins is not None:
            distinct, place = np.unique(values, return_inverse=True)
            alone = Grouped(np.arange(distinct.size), np.arange(distinct.size + 1))
            found = range_of(self.column, distinct, self.array.type, alone, wanted, form)
            at = pa.array(_laid(place, is_there), mask=~is_there)
            texts = write_cells(found).columns[name]
            # By text: 4 and >=4 have the same ends. The values are in order, and so are the texts.
            return texts.take(at), plain_column(texts).dictionary_encode().indices.take(at)
        step = wanted.round_to.get(name)
        if isinstance(step, str):
            begin = starts(Unit.DAY, values, BY_NAME[step]).astype("M8[D]")
            values = begin.astype(np.int64).astype(np.float64)
        elif step is not None:
            values = multiple_below(values + step / 2, float(step))
        laid = _laid(np.clip(values, *wanted.caps(name)), is_there)
        array = decode(self.column, laid)
        array = pc.if_else(pa.array(is_there), array, pa.scalar(None, array.type))
        kind = self.array.type
        if not pa.types.is_integer(kind):
            array = array.cast(kind, safe=False)
        elif wanted.is_whole(name):
            # What is rounded up may not fit into the type of the owner's column.
            limits = np.iinfo(kind.to_pandas_dtype())
            is_fit = limits.min <= laid.min() and laid.max() <= limits.max
            array = array.cast(kind if is_fit else pa.int64(), safe=False)
        return array, array


def _laid(values: Array, is_there: Flags) -> Array:
    """The values in their rows, and 0 in those without one."""
    laid = np.zeros(is_there.size, values.dtype)
    laid[is_there] = values
    return laid


def read_source(
    table: object, manifest: Manifest, person: str | None, wanted: Presentation
) -> Source:
    """Check that the table is the one that was prepared, and encode it as it was then."""
    columns, declared = columns_of(table), _declared(manifest)
    new = {name for name, made in declared.made.items() if made.source != name}
    if {*columns} != {*manifest.roles} - new:
        raise another_table()
    is_large = 8 * columns.n_rows * len(manifest.quasi) > MOST_HELD
    read = read_owner_table(
        columns,
        replace(declared, person=person or manifest.person),
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
    """Return the owner's declarations that decide how the table is encoded."""
    with_role = {
        role: [name for name, given in manifest.roles.items() if given == role]
        for role in TableRole
    }
    # As at prepare(), a source that is only dropped does not ask who a person is.
    sources = {given["from"] for given in manifest.derived.values()}
    return Declared(
        target=manifest.target,
        quasi=with_role[TableRole.QUASI],
        identifier=[name for name in with_role[TableRole.IDENTIFIER] if name not in sources],
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
        derived=manifest.derived,
        task=manifest.task,
    )
