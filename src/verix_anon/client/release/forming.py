"""From leaves to classes: joined until they hold what was asked for, and measured (spec §12)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Ids
from verix_anon.client.release import join
from verix_anon.client.release.assemble import Classes
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.present import Presentation
from verix_anon.client.release.privacy import Attribute
from verix_anon.client.release.ranges import ranges
from verix_anon.client.release.sheet import Conditions, Joining, Sheet
from verix_anon.client.release.source import Source
from verix_anon.client.table.diversity import Asked, Measure
from verix_anon.errors import NotAcceptedError
from verix_anon.protocol.tree import Tree

__all__ = ["Formed", "form"]


@dataclass(frozen=True, slots=True, eq=False)
class Formed:
    """The owner's rows by class, what the classes are held to, and what joining cost."""

    source: Source
    grouped: Grouped
    conditions: Conditions
    cost: Joining

    def shown(self, wanted: Presentation) -> Classes:
        """What is published of each class."""
        source = self.source
        shown = ranges(
            source.quasi, source.values, source.types, self.grouped, wanted, source.forms
        )
        return Classes.of(shown, self.grouped)

    def measured(self, classes: Classes) -> Sheet:
        """The privacy sheet, of which all that was enforced must hold."""
        source, conditions = self.source, self.conditions
        members, ncp = classes.alike(source.person_of_row), classes.ncp(source.values)
        sheet = Sheet.of(members, source.attributes, conditions, self.cost, ncp)
        assert sheet.k >= conditions.k_agreed
        if sheet.unmet:
            raise NotAcceptedError(
                f"classes that look alike as published are one, and then {'; '.join(sheet.unmet)}:"
                " round and top-code less, or ask for less"
            )
        return sheet


def form(tree: Tree, leaf_of_row: Ids, source: Source, conditions: Conditions) -> Formed:
    """Join leaves that fall short to others, and group the rows by class."""
    genuine = join.Genuine(
        leaf_of_row=leaf_of_row,
        person_of_row=source.person_of_row,
        values=source.values,
        is_category=np.array([column.categories is not None for column in source.quasi]),
    )
    demands = _demands(conditions.enforced, source.attributes)
    joined = join.join(tree, genuine, conditions.k_agreed, demands)
    grouped = Grouped.by(joined.class_of_leaf[leaf_of_row], joined.n_classes)
    return Formed(source, grouped, conditions, _cost(joined, grouped))


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


def _cost(joined: join.Joined, grouped: Grouped) -> Joining:
    records = grouped.count[joined.is_joined]
    return Joining(
        records=int(records.sum()),
        largest_class=int(records.max(initial=0)),
        ncp_before=joined.ncp_before,
        ncp_after=joined.ncp_after,
    )
