"""The classes of a release: made by joining leaves, written out as cells, and measured (spec §12).

Columns are read, written out and let go one by one: values, cells and texts of a large table do not
fit into the memory together.

The greatest value of a column often belongs to one person, and a class that prints it shows where
that person is. So by default nothing is printed beyond the k-th person from either end of a column.
A bound between the ends can still be the value of one person only: how many records that touches is
measured.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Flags, Floats, Ids, Ints
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.privacy_sheet import (
    NEARLY_ALL,
    Bins,
    ColumnLoss,
    Conditions,
    Joining,
    Sheet,
    Suppressed,
)
from verix_anon.client.release import join, privacy
from verix_anon.client.release.cells import WITH_ENDS, Cells, Covered, covered, write_cells
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.ranges import OPEN, Ends, Range, range_of
from verix_anon.client.release.representation import ColumnForm, Presentation
from verix_anon.client.release.source import Domain, Source
from verix_anon.client.table.roles import Asked, Measure
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.machine import available_cores, give_back
from verix_anon.protocol.tree import Tree

Choose = Callable[[Ints, Ids], Flags]
"""Which of these rows of the table may stay, by the class of each."""
NOTHING: Ends = (math.inf, -math.inf)
"""Every value lies beyond both ends, so nothing is said about any class."""
ROUNDS = 32
"""In how many rounds offers of records to suppress are accepted, the best first."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ClassCells:
    """What is published of each class."""

    of_row: Ids
    """The class of each of the owner's rows."""
    cells: Sequence[Cells]
    """The cells of each quasi-identifier that is published."""
    losses: Sequence[ColumnLoss]
    """What each of these columns lost."""
    ncp_before: float
    """What NCP would be if each leaf was published as a class of its own."""
    bound_owners: tuple[float, float]
    """The shares of records that are the only owner of an exact bound, and of a printed one."""
    bins: Mapping[str, Bins]
    """The common bins of the columns that have them."""

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
    is_joined: Flags
    """For each class whether it was made of several leaves."""
    conditions: Conditions
    cost: Joining
    leaf_of_row: Ids
    told: float
    """For at most this share of the records, joining shows that their leaf fell short."""
    suppressed: Suppressed | None = None

    @property
    def grouped(self) -> Grouped:
        """The rows of each class."""
        return Grouped.by(self.of_row, self.is_joined.size)

    def write(self, wanted: Presentation, *, last: bool = False) -> ClassCells:
        """Write out what is published; the `last` time, free each column's values on the way."""
        grouped, quasi = self.grouped, self.source.quasi
        shown = [j for j, column in enumerate(quasi) if column.name not in wanted.drop]
        leaves = self._apart() if self.cost.records else None
        with ThreadPoolExecutor(available_cores()) as pool:
            # Free the values before the texts are made, which are as large.
            found: list[Range | None] = []
            losses, before = [], []
            is_owner = np.zeros((2, self.of_row.size), np.bool_)
            ranges = pool.map(lambda j: self._range(j, grouped, leaves, wanted, last), shown)
            for held, owners, loss, ncp_before in ranges:
                found.append(held)
                losses.append(loss)
                before.append(ncp_before)
                for flags, rows in zip(is_owner, owners, strict=True):
                    flags[rows] = True
            give_back()
            bins = {each.column.name: _bins(each) for each in found if each and each.form.bins}
            cells = [*pool.map(lambda at: _written(found, at), range(len(shown)))]
        exact, printed = is_owner.mean(axis=1).tolist()
        n_dropped = len(quasi) - len(shown)
        return ClassCells(
            of_row=self.of_row,
            cells=cells,
            losses=losses,
            ncp_before=(sum(before) + n_dropped) / len(quasi),
            bound_owners=(exact, printed),
            bins=bins,
        )

    def _apart(self) -> Grouped:
        """Group the rows of each leaf of a joined class, and all other rows as the last group."""
        of_row = np.where(self.is_joined[self.of_row], self.leaf_of_row, self.leaf_of_row.max() + 1)
        number = np.cumsum(np.bincount(of_row) > 0) - 1
        return Grouped.by(number[of_row], int(number[-1]) + 1)

    def _range(
        self, j: int, grouped: Grouped, leaves: Grouped | None, wanted: Presentation, last: bool
    ) -> tuple[Range, tuple[Ints, Ints], ColumnLoss, float]:
        source, column = self.source, self.source.quasi[j]
        values, people = source.of_quasi(j, last=last), source.person_of_row
        found = self.range_of(j, values, grouped, wanted)
        domain = source.domain(j, values)
        owners = (np.empty(0, np.int64),) * 2
        if column.categories is None:
            owners = bound_owners(values, people, grouped, found)
        possible, k = covered(found), self.conditions.k_agreed
        width = _width(found, domain, possible)
        loss = privacy.column_loss(found, width, domain, possible, values, people, k)
        before = loss.ncp
        if leaves is not None:
            # Classes of one leaf are measured already.
            n_leaves = leaves.count.size - (not self.is_joined.all())
            apart = self.range_of(j, values, leaves, wanted, found.form)
            lost = (leaves.count * _width(apart, domain, covered(apart)))[:n_leaves].sum()
            lost += (grouped.count * ~self.is_joined * width).sum()
            before = float(lost / values.size)
        return found, owners, loss, before

    def range_of(
        self,
        j: int,
        values: Floats,
        grouped: Grouped,
        wanted: Presentation,
        form: ColumnForm | None = None,
    ) -> Range:
        """What each class publishes of a quasi-identifier with these values."""
        source, column, ends = self.source, self.source.quasi[j], OPEN
        if column.categories is None and not wanted.exact_ends:
            ends = capped_ends(values, source.person_of_row, self.conditions.k_agreed)
        kind, form = source.types[column.name], form or source.forms[column.name]
        return range_of(column, values, kind, grouped, wanted, form, ends)

    def measure(self, written: ClassCells, linked_by: str | None = None) -> Sheet:
        """Measure the classes as published; a column may link the rows of each person.

        Raises:
            NotAcceptedError: Something that was to be enforced does not hold of them.
        """
        source, conditions = self.source, self.conditions
        members = written.members(source.person_of_row)
        cost = replace(self.cost, ncp_before=written.ncp_before)
        lost = written.losses, len(source.quasi) - len(written.losses)
        exact, printed = written.bound_owners
        sheet = replace(
            privacy.measure(members, source.attributes, conditions, cost, *lost),
            bins=written.bins,
            suppressed=self.suppressed,
            bound_owners=printed,
            bound_owners_exact=exact,
            told_by_joining=self.told,
        )
        if linked_by is not None:
            sheet = replace(sheet, linked=privacy.linking(members, linked_by, sheet.k_agreed))
            sheet = replace(sheet, warnings=sheet.measured_warnings)
        assert sheet.k >= conditions.k_agreed
        if sheet.unmet:
            raise NotAcceptedError(
                f"classes that look alike as published are one, and then {'; '.join(sheet.unmet)}:"
                " round, top-code and bin less, publish exact ends, or ask for less"
            )
        return sheet


