"""From leaves to classes: joined until they hold what was asked for, and measured (spec §12)."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Floats, Ids
from verix_anon.client.release import join
from verix_anon.client.release.classes import Classes, Shown
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.present import Presentation
from verix_anon.client.release.privacy import Attribute
from verix_anon.client.release.ranges import Range, range_of
from verix_anon.client.release.sheet import Conditions, Joining, Sheet
from verix_anon.client.release.source import Source
from verix_anon.client.table.diversity import Asked, Measure
from verix_anon.errors import NotAcceptedError
from verix_anon.machine import available_cores, give_back
from verix_anon.protocol.tree import Tree

__all__ = ["Formed", "form"]

Held = tuple[Range, Floats, Floats]
"""What classes hold of a column, and the least and the greatest value that it has."""


@dataclass(frozen=True, slots=True, eq=False)
class Formed:
    """The owner's rows by class, what the classes are held to, and what joining cost."""

    source: Source
    class_of_row: Ids
    n_classes: int
    conditions: Conditions
    cost: Joining

    @property
    def grouped(self) -> Grouped:
        """The rows of each class."""
        return Grouped.by(self.class_of_row, self.n_classes)

    def shown(self, wanted: Presentation, *, last: bool = False) -> Classes:
        """What is published of each class; the `last` time each column's values end with it."""
        source, grouped = self.source, self.grouped
        columns = range(len(source.quasi))
        with ThreadPoolExecutor(available_cores()) as pool:
            # Values end before texts begin, which are as large.
            found: list[Held | None] = list(
                pool.map(lambda j: self._held(j, grouped, wanted, last), columns)
            )
            made = pool.map(lambda j: _written(found, j), columns)
            return Classes.of(self.class_of_row, grouped.count, made)

    def _held(self, j: int, grouped: Grouped, wanted: Presentation, last: bool) -> Held:
        source, column = self.source, self.source.quasi[j]
        values = source.of_quasi(j, last=last)
        kind, form = source.types[column.name], source.forms[column.name]
        found = range_of(column, values, kind, grouped, wanted, form)
        ends = np.fmin.reduce(values, keepdims=True), np.fmax.reduce(values, keepdims=True)
        del values
        give_back()
        return found, *ends

    def measured(self, classes: Classes) -> Sheet:
        """The privacy sheet, of which all that was enforced must hold."""
        source, conditions = self.source, self.conditions
        members = classes.alike(source.person_of_row)
        sheet = Sheet.of(members, source.attributes, conditions, self.cost, classes.ncp)
        assert sheet.k >= conditions.k_agreed
        if sheet.unmet:
            raise NotAcceptedError(
                f"classes that look alike as published are one, and then {'; '.join(sheet.unmet)}:"
                " round and top-code less, or ask for less"
            )
        return sheet


def _written(found: list[Held | None], j: int) -> Shown:
    """Write a column out, after which what it was written from ends."""
    held, found[j] = found[j], None
    assert held is not None
    shown = Shown.of(*held)
    del held
    give_back()
    return shown


def form(tree: Tree, leaf_of_row: Ids, source: Source, conditions: Conditions) -> Formed:
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
    class_of_row: Ids = joined.class_of_leaf.astype(np.int32)[leaf_of_row]
    return Formed(source, class_of_row, joined.n_classes, conditions, _cost(joined, class_of_row))


def _demands(asked: Asked, attributes: Sequence[Attribute]) -> list[join.Demand]:
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


def _cost(joined: join.Joined, class_of_row: Ids) -> Joining:
    records = np.bincount(class_of_row, minlength=joined.n_classes)[joined.is_joined]
    return Joining(
        records=int(records.sum()),
        largest_class=int(records.max(initial=0)),
        ncp_before=joined.ncp_before,
        ncp_after=joined.ncp_after,
    )
