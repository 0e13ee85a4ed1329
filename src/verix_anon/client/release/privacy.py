"""Measure what a release still tells about the people in it, for its privacy sheet (spec §12).

Everything is measured on the classes as published: records that look the same. Where a person
column is named, k counts people: one patient with 12 visits is one person. How a column is
distributed in a class is then measured by records and by people, for neither bounds the other:
one person may have most of the records, and most people a value that few of the records have.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Floats, Ids, Ints
from verix_anon.client.evidence import SizeHistogram
from verix_anon.client.privacy_sheet import (
    MOST_BARS,
    ColumnLoss,
    Conditions,
    Diversity,
    Joining,
    Linking,
    Sheet,
)
from verix_anon.client.release.cells import Covered
from verix_anon.client.release.ranges import EXACT, Range
from verix_anon.client.table.digest import plain_column
from verix_anon.client.table.task import TableRole
from verix_anon.protocol.contract import Unit
from verix_anon.protocol.tree import NUMPY_UNITS

ORDERED, EQUAL = "ordered", "equal"
POPULATION = "the table itself: the intruder knows no larger population"
UNORDERED = (pa.types.is_null, pa.types.is_boolean, pa.types.is_large_string)
PARTS = 720_720 * 1024
"""The parts of a person that are spread over the person's values. They are counted as whole
numbers, so that no sum depends on the order of rows. Up to 16 values divide them evenly, and
those of 2^31 people add up to less than 2^63."""
MONTHS = (1, 3, 6, *(12 * years for years in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)))
"""How many months of dates one bar may hold."""
SECONDS = {Unit.DAY: 86_400.0, Unit.SECOND: 1.0, Unit.MILLISECOND: 1e-3, Unit.MICROSECOND: 1e-6}
YEAR, DAY = 31_557_600.0, 86_400.0
UNITS = {"years": YEAR, "months": YEAR / 12, "days": DAY, "hours": 3_600.0, "seconds": 1.0}
TINY, HUGE = 1e-300, 1e308


@dataclass(frozen=True, slots=True, eq=False)
class ClassMembers:
    """Who is in which class."""

    class_of_row: Ints
    n_classes: int
    person_of_row: Ints | None = None
    """None if each record is a person."""

    @classmethod
    def alike(
        cls, class_of_row: Ints | Ids, published: Iterable[Ints], people: Ints | None
    ) -> "ClassMembers":
        """Classes as the public sees them: those with the same published values are one.

        `published` are numbers of each class's values, column by column.
        """
        groups = np.zeros(_top(class_of_row) + 1, np.int64)
        for codes in published:
            groups = dense(_pair(groups, codes)[0])
            if _top(groups) + 1 == groups.size:
                # All differ already.
                break
        return cls(groups[class_of_row], _top(groups) + 1, people)

    def people(self, groups: Ints, n_groups: int) -> Ints:
        """How many people have a record in each group of records."""
        if self.person_of_row is None:
            return np.bincount(groups, minlength=n_groups)
        pairs, width = _pair(groups, self.person_of_row)
        return np.bincount(distinct(pairs) // width, minlength=n_groups)

    def sizes(self) -> Ints:
        """How many people are in each class."""
        return self.people(self.class_of_row, self.n_classes)

    def records(self) -> Ints:
        """How many records are in each class."""
        return np.bincount(self.class_of_row, minlength=self.n_classes)

    def most_of_one(self) -> Ints:
        """How many records of each class one person has, at most."""
        if self.person_of_row is None:
            return np.ones(self.n_classes, np.int64)
        keys, width = _pair(self.class_of_row, self.person_of_row)
        keys.sort()
        first = _first_of_each(keys)
        begin = np.searchsorted(keys[first] // width, np.arange(self.n_classes))
        most: Ints = np.maximum.reduceat(np.diff(first, append=keys.size), begin)
        return most


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """A column as numbers of its distinct values; in order if the column has one."""

    name: str
    role: str
    codes: Ints
    is_ordered: bool


def attribute(name: str, role: str, array: pa.Array) -> Attribute:
    """Number a column's values: numbers and dates by size, missing as one more, the greatest."""
    is_text = pa.types.is_dictionary(array.type)
    plain = plain_column(array)
    if pa.types.is_null(plain.type):
        return Attribute(name, role, np.zeros(len(plain), np.int64), is_ordered=False)
    encoded = plain.dictionary_encode()
    is_ordered = not (is_text or any(test(plain.type) for test in UNORDERED))
    n_values = len(encoded.dictionary)
    code = np.arange(n_values)
    if is_ordered:
        code[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(n_values)
    positions = encoded.indices.fill_null(n_values).to_numpy(zero_copy_only=False)
    return Attribute(name, role, np.append(code, n_values)[positions], is_ordered)


def dense(codes: Ints) -> Ints:
    """Numbers from 0 without gaps, equal where the codes are, by first occurrence."""
    indices = pa.array(codes).dictionary_encode().indices
    numbers: Ints = indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def distinct(codes: Ints) -> Ints:
    """The distinct codes in order; by sorting, ten times as fast as numpy's hashing."""
    ordered: Ints = np.sort(codes)
    is_new = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def _top(codes: Ints | Ids) -> int:
    return int(codes.max(initial=0))


def _pair(first: Ints, second: Ints) -> tuple[Ints, int]:
    """One code for every pair of codes, and how many second codes there may be."""
    width = _top(second) + 1
    return first * width + second, width


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """How often each value occurs in each class: the pairs that occur, by class, then value."""

    class_of_pair: Ints
    value_of_pair: Ints
    count: Ints
    """How many records, or people, have the value at least once."""
    weight: Ints
    """The count; or the parts of people, each spread evenly over the person's distinct values."""
    size: Ints
    """How many records, or people, each class has."""
    overall: Floats
    """Each value's share of the whole table, by weight."""

    @property
    def n_values(self) -> int:
        """How many values the table has."""
        return self.overall.size

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return self.size.size

    @property
    def total(self) -> Floats:
        """The weight of each class."""
        return np.bincount(self.class_of_pair, self.weight, self.n_classes).astype(np.float64)

    @property
    def share(self) -> Floats:
        """Each pair's share of its class by weight; those of a class add up to 1."""
        return self.weight / self.total[self.class_of_pair]

    def distinct(self) -> Ints:
        """Distinct l-diversity of each class: how many values it has."""
        return np.bincount(self.class_of_pair, minlength=self.n_classes)

    def greatest_share(self) -> Floats:
        """The share of the records, or people, of each class that have its commonest value."""
        return np.maximum.reduceat(self.count / self.size[self.class_of_pair], self._first)

    @property
    def _first(self) -> Ints:
        """Where the pairs of each class begin; no class is without any."""
        return np.searchsorted(self.class_of_pair, np.arange(self.n_classes))

    def entropy(self) -> Floats:
        """Entropy l-diversity of each class: the exponential of its entropy."""
        share = self.share
        return np.exp(-np.bincount(self.class_of_pair, share * np.log(share), self.n_classes))

    def distance(self, *, is_ordered: bool) -> Floats:
        """Earth mover's distance of each class to the table."""
        return self.ordered_distance() if is_ordered else self.equal_distance()

    def equal_distance(self) -> Floats:
        """Earth mover's distance of each class to the table, all values being equally far."""
        gain = np.maximum(self.share - self.overall[self.value_of_pair], 0.0)
        # A sum of shares, so already a float; the stubs of bincount do not know.
        return np.bincount(self.class_of_pair, gain, self.n_classes).astype(np.float64)

    def ordered_distance(self) -> Floats:
        """Earth mover's distance of each class to the table, neighbours being 1/(m-1) apart.

        That is the mean over the steps between neighbouring values of |P - Q|, the two
        distribution functions. P is constant from one value of a class to its next, and Q
        rises, so each stretch splits at one point into a part below and one above.
        """
        if self.n_values == 1:
            return np.zeros(self.n_classes)
        q = np.cumsum(self.overall)
        area = np.concatenate([[0.0], np.cumsum(q)])
        first = self._first
        done = np.cumsum(self.weight)
        before = (done - self.weight)[first]
        p = (done - before[self.class_of_pair]) / self.total[self.class_of_pair]
        begin = self.value_of_pair
        end = np.append(begin[1:], 0)
        end[np.append(first[1:], len(begin)) - 1] = self.n_values - 1
        turn = np.clip(np.searchsorted(q, p), begin, end)
        below = p * (turn - begin) - (area[turn] - area[begin])
        above = area[end] - area[turn] - p * (end - turn)
        moved = np.bincount(self.class_of_pair, below + above, self.n_classes)
        distance: Floats = (moved + area[begin[first]]) / (self.n_values - 1)
        # Rounding leaves a little less than nothing where the two are the same.
        return np.maximum(distance, 0.0)


def overall(codes: Ints, person_of_row: Ints | None) -> tuple[Floats, ...]:
    """Each value's share of the whole table: by records, and by people if they are told apart."""
    whole = ClassMembers(np.zeros_like(codes), 1, person_of_row)
    nothing = np.empty(0), np.empty(0)
    return tuple(
        np.bincount(found.value_of_pair, found.share, _top(codes) + 1).astype(np.float64)
        for found in distributions(whole, codes, nothing)
    )


def distributions(
    members: ClassMembers, codes: Ints, shares: Sequence[Floats]
) -> Iterator[Distribution]:
    """How a column's values are distributed over the classes, beside their `overall` shares.

    By records, and by people if they are told apart.
    """
    keys, width = _pair(members.class_of_row, codes)
    keys.sort()
    first = _first_of_each(keys)
    count = np.diff(first, append=keys.size)
    yield Distribution(*np.divmod(keys[first], width), count, count, members.records(), shares[0])
    if members.person_of_row is None:
        return
    # A member is a person in a class.
    member = dense(_pair(members.class_of_row, members.person_of_row)[0])
    class_of_member = np.empty(_top(member) + 1, np.int64)
    class_of_member[member] = members.class_of_row
    member, value = np.divmod(distinct(_pair(member, codes)[0]), width)
    parts = PARTS // np.bincount(member)
    keys = class_of_member[member] * width + value
    order = np.argsort(keys)
    first = _first_of_each(keys[order])
    yield Distribution(
        *np.divmod(keys[order[first]], width),
        np.diff(first, append=keys.size),
        np.add.reduceat(parts[member[order]], first),
        np.bincount(class_of_member, minlength=members.n_classes),
        shares[1],
    )


def _first_of_each(ordered: Ints) -> Ints:
    """Where each of these codes, which are in order, stands first."""
    return np.flatnonzero(np.diff(ordered, prepend=-1))


def linking(members: ClassMembers, column: str, k: int) -> Linking:
    """Count the people who share the classes of all their rows, each as often as it occurs."""
    assert members.person_of_row is not None
    # Without gaps: people who were left out share nothing with anybody.
    people = dense(members.person_of_row)
    order = np.lexsort((members.class_of_row, people))
    classes, count = members.class_of_row[order], np.bincount(people)
    begin = np.cumsum(count) - count
    # The combination of each person's first i rows, numbered apart from those of fewer rows.
    combination = np.zeros(count.size, np.int64)
    more = np.arange(count.size)
    for i in range(_top(count)):
        more = more[count[more] > i]
        longer = dense(_pair(combination[more], classes[begin[more] + i])[0])
        combination[more] = longer + _top(combination) + 1
    shared = np.bincount(combination)[combination]
    return Linking(
        column=column,
        k=int(shared.min()),
        below_k=float((shared < k).mean()),
        unique=float((shared == 1).mean()),
    )


def singled_out(members: ClassMembers, attributes: Sequence[Attribute]) -> float:
    """The share of records whose values of these columns no one else in their class has."""
    groups = members.class_of_row
    for column in attributes:
        groups = dense(_pair(groups, column.codes)[0])
    is_alone = members.people(groups, _top(groups) + 1) == 1
    return float(is_alone[groups].mean())


def widths(low: Floats, high: Floats, domain: tuple[Floats, Floats]) -> Floats:
    """How much each class leaves possible of a column, as a share of the column's range."""
    # Halved before subtracting, so that nothing overflows.
    whole = domain[1] / 2 - domain[0] / 2
    low, high = np.clip(low, *domain), np.clip(high, *domain)
    found: Floats = (high / 2 - low / 2) / np.where(whole > 0, whole, np.inf)
    return found


def weighted(width: Floats, records: Ints) -> float:
    """The mean over all records of what their classes have."""
    # Not by @, whose threads wait for ours, and add in another order on another machine.
    return float((records * width).sum() / records.sum())


@np.errstate(all="ignore")
def column_loss(
    found: Range,
    width: Floats,
    domain: tuple[Floats, Floats],
    possible: Covered | None,
    values: Floats,
    people: Ints | None,
    k: int,
) -> ColumnLoss:
    """What is left of a column: `width` is that of its classes, as a share of its `domain`.

    A bar of fewer than k people, or one percent, is joined to its neighbour: so no share of fewer
    can be found by taking the others away from the whole.
    """
    column, n_there = found.column, found.records - found.missing
    if possible is None:
        is_one = (found.low == found.high) & ~(found.is_below | found.is_above | found.is_any)
        scale = 1.0 if column.unit is None else SECONDS[column.unit]
        lengths = np.minimum(width * (domain[1] - domain[0]) * scale, HUGE)
    else:
        is_one, lengths = possible.count == 1, possible.count.astype(np.float64)
    order = np.argsort(lengths)
    reached = np.cumsum(n_there[order])
    median, unit = lengths[order[np.searchsorted(reached, reached[-1] / 2)]], "values"
    if possible is None:
        unit = next((u for u, length in UNITS.items() if median >= 2 * length), "days")
        median, unit = (median, "") if column.unit is None else (median / UNITS[unit], unit)
    is_exact = (is_one & (found.missing == 0)) | found.is_empty
    held, is_there = (values, people), ~np.isnan(values)
    if not is_there.all():
        held = values[is_there], None if people is None else people[is_there]
    names, before, after = _bars(found, possible, n_there / max(n_there.sum(), 1), *held, k)
    return ColumnLoss(
        column=column.name,
        exact=weighted(is_exact.astype(np.float64), found.records),
        median_width=float(f"{median:.2g}"),
        unit=unit,
        n_categories=0 if found.sets is None else found.sets.occurring.size,
        ncp=weighted(width, found.records),
        bars=tuple(names),
        before=tuple(before.round(2).tolist()),
        after=tuple(after.round(2).tolist()),
    )


def _bars(
    found: Range,
    possible: Covered | None,
    weight: Floats,
    values: Floats,
    people: Ints | None,
    k: int,
) -> tuple[list[str], Floats, Floats]:
    """Names of bars, and their shares in the table and in what is published of it."""
    is_said = ~found.is_unsaid
    if not is_said.any():
        return [], np.empty(0), np.empty(0)
    if possible is None:
        ends = found.low[is_said].min(), found.high[is_said].max()
        cuts, names = _cuts(found.column.unit, *map(float, ends))
        # There are few cuts, so that this takes a third of the time of a search.
        bar_of = sum((values >= cut for cut in cuts), np.zeros(values.size, np.uint8))
        low = np.where(found.is_any, ends[0], found.low)
        high = np.where(found.is_any, ends[1], found.high)
        # A whole number or a day is one wide. Halved before subtracting: nothing overflows.
        length = high / 2 - low / 2 + bool((low == np.floor(low)).all()) / 2
        below = ((cut / 2 - low / 2) / np.maximum(length, TINY) for cut in cuts)
        after = np.diff([0.0, *((weight * np.clip(each, 0, 1)).sum() for each in below), 1.0])
    else:
        assert found.sets is not None
        # The most frequent category first.
        occurring, code = found.sets.occurring, values.astype(np.int64)
        order = np.argsort(-np.bincount(code)[occurring], kind="stable")
        rank = np.zeros(occurring[-1] + 1, np.int64)
        rank[occurring[order]] = np.minimum(np.arange(order.size), MOST_BARS - 1)
        bar_of = rank[code]
        after = np.bincount(rank[occurring], possible.masses(found.sets, weight))
        names = [(found.column.categories or ())[at] for at in occurring[order]]
    n_held = n_records = np.bincount(bar_of, minlength=after.size)
    if people is not None:
        # A person counts in the first of several bars.
        first = np.full(_top(people) + 1, after.size)
        np.minimum.at(first, people, bar_of)
        n_held = np.bincount(first, minlength=after.size)[: after.size]
    reached = np.cumsum(n_held).tolist()
    # Of categories, all that are too rare are in the last bar.
    begins, done, least = [0], 0, max(k, reached[-1] / 100)
    for i, n_people in enumerate(reached[:-1], 1):
        is_next = possible is None or i == begins[-1] + 1
        if is_next and min(n_people - done, reached[-1] - n_people) >= least:
            begins.append(i)
            done = n_people
    if possible is None and len(begins) > 1:
        names[0] = f"<{names[begins[1]][:-2]}"
    elif possible is not None and len(names) > begins[-1] + 1:
        names[begins[-1]] = f"… ({len(names) - begins[-1]:,})"
    shares = np.add.reduceat(n_records / values.size, begins), np.add.reduceat(after, begins)
    return [names[at] for at in begins], *shares


def _cuts(unit: Unit | None, low: float, high: float) -> tuple[Floats, list[str]]:
    """Round numbers, months or years that part a range into at most 12 bars, and their names."""
    if unit is not None:
        own = f"M8[{NUMPY_UNITS[unit]}]"
        ends = np.array([low, high]).astype(np.int64).astype(own).astype("M8[M]")
        # From the year 0, so that decades begin with a round number.
        first, last = (ends.astype(np.int64) + 1970 * 12).tolist()
        step = next((m for m in MONTHS if last // m - first // m < MOST_BARS), last + 1)
        months = np.arange(first // step + 1, last // step + 1) * step - 1970 * 12
        moments = months.astype("M8[M]")
        names = moments.astype("M8[M]" if step % 12 else "M8[Y]").astype(str).tolist()
        cuts = moments.astype(own).astype(np.float64)
    else:
        width = np.float64(high / (MOST_BARS - 1) - low / (MOST_BARS - 1))
        power = 10.0 ** np.floor(np.log10(width))
        step = power * next((n for n in (1, 2, 5) if n * power >= width), 10)
        first, last = np.floor(low / step), np.floor(high / step)
        # The numbers may be too large for it, or too close to each other.
        is_fine = max(abs(first), abs(last)) < EXACT
        names = [f"{n * step:.12g}" for n in np.arange(first + 1, last + 1)] if is_fine else []
        cuts = np.array(names, np.float64)
    return cuts, ["…", *(f"{name}.." for name in names)]


def diversity(members: ClassMembers, column: Attribute) -> Diversity:
    """How much the classes hide of one column."""
    shares = overall(column.codes, members.person_of_row)
    found = [*distributions(members, column.codes, shares)]
    share = [float(each.greatest_share().max()) for each in found]
    distance = [float(each.distance(is_ordered=column.is_ordered).max()) for each in found]
    is_counted = members.person_of_row is not None
    return Diversity(
        column=column.name,
        role=str(column.role),
        n_values=found[0].n_values,
        distinct_l=int(found[0].distinct().min()),
        entropy_l=min(float(each.entropy().min()) for each in found),
        greatest_share=share[0],
        greatest_share_of_persons=share[1] if is_counted else None,
        given_away=float((found[0].distinct() == 1)[members.class_of_row].mean()),
        closeness_t=distance[0],
        closeness_t_of_persons=distance[1] if is_counted else None,
        distance=ORDERED if column.is_ordered else EQUAL,
    )


def measure(
    members: ClassMembers,
    attributes: Sequence[Attribute],
    conditions: Conditions,
    joined: Joining,
    losses: Sequence[ColumnLoss],
    n_dropped: int = 0,
) -> Sheet:
    """Measure the sheet; `attributes` are the target, if any, and kept and sensitive columns.

    Of a quasi-identifier that is dropped NCP is 1.
    """
    sizes = members.sizes()
    unsent = [a for a in attributes if a.role != TableRole.TARGET]
    # The greatest share of one person is at least 1/size, and just that if each has one record.
    records, most = members.records(), members.most_of_one()
    risk = float((most / records).max())
    mean_risk = float((sizes * most / records).sum() / sizes.sum())
    sheet = Sheet(
        **{each.name: getattr(conditions, each.name) for each in fields(Conditions)},
        k=int(sizes.min()),
        n_records=len(members.class_of_row),
        n_classes=members.n_classes,
        average_class_size=float(sizes.mean()),
        largest_class=int(sizes.max()),
        class_sizes=SizeHistogram.of(sizes, conditions.k_agreed),
        diversity=tuple(diversity(members, a) for a in attributes if a.role != TableRole.KEPT),
        prosecutor_max=risk,
        prosecutor_mean=mean_risk,
        journalist_max=risk,
        journalist_mean=mean_risk,
        population=POPULATION,
        # Exact: there are fewer than 2^32 records.
        discernibility=int((sizes.astype(np.uint64) ** 2).sum()),
        ncp=(sum(loss.ncp for loss in losses) + n_dropped) / (len(losses) + n_dropped),
        joined=joined,
        losses=tuple(losses),
        singled_out=singled_out(members, unsent) if unsent else 0.0,
        singled_out_by={a.name: singled_out(members, [a]) for a in unsent},
    )
    return replace(sheet, warnings=sheet.measured_warnings)