def join_leaves(
    tree: Tree,
    leaf_of_row: Ids,
    source: Source,
    conditions: Conditions,
    secret: Secret,
    *,
    suppress: float = 0.0,
    choose: Choose | None = None,
    wider: int = 1,
) -> Classes:
    """Join leaves that fall short to others, and some more by chance, and group rows by class.

    With `suppress`, the records that cost most to keep are left out, at most those of this share of
    the people. Then the leaves without them are joined, so what is left holds all that is asked
    for. After that, `choose` says which rows may stay, and is asked again until all may. Leaves are
    joined for `wider` times l values.
    """

    def joined(rows: Ints | None) -> Classes:
        some = source if rows is None else source.only(rows)
        of_row = leaf_of_row if rows is None else leaf_of_row[rows]
        return _joined(tree, of_row, some, conditions, secret, wider)

    classes = _without_costly(joined, source, suppress) if suppress else joined(None)
    if choose is None:
        return classes
    rows = np.arange(leaf_of_row.size) if classes.source.rows is None else classes.source.rows
    while not (is_kept := choose(rows, classes.of_row)).all():
        rows = rows[is_kept]
        try:
            classes = replace(joined(rows), suppressed=classes.suppressed)
        except NotAcceptedError as error:
            reason, _, _ = str(error).rpartition("; ")
            raise NotAcceptedError(
                "nothing can be published this time, because too many people have to wait"
                f" (without them, {reason}); publish the next table, which has new people"
            ) from None
    return classes


