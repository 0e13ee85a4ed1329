"""The classes of a release: made by joining leaves, written out as cells, and measured (spec §12).

Columns are read, written out and let go one by one: values, cells and texts of a large table do not
fit into the memory together.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Floats, Ids, Ints
from verix_anon.client.privacy_sheet import Conditions, Joining, Sheet
from verix_anon.client.release import join, privacy
from verix_anon.client.release.cells import Cells, write_cells
from verix_anon.client.release.ends import bound_owners, capped_ends
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.ranges import OPEN, Range, range_of
from verix_anon.client.release.representation import Presentation
from verix_anon.client.release.source import Source
from verix_anon.client.table.roles import Asked, Measure
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.machine import available_cores, give_back
from verix_anon.protocol.tree import Tree

Domain = tuple[Floats, Floats]
"""The least and the greatest value of a column."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassCells:
    """What is published of each class."""

    of_row: Ids
    """The class of each of the owner's rows."""
    cells: Sequence[Cells]
    """Of each quasi-identifier."""
    ncp: float
    """The information lost by what is published."""
    bound_owners: tuple[float, float]
    """The shares of the records that alone own a bound: an exact one, and a printed one."""

    @property
    def columns(self) -> dict[str, pa.Array]:
        """All published columns of quasi-identifiers, by name."""
        return {name: array for each in self.cells for name, array in each.columns.items()}

    def members(self, people: Ints | None) -> privacy.ClassMembers:
        """Who is in which class, as the public sees it: classes that look alike are one."""
        return privacy.ClassMembers.alike(self.of_row, map(_codes, self.columns.values()), people)


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The owner's rows by class, what the classes are held to, and what joining cost."""

    source: Source
    of_row: Ids
    n_classes: int
    conditions: Conditions
    cost: Joining

    @property
    def grouped(self) -> Grouped:
        """The rows of each class."""
        return Grouped.by(self.of_row, self.n_classes)

    def write(self, wanted: Presentation, *, last: bool = False) -> ClassCells:
        """Write out what is published; the `last` time each column's values end with it."""
        grouped, n_quasi = self.grouped, len(self.source.quasi)
        with ThreadPoolExecutor(available_cores()) as pool:
            # Values end before texts begin, which are as large.
            found: list[tuple[Range, Domain] | None] = []
            is_owner = np.zeros((2, self.of_row.size), np.bool_)
            ranges = pool.map(lambda j: self._range(j, grouped, wanted, last), range(n_quasi))
            for held, domain, owners in ranges:
                found.append((held, domain))
                for flags, rows in zip(is_owner, owners, strict=True):
                    flags[rows] = True
            cells, total = [], np.zeros(grouped.count.size)
            for written, width in pool.map(lambda j: _written(found, j), range(n_quasi)):
                total += width
                cells.append(replace(written, covered=None))
        ncp = privacy.weighted(total / n_quasi, grouped.count)
        exact, printed = is_owner.mean(axis=1).tolist()
        return ClassCells(self.of_row, cells, ncp, (exact, printed))

    def _range(
        self, j: int, grouped: Grouped, wanted: Presentation, last: bool
    ) -> tuple[Range, Domain, tuple[Ints, Ints]]:
        source, column = self.source, self.source.quasi[j]
        values, people = source.of_quasi(j, last=last), source.person_of_row
        found = self.range_of(j, values, grouped, wanted)
        domain = np.fmin.reduce(values, keepdims=True), np.fmax.reduce(values, keepdims=True)
        nobody = np.empty(0, np.int64)
        owners = nobody, nobody
        if column.categories is None:
            owners = bound_owners(values, people, grouped, found)
        del values
        give_back()
        return found, domain, owners

    def range_of(self, j: int, values: Floats, grouped: Grouped, wanted: Presentation) -> Range:
        """What each class publishes of a quasi-identifier with these values."""
        source, column, ends = self.source, self.source.quasi[j], OPEN
        if column.categories is None and not wanted.exact_ends:
            ends = capped_ends(values, source.person_of_row, self.conditions.k_agreed)
        kind, form = source.types[column.name], source.forms[column.name]
        return range_of(column, values, kind, grouped, wanted, form, ends)

    def measure(self, written: ClassCells) -> Sheet:
        """Measure the classes as published.

        Raises:
            NotAcceptedError: Something that was to be enforced does not hold of them.
        """
        source, conditions = self.source, self.conditions
        members = written.members(source.person_of_row)
        sheet = privacy.measure(members, source.attributes, conditions, self.cost, written.ncp)
        exact, printed = written.bound_owners
        sheet = replace(sheet, bound_owners=printed, bound_owners_exact=exact)
        assert sheet.k >= conditions.k_agreed
        if sheet.unmet:
            raise NotAcceptedError(
                f"classes that look alike as published are one, and then {'; '.join(sheet.unmet)}:"
                " round and top-code less, publish exact ends, or ask for less"
            )
        return sheet


