"""Measure what a release still tells about the people in it, for its privacy sheet (spec §12).

Everything is measured on the classes as published: records that look the same. Where a person
column is named, k counts people: one patient with 12 visits is one person. How a column is
distributed in a class is then measured by records and by people, for neither bounds the other:
one person may have most of the records, and most people a value that few of the records have.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Floats, Ids, Ints
from verix_anon.client.evidence import SizeHistogram
from verix_anon.client.privacy_sheet import Conditions, Diversity, Joining, Sheet
from verix_anon.client.table.digest import plain_column
from verix_anon.client.table.task import TableRole

ORDERED, EQUAL = "ordered", "equal"
POPULATION = "the table itself: the intruder knows no larger population"
UNORDERED = (pa.types.is_null, pa.types.is_boolean, pa.types.is_large_string)
PARTS = 720_720 * 1024
"""The parts of a person that are spread over the person's values. They are counted as whole
numbers, so that no sum depends on the order of rows. Up to 16 values divide them evenly, and
those of 2^31 people add up to less than 2^63."""


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


def singled_out(members: ClassMembers, attributes: Sequence[Attribute]) -> float:
    """The share of records whose values of these columns nobody else in their class has."""
    groups = members.class_of_row
    for column in attributes:
        groups = dense(_pair(groups, column.codes)[0])
    is_alone = members.people(groups, _top(groups) + 1) == 1
    return float(is_alone[groups].mean())


@dataclass(frozen=True, slots=True, eq=False)
class ClassSpans:
    """What is published of each quasi-identifier: (n_classes, n_quasi), and the domains."""

    low: Floats
    high: Floats
    domain_low: Floats
    domain_high: Floats


def widths(spans: ClassSpans) -> Floats:
    """How much each class leaves possible of each column, as a share of the column's range."""
    # Halved before subtracting, so that nothing overflows.
    domain = spans.domain_high / 2 - spans.domain_low / 2
    low = np.clip(spans.low, spans.domain_low, spans.domain_high)
    high = np.clip(spans.high, spans.domain_low, spans.domain_high)
    found: Floats = (high / 2 - low / 2) / np.where(domain > 0, domain, np.inf)
    return found


def ncp(spans: ClassSpans, records: Ints) -> float:
    """Normalised certainty penalty: the mean width of a published value, 0 exact, 1 nothing.

    Each width is a share of its column's range; a category's is its distance in the order
    of the categories. `records` is how many each class holds.
    """
    return weighted(widths(spans).mean(axis=1), records)


def weighted(width: Floats, records: Ints) -> float:
    """The mean over all records of what their classes have."""
    return float(records @ width / records.sum())


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
    ncp: float,
) -> Sheet:
    """Measure the sheet; `attributes` are the target, if any, and kept and sensitive columns."""
    sizes = members.sizes()
    unsent = [a for a in attributes if a.role != TableRole.TARGET]
    # The greatest share of one person is at least 1/size, and just that if each has one record.
    records, most = members.records(), members.most_of_one()
    risk = float((most / records).max())
    mean_risk = float((sizes * most / records).sum() / sizes.sum())
    sheet = Sheet(
        k_agreed=conditions.k_agreed,
        enforced=conditions.enforced,
        counted_by=conditions.counted_by,
        released_before=conditions.released_before,
        missing=conditions.missing,
        missing_as=conditions.missing_as,
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
        ncp=ncp,
        joined=joined,
        singled_out=singled_out(members, unsent) if unsent else 0.0,
        singled_out_by={a.name: singled_out(members, [a]) for a in unsent},
    )
    return replace(sheet, warnings=sheet.measured_warnings)