def _without_costly(
    joined: Callable[[Ints | None], Classes], source: Source, suppress: float
) -> Classes:
    classes = joined(None)
    is_left = _Suppression(classes, suppress).is_left
    rows, people = np.flatnonzero(is_left), source.person_of_row
    if rows.size == is_left.size:
        return classes
    suppressed = Suppressed(
        records=int((~is_left).sum()),
        people=int((~is_left).sum() if people is None else np.unique(people[~is_left]).size),
        moved={c.name: _moved(source.of_quasi(j), rows) for j, c in enumerate(source.quasi)}
        | {column.name: _moved(column.codes, rows) for column in source.attributes},
    )
    return replace(joined(rows), suppressed=suppressed)


def _joined(
    tree: Tree,
    leaf_of_row: Ids,
    source: Source,
    conditions: Conditions,
    secret: Secret,
    wider: int = 1,
) -> Classes:
    genuine = join.Genuine(
        leaf_of_row=leaf_of_row,
        person_of_row=source.person_of_row,
        values=lambda: (source.of_quasi(j) for j in range(len(source.quasi))),
        is_category=np.array([column.categories is not None for column in source.quasi]),
    )
    demands = _demands(conditions.enforced, source.attributes, wider)
    joined = join.join(tree, genuine, conditions.k_agreed, demands, secret.generator("join"))
    give_back()
    of_row: Ids = joined.class_of_leaf.astype(np.int32)[leaf_of_row]
    records = np.bincount(of_row, minlength=joined.n_classes)[joined.is_joined]
    cost = Joining(
        records=int(records.sum()), largest_class=int(records.max(initial=0)), ncp_before=None
    )
    members = privacy.ClassMembers(of_row.astype(np.int64), joined.n_classes)
    hides = np.zeros(joined.n_classes, np.bool_)
    for codes in (demand.column.codes for demand in demands):
        found = next(privacy.distributions(members, codes, privacy.overall(codes, None)))
        hides |= found.greatest_share() <= NEARLY_ALL
    told = float((joined.is_told[leaf_of_row] & hides[of_row]).mean())
    return Classes(source, of_row, joined.is_joined, conditions, cost, leaf_of_row, told)


def _moved(values: Floats | Ints, rows: Ints) -> float:
    """The total variation distance between these rows' distribution and that of all."""
    codes = np.unique(values, return_inverse=True)[1]
    all_shares = np.bincount(codes) / codes.size
    some = np.bincount(codes[rows], minlength=all_shares.size) / rows.size
    return float(np.abs(all_shares - some).sum() / 2)