def join_leaves(tree: Tree, leaf_of_row: Ids, source: Source, conditions: Conditions) -> Classes:
    """Join leaves that fall short to others, and group the rows by class."""
    genuine = join.Genuine(
        leaf_of_row=leaf_of_row,
        person_of_row=source.person_of_row,
        values=(source.of_quasi(j) for j in range(len(source.quasi))),
        is_category=np.array([column.categories is not None for column in source.quasi]),
    )
    demands = _demands(conditions.enforced, source.attributes)
    joined = join.join(tree, genuine, conditions.k_agreed, demands)
    give_back()
    of_row: Ids = joined.class_of_leaf.astype(np.int32)[leaf_of_row]
    records = np.bincount(of_row, minlength=joined.n_classes)[joined.is_joined]
    cost = Joining(
        records=int(records.sum()),
        largest_class=int(records.max(initial=0)),
        ncp_before=joined.ncp_before,
        ncp_after=joined.ncp_after,
    )
    return Classes(source, of_row, joined.n_classes, conditions, cost)


def check_reachable(
    n_rows: int,
    people: Ints | None,
    attributes: Sequence[privacy.Attribute],
    k: int,
    asked: Asked,
) -> None:
    """Raise TableError if not even the whole table as one class has k people and what is asked."""
    if problem := join.too_much(n_rows, people, k, _demands(asked, attributes)):
        raise TableError(problem)


def _demands(asked: Asked, attributes: Sequence[privacy.Attribute]) -> list[join.Demand]:
    return [
        join.Demand(
            column=column,
            least_values=int(measures.get(Measure.L, 1)),
            cap=measures.get(Measure.CAP, 1.0),
            closeness=measures.get(Measure.T, 1.0),
        )
        for column in attributes
        if (measures := asked.get(column.name))
    ]


def _written(found: list[tuple[Range, Domain] | None], j: int) -> tuple[Cells, Floats]:
    """Write a column out and measure its width, after which its ranges end."""
    held, found[j] = found[j], None
    assert held is not None
    cells = write_cells(held[0])
    width = _width(*held, cells.covered)
    del held
    give_back()
    return cells, width


def _width(found: Range, domain: Domain, covered: Ints | None) -> Floats:
    """How much of the column's range each class leaves possible; a capped end reaches its limit."""
    if found.sets is None:
        low = np.where(found.is_below, domain[0], found.low)
        high = np.where(found.is_above, domain[1], found.high)
        return privacy.widths(privacy.ClassSpans(low, high, *domain))
    # How many categories a cell leaves possible, wherever they stand in the order.
    assert covered is not None
    most = privacy.distinct(found.sets.position).size - 1
    high = np.fmax(covered - 1.0, 0)
    return privacy.widths(privacy.ClassSpans(np.zeros(1), high, np.zeros(1), np.array([most])))


def _codes(array: pa.Array) -> Ints:
    if pa.types.is_dictionary(array.type):
        # A class of which nothing is known is told apart from every label.
        codes = array.indices.fill_null(len(array.dictionary))
        return codes.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    return privacy.attribute("", "", array).codes