class _Suppression:
    """Which records to leave out: greedily, by the loss that each saves per person.

    A class offers one of its people, one of its leaves, or all of it, as long as what is left has
    k people and l values. What is accepted lowers the mean width of a value. Only the joining that
    follows proves anything.
    """

    def __init__(self, classes: Classes, share: float) -> None:
        source, conditions = classes.source, classes.conditions
        n_rows, n_classes = classes.of_row.size, classes.is_joined.size
        people = source.person_of_row
        self.people = np.arange(n_rows) if people is None else people
        self.of_row, self.leaf_of_row = classes.of_row.astype(np.int64), classes.leaf_of_row
        self.k, self.demands = conditions.k_agreed, _demands(conditions.enforced, source.attributes)
        # The values of each column, the width of its domain, and whether they are categories.
        self.columns = []
        for j, column in enumerate(source.quasi):
            values = source.of_quasi(j)
            low, high = source.domain(j, values)
            is_set = column.categories is not None
            self.columns.append((values, float(high[0] - low[0]) or 1.0, is_set))
        self.is_left, self.is_offered = np.ones(n_rows, np.bool_), np.zeros(n_rows, np.bool_)
        # Of each class: its loss, and what its offer saves, per person, for how many people.
        self.loss, self.saved = np.zeros((2, n_classes))
        self.n_people = np.zeros(n_classes, np.int64)
        self._offer(np.ones(n_classes, np.bool_))
        budget = int(share * privacy.distinct(self.people).size)
        some = budget // ROUNDS
        while taken := self._take(budget, some):
            budget -= taken

    def _take(self, budget: int, some: int) -> int:
        """Accept the best offer within the budget, and more up to `some` people; how many."""
        order = np.argsort(-self.saved, kind="stable")
        order = order[(self.saved[order] > 0) & (self.n_people[order] <= budget)]
        total = np.cumsum(self.n_people[order])
        order = order[: max(1, int(np.searchsorted(total, min(some, budget), "right")))]
        is_taken = np.zeros(self.saved.size, np.bool_)
        is_taken[order] = True
        self.is_left &= ~(self.is_offered & is_taken[self.of_row])
        taken = int(self.n_people[order].sum())
        self._offer(is_taken)
        return taken

    def _offer(self, is_asked: Flags) -> None:
        """What each of these classes offers to leave out."""
        rows = np.flatnonzero(self.is_left & is_asked[self.of_row])
        of_row, people = self.of_row[rows], self.people[rows]
        self.saved[is_asked] = self.loss[is_asked] = 0.0
        self.is_offered[rows] = False
        if not rows.size:
            return
        for names in (people, self.leaf_of_row[rows].astype(np.int64), np.zeros_like(people)):
            units = _Units(of_row, names)
            records, of = np.bincount(units.of_row), units.of_class
            whole, rest = np.zeros(records.size), np.zeros(records.size)
            for values, scale, is_set in self.columns:
                found = units.sets(values[rows]) if is_set else units.ranges(values[rows])
                whole, rest = whole + found[0] / scale, rest + found[1] / scale
            n_rows = np.bincount(of_row)[of]
            self.loss[of] = n_rows * whole
            saved = n_rows * whole - (n_rows - records) * rest
            is_valid = units.left(people) >= self.k
            for demand in self.demands:
                is_valid &= units.left(demand.column.codes[rows]) >= demand.least_values
            is_valid |= records == n_rows
            is_valid &= saved > records * self.loss.sum() / self.is_left.sum()
            n_people = privacy.ClassMembers(units.of_row, records.size, people).sizes()
            each = np.where(is_valid, saved / n_people, 0.0)
            # The best of each class, if it is better than what was found before.
            order = np.lexsort((-each, of))
            best = order[np.diff(of[order], prepend=-1) > 0]
            best = best[each[best] > self.saved[of[best]]]
            self.saved[of[best]], self.n_people[of[best]] = each[best], n_people[best]
            changed = np.isin(of_row, of[best])
            self.is_offered[rows[changed]] = np.isin(units.of_row[changed], best)


class _Units:
    """Parts of classes, each with the rest of its class."""

    def __init__(self, class_of_row: Ints, names: Ints) -> None:
        self.class_of_row = class_of_row
        self.of_row = privacy.dense(class_of_row * (int(names.max()) + 1) + names)
        self.of_class = np.empty(int(self.of_row.max()) + 1, np.int64)
        """The class of each unit."""
        self.of_class[self.of_row] = class_of_row

    def _codes(self, codes: Ints, of_row: Ints, class_of_row: Ints) -> tuple[Ints, Ints]:
        """How many codes the class of each unit has, and how many its rest has."""
        n_units = self.of_class.size
        of_class = privacy.dense(class_of_row * (int(codes.max(initial=0)) + 1) + codes)
        code, unit = np.divmod(privacy.distinct(of_class * n_units + of_row), n_units)
        class_of = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
        class_of[code] = self.of_class[unit]
        n_codes = np.bincount(class_of, minlength=int(self.of_class.max()) + 1)[self.of_class]
        is_sole = np.bincount(code)[code] == 1
        return n_codes, n_codes - np.bincount(unit[is_sole], minlength=n_units)

    def left(self, codes: Ints) -> Ints:
        """How many distinct codes the rest has."""
        return self._codes(codes, self.of_row, self.class_of_row)[1]

    def sets(self, values: Floats) -> tuple[Floats, Floats]:
        """How many categories beside one the class of each unit has, and the rest."""
        is_there = ~np.isnan(values)
        codes = values[is_there].astype(np.int64)
        found = self._codes(codes, self.of_row[is_there], self.class_of_row[is_there])
        whole, rest = (np.maximum(n - 1.0, 0.0) for n in found)
        return whole, rest

    def ranges(self, values: Floats) -> tuple[Floats, Floats]:
        """The range of values in the class of each unit, and in the rest of the class."""
        (low, low_rest), (high, high_rest) = self._least(values), self._least(-values)
        with np.errstate(invalid="ignore"):
            whole, rest = -high - low, -high_rest - low_rest
        return np.fmax(whole, 0.0), np.fmax(rest, 0.0)

    def _least(self, values: Floats) -> tuple[Floats, Floats]:
        """The least value of the class of each unit and of the rest; infinite if there is none."""
        low = np.full(self.of_class.size, np.inf)
        np.fmin.at(low, self.of_row, values)
        order = np.lexsort((low, self.of_class))
        is_first = np.diff(self.of_class[order], prepend=-1) > 0
        first = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
        second = np.minimum(first + 1, order.size - 1)
        is_alone = self.of_class[order[second]] != self.of_class[order]
        others = np.where(is_alone | (second == first), np.inf, low[order[second]])
        least, rest = np.empty_like(low), np.empty_like(low)
        least[order] = low[order[first]]
        rest[order] = np.where(is_first, others, low[order[first]])
        return least, rest


def check_reachable(
    n_rows: int, people: Ints | None, attributes: Sequence[privacy.Attribute], k: int, asked: Asked
) -> None:
    """Raise TableError if not even the whole table as one class has k people and what is asked."""
    if problem := join.too_much(n_rows, people, k, _demands(asked, attributes)):
        raise TableError(problem)


def _demands(
    asked: Asked, attributes: Sequence[privacy.Attribute], wider: int = 1
) -> list[join.Demand]:
    return [
        join.Demand(
            column=column,
            least_values=_wider(int(measures.get(Measure.L, 1)), wider, column),
            cap=measures.get(Measure.CAP, 1.0),
            closeness=measures.get(Measure.T, 1.0),
        )
        for column in attributes
        if (measures := asked.get(column.name))
    ]


def _wider(least: int, wider: int, column: privacy.Attribute) -> int:
    """Return `wider` times l, at most half of all distinct values, and at least l."""
    n_values = np.unique(column.codes).size
    return max(least, min(wider * least, n_values // 2)) if least > 1 else least


def _bins(found: Range) -> Bins:
    """The common bins of a column, and how many of its records span several."""
    bins, records = found.form.bins, found.records
    return Bins(
        width=f"{bins:g}" if isinstance(bins, float) else str(bins),
        spanning=float(records[found.is_spanning].sum() / records.sum()),
    )


def _written(found: list[Range | None], j: int) -> Cells:
    """Write a column out, and free its ranges."""
    held, found[j] = found[j], None
    assert held is not None
    cells = write_cells(held)
    del held
    give_back()
    return cells


def _width(found: Range, domain: Domain, possible: Covered | None) -> Floats:
    """Return how much of the range each class leaves possible; a capped end goes to its limit."""
    if found.sets is None:
        low = np.where(found.is_below, domain[0], found.low)
        high = np.where(found.is_above, domain[1], found.high)
        return privacy.widths(low, high, domain)
    # How many categories a cell leaves possible, wherever they stand in the order.
    assert possible is not None
    high = np.fmax(possible.count - 1.0, 0)
    return privacy.widths(np.zeros(1), high, domain)


def _codes(array: pa.Array) -> Ints:
    if pa.types.is_dictionary(array.type):
        # A class that says nothing gets a code of its own, unlike that of any label.
        codes = array.indices.fill_null(len(array.dictionary))
        return codes.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    return privacy.attribute("", "", array).codes


def capped_ends(values: Floats, people: Ints | None, k: int) -> Ends:
    """Return the k-th least and the k-th greatest value, counted by persons.

    At least k persons have a value that is at most the first, and at least k have one that is at
    least the second. Where this cannot be, because fewer than k persons have a value or the first
    would be greater than the second, it is `NOTHING`.

    Args:
        values: Of every genuine record; NaN where it has none.
        people: The person of each record; None if each record is a person.
        k: How many persons must reach an end.
    """
    is_there = ~np.isnan(values)
    low = high = values[is_there]
    if people is not None:
        low, high = _extremes(low, people[is_there])
    if low.size < k:
        return NOTHING
    least = float(np.partition(low, k - 1)[k - 1])
    most = float(np.partition(high, high.size - k)[high.size - k])
    return (least, most) if least <= most else NOTHING


def _extremes(values: Floats, people: Ints) -> tuple[Floats, Floats]:
    """The least and the greatest value of each person who has one."""
    n_people = int(people.max(initial=-1)) + 1
    low, high = np.full(n_people, math.inf), np.full(n_people, -math.inf)
    np.minimum.at(low, people, values)
    np.maximum.at(high, people, values)
    has_value = low <= high
    return low[has_value], high[has_value]


def bound_owners(
    values: Floats, people: Ints | None, grouped: Grouped, found: Range
) -> tuple[Ints, Ints]:
    """Return the rows of the records that alone own a bound of their class in a column.

    A record owns a bound if it has this value and no other person in the table has it.

    Args:
        values: Of every genuine record; NaN where it has none.
        people: The person of each record; None if each record is a person.
        grouped: The records of each class.
        found: What is published of the column.

    Returns:
        The owners of the exact bounds, and those of the bounds that are printed as they are.
    """
    laid, first = values[grouped.order], grouped.start[:-1]
    class_of = np.repeat(np.arange(first.size), grouped.count)
    is_bound = laid == np.fmin.reduceat(laid, first)[class_of]
    is_bound |= laid == np.fmax.reduceat(laid, first)[class_of]
    at = np.flatnonzero(is_bound)
    at = at[_has_sole_value(values, people)[grouped.order[at]]]
    value, of = laid[at], class_of[at]
    is_printed = (value == found.low[of]) & ~found.is_below[of]
    is_printed |= (value == found.high[of]) & ~found.is_above[of]
    if found.form.representation not in WITH_ENDS:
        # A mean or a midpoint is a bound only where the class has one value.
        is_printed &= found.low[of] == found.high[of]
    return grouped.order[at], grouped.order[at[is_printed]]


def _has_sole_value(values: Floats, people: Ints | None) -> Flags:
    """Which records have a value that no other person has."""
    laid = np.sort(values)
    is_same = laid[1:] == laid[:-1]
    del laid
    if people is None and not is_same.any():
        return np.ones(values.size, np.bool_)
    order = np.argsort(values)
    is_sole = ~(np.append(is_same, False) | np.append(False, is_same))
    if people is not None:
        first = np.flatnonzero(np.append(True, ~is_same))
        owners = people[order]
        is_one = np.minimum.reduceat(owners, first) == np.maximum.reduceat(owners, first)
        is_sole = np.repeat(is_one, np.diff(first, append=values.size))
    found = np.empty(values.size, np.bool_)
    found[order] = is_sole
    return found
