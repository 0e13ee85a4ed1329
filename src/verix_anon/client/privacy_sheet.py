"""The privacy sheet: what was measured on one release, in numbers and in words (spec §12).

`release` measures it, and `report` shows it. Both go by this one type, which is also the file. What
a release must reach, its gates, is held against the sheet.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from verix_anon.client.evidence import SizeHistogram
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.table.roles import Asked, Measure, Missing
from verix_anon.client.table.task import TableRole
from verix_anon.errors import GateError, TableError
from verix_anon.fields import Fields, counted, to_json
from verix_anon.files.store import path_text
from verix_anon.protocol.contract import Digest
from verix_anon.translation import share

FORMAT = "verix/sheet/2"
"""The format of a sheet as a JSON file."""
SLACK = 1e-9
"""How much rounding may add to a distance."""
LEFT = 1 / 3
"""The share of a column that should be left."""
FEW_CATEGORIES = 6
"""A cell of a column with this many categories or fewer is worth little unless it is exact."""
MOST_BARS = 12
LOSS_HEAD = ("column", "exact", "median width", "NCP", "")
NEARLY_ALL = 0.95
"""A value with more than this share of a class is as good as known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions that a release had to meet."""

    k_agreed: int
    enforced: Asked
    """What else every class had to hide, by column: l, cap, t."""
    counted_by: str
    """The person column, or `record`."""
    released_before: int | None
    """How often this table was released before; None if no ledger was asked."""
    missing: Mapping[str, int]
    """How many values of each quasi-identifier were missing; those without are not named."""
    missing_as: str
    """What was done with them: `mark` or `impute`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What it cost to meet the conditions, from the delivered leaves without their traps."""

    records: int
    """Records in classes of several leaves."""
    largest_class: int
    """Records of the largest such class, 0 if there is none."""
    ncp_before: float | None
    """NCP if each leaf was a class of its own, measured like the sheet's; None in old sheets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linking:
    """What is left of k for an intruder who knows all rows of a person, if they can be linked."""

    column: str
    """The published column that has one value for each person."""
    k: int
    """The fewest people who share a combination of classes: all classes of a person's rows."""
    below_k: float
    """The share of people whose combination fewer than the agreed k people have."""
    unique: float
    """The share of people whose combination no one else has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRisk:
    """What all releases of a series together tell about the people of one of them."""

    number: int
    time: str
    """Empty while it is not published yet."""
    people: int
    below: float
    """The share of people with fewer than l possible values of some column."""
    certain: float
    """The share of people with one possible value of some column."""
    least: int
    """The fewest values that are possible for somebody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """What all releases of a series tell together, by the deduction of spec §15."""

    releases: tuple[ReleaseRisk, ...]
    least_by: Mapping[str, int]
    """For each column, the fewest values that are still possible for any person."""
    changing: Mapping[str, int]
    """For each column, how many people have several values, so their records are not chained."""
    returning: int = 0
    """How many people of this table were published before."""
    withheld: int = 0
    """How many people of this table wait for a later release."""

    @property
    def below(self) -> float:
        """The share below l in the worst release."""
        return max(each.below for each in self.releases)

    def facts(self) -> dict[str, str]:
        """In words."""
        last = self.releases[-1]
        worst = ", ".join(f"{name} {n:,}" for name, n in self.least_by.items())
        found = {
            "over time": f"{share(self.below)} of the people of a release below l,"
            f" {share(max(each.certain for each in self.releases))} certain, over"
            f" {len(self.releases):,} release(s); fewest possible values: {worst}",
            "returning": f"{self.returning:,} people of this table were published before;"
            f" {self.withheld:,} wait, and {last.people:,} are published",
        }
        if self.changing:
            found["changing values"] = (
                ", ".join(f"{name} of {n:,} people" for name, n in self.changing.items())
                + "; these are not chained"
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """The common bins of one column."""

    width: str
    """Of numbers, dates such as `5y`, leading characters, or the level of a hierarchy."""
    spanning: float
    """Share of the records whose cell spans several bins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """What was left out of a release because it would have cost most to keep."""

    records: int
    people: int
    """Who lost at least one record."""
    moved: Mapping[str, float]
    """The total variation distance of each column's distribution to that of the whole table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """How much a class hides of one column: the worst class counts."""

    column: str
    role: str
    n_values: int
    distinct_l: int
    entropy_l: float
    closeness_t: float
    """The distance of a class's records to those of the table."""
    greatest_share: float
    """The share of a class's records that have the same value."""
    given_away: float
    """Share of the records in classes where all have the same value."""
    distance: str
    """`ordered`: earth mover's over ranks, for numbers and dates; `equal`: any two values
    are equally far, for categories."""
    closeness_t_of_persons: float | None = None
    """The distance by people, each spread evenly over the person's distinct values; None if each
    record is a person."""
    greatest_share_of_persons: float | None = None
    """The share of a class's people who have the same value at least once; likewise."""

    @property
    def worst_share(self) -> float:
        """The greater share, of records or of people: what a cap bounds."""
        return max(self.greatest_share, self.greatest_share_of_persons or 0.0)

    @property
    def worst_t(self) -> float:
        """The greater distance, by records or by people: what t bounds."""
        return max(self.closeness_t, self.closeness_t_of_persons or 0.0)

    @property
    def is_target(self) -> bool:
        """Whether it is the target's, or else a sensitive column's."""
        return self.role == TableRole.TARGET

    @property
    def shares(self) -> str:
        """The greatest shares in words."""
        return _of_both(f"{self.greatest_share:.1%}", self.greatest_share_of_persons, ".1%")

    @property
    def distances(self) -> str:
        """The distances in words."""
        return _of_both(f"{self.closeness_t:.2f}", self.closeness_t_of_persons, ".2f")

    def meets(self, measure: str, asked: float) -> tuple[bool, float]:
        """Whether every class is as asked for, and what the worst one reaches."""
        match Measure(measure):
            case Measure.L:
                return self.distinct_l >= asked, self.distinct_l
            case Measure.CAP:
                return self.worst_share <= asked, self.worst_share
            case Measure.T:
                return self.worst_t <= asked + SLACK, self.worst_t


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLoss:
    """What is left of one published quasi-identifier.

    Its bars are shares of the records that have a value, rounded to whole percents. Each bar has at
    least k people, and none begins or ends at somebody's value.
    """

    column: str
    exact: float
    """Share of the records whose cell says exactly what the record holds."""
    median_width: float
    """The median width of a cell, to two digits; of categories, how many it leaves possible."""
    unit: str
    """Of dates the largest that fits, such as `years`; `values` of categories, else empty."""
    n_categories: int
    """How many categories there are; 0 for numbers and dates."""
    ncp: float
    bars: tuple[str, ...] = ()
    """Where ranges of numbers or dates begin, or the most frequent categories and how many others
    there are; empty if there would be one bar."""
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    """Each bar's share of what is published, with each record spread evenly over its cell."""

    @property
    def is_little(self) -> bool:
        """Whether less than a third is left (spec §12)."""
        # Cells of one value that are not exact only say that some records lack a value.
        is_few = 0 < self.n_categories <= FEW_CATEGORIES and self.median_width > 1
        return self.ncp > 1 - LEFT or (is_few and self.exact < LEFT)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table for people, under `LOSS_HEAD`."""
        unit = "value" if (self.median_width, self.unit) == (1, "values") else self.unit
        width = f"{self.median_width:,g} {unit}".rstrip()
        left = "less than a third is left" if self.is_little else ""
        return self.column, share(self.exact), width, f"{self.ncp:.3f}", left


def losses_of(fields: Fields) -> tuple[ColumnLoss, ...]:
    """Read the losses of all columns; files from before they were measured have none."""
    each = fields.each("losses") if fields.has("losses") else ()
    found = tuple(one.record(ColumnLoss) for one in each)
    if any(not len(f.bars) == len(f.before) == len(f.after) <= MOST_BARS for f in found):
        raise fields.fail(f"{fields.where}: losses must have as many shares as bars")
    return found


def _of_both(of_records: str, of_persons: float | None, form: str) -> str:
    if of_persons is None:
        return of_records
    return f"{of_records} of the records and {of_persons:{form}} of the people"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet(Conditions):
    """What was enforced and measured on one release.

    Examples:
        >>> job = ("job/delivery", "job/manifest.verix", "job/verdict.json")
        >>> released = verix_anon.release(*job, table="people.csv")
        >>> released.sheet.prosecutor_max <= 1 / 5
        True
    """

    k: int
    """The people in the smallest class."""
    n_records: int
    n_classes: int
    average_class_size: float
    largest_class: int
    class_sizes: SizeHistogram | None
    """How many classes have which number of people; None in sheets from before this was kept."""
    diversity: tuple[Diversity, ...]
    prosecutor_max: float
    """The chance that a record picked for somebody known to be in the table is that person's: the
    greatest share that one person has of the records of a class."""
    prosecutor_mean: float
    """The same of the class in which a person lies, on average over people."""
    journalist_max: float
    """The same for somebody who may be in the table, under `population`."""
    journalist_mean: float
    population: str
    discernibility: int
    """The sum of the squared class sizes."""
    ncp: float
    joined: Joining
    singled_out: float
    """Share of the records whose kept and sensitive values no one else in their class has."""
    singled_out_by: Mapping[str, float]
    """The same for each such column alone."""
    losses: tuple[ColumnLoss, ...] = ()
    """What is left of each quasi-identifier; empty in sheets from before this was measured."""
    bins: Mapping[str, Bins] = field(default_factory=dict)
    """The common bins of each column that has them."""
    suppressed: Suppressed | None = None
    """What was left out; None if nothing was."""
    bound_owners: float | None = None
    """Share of the records with a number or date that no one else in the table has and that is
    printed as a bound of their class; None in sheets from before this was measured."""
    bound_owners_exact: float | None = None
    """The same if every bound was published as it is: not capped, rounded or replaced by a mean."""
    over_time: OverTime | None = None
    """What all releases of its series tell; None if it is not part of a series."""
    linked: Linking | None = None
    """How rows can be linked; None if nothing published tells which rows are of one person."""
    told_by_joining: float | None = None
    """A bound: no more of the records can be certain by which leaves were joined, although no
    value has more than 95 % of their class; None in sheets from before this was measured."""
    warnings: tuple[str, ...] = ()
    """What the owner should know before publishing."""
    root: Digest | None = None
    """The root of the delivery that was released; None if nothing was released."""
    overridden: tuple[str, ...] = ()
    """The objections that `force` overrode."""

    @property
    def has_target(self) -> bool:
        """Whether the table has a target."""
        return any(d.is_target for d in self.diversity)

    @property
    def same_target(self) -> float:
        """Share of the records in classes where all share the target; 0 without a target."""
        return sum(d.given_away for d in self.diversity if d.is_target)

    @property
    def unmet(self) -> tuple[str, ...]:
        """The conditions that do not hold for what is published."""
        found = []
        for d in self.diversity:
            for measure, asked in self.enforced.get(d.column, {}).items():
                is_met, reached = d.meets(measure, asked)
                if not is_met:
                    found.append(
                        f"{measure} of column {d.column!r} is {reached:.3g}, not {asked:g}"
                    )
        return tuple(found)

    @property
    def giveaways(self) -> tuple[str, ...]:
        """The columns that some classes give away, each with the share and what prevents it."""
        return _worst_first(self._giveaways())

    def _giveaways(self) -> Iterator[tuple[float, str]]:
        for d in self.diversity:
            if d.given_away:
                what = "the target" if d.is_target else f"column {d.column!r}"
                asked = "2" if d.is_target else shlex.quote(f"{d.column}=2")
                warning = (
                    f"{share(d.given_away)} of the records are in classes with one single value of"
                    f" {what}. Anyone who finds a person's class learns the value. To prevent it,"
                    f" release with --l {asked}."
                )
                yield d.given_away, warning

    @property
    def measured_warnings(self) -> tuple[str, ...]:
        """The warnings that follow from what was measured, each with a remedy, the worst first."""
        found = [*self._giveaways()]

        def warn(weight: float, *sentences: str) -> None:
            found.append((weight, " ".join(sentences)))

        if self.released_before:
            warn(
                2.0,
                f"This table was released {counted(self.released_before, 'time')} before.",
                "Somebody who compares two releases can single people out.",
                "Publish only one of them.",
            )
        if self.singled_out:
            warn(self.singled_out, self._singled_out())
        if self.prosecutor_max * self.k_agreed > 1 + SLACK:
            most = f"{self.prosecutor_max:.1%} of the records of a class"
            warn(
                self.prosecutor_max,
                f"One person has {most}, more than 1 in k = {self.k_agreed:,}.",
                "A record picked from this class is that person's with this chance.",
                "Keep fewer records of each person, or prepare with a greater k.",
            )
        if (linked := self.linked) is not None and linked.below_k:
            few = f"all their classes with fewer than {self.k_agreed:,} people"
            warn(
                linked.below_k,
                f"Column {linked.column!r} links the rows of each person.",
                f"k = {self.k:,} holds for an intruder who knows one row of a person.",
                f"Against one who knows all of them, {share(linked.below_k)} of the people share"
                f" {few}, and {share(linked.unique)} with no one.",
                "To prevent it, release without this column.",
            )
        for column, exact, width, ncp, left in (e.cells for e in self.losses if e.is_little):
            finer = shlex.quote(f"{column}=fine")
            warn(
                0.0,
                f"Column {column!r}: {left}.",
                f"It is exact in {exact} of the rows, its median width is {width}, its NCP {ncp}.",
                f"To keep more of it, prepare with --priority {finer}, a smaller k or fewer"
                " quasi-identifiers.",
            )
        if self.missing and self.missing_as == Missing.IMPUTE:
            n_missing = counted(sum(self.missing.values()), "missing value")
            warn(
                0.0,
                f"After imputing {n_missing}, the table no longer shows where values were missing.",
                "To have it said in the cells, prepare with missing = 'mark'.",
            )
        return _worst_first(found)

    def _singled_out(self) -> str:
        worst = max(self.singled_out_by, key=lambda name: self.singled_out_by[name])
        binned, dropped = shlex.quote(f"{worst}=auto"), shlex.quote(worst)
        return (
            f"{share(self.singled_out)} of the records are singled out: no one else in their class"
            " has the same values of the kept and sensitive columns. The most telling column is"
            f" {worst!r} ({share(self.singled_out_by[worst])} by itself). To prevent it, release"
            f" with --bins {binned}, which makes it coarser, or with --drop {dropped}, which leaves"
            " it out."
        )

    def asked(self, column: str) -> str:
        """What was enforced of a column, such as `l 2, cap 0.75`; empty if nothing was."""
        return ", ".join(f"{m} {value:g}" for m, value in self.enforced.get(column, {}).items())

    def facts(self) -> dict[str, str]:
        """The sheet in words."""
        found = {
            "enforced": "; ".join(
                [f"k {self.k_agreed:,}", *(f"{name}: {self.asked(name)}" for name in self.enforced)]
            ),
            "k reached": f"{self.k:,} (agreed {self.k_agreed:,}), counted by {self.counted_by}",
            "classes": f"{self.n_classes:,} of {self.n_records:,} records, on average"
            f" {self.average_class_size:.1f}, the largest {self.largest_class:,}",
        }
        if (linked := self.linked) is not None:
            found["linked rows"] = (
                f"by {linked.column}; over all rows of a person k is {linked.k:,}, below"
                f" {self.k_agreed:,} for {share(linked.below_k)} of the people, and 1 for"
                f" {share(linked.unique)}"
            )
        if self.over_time is not None:
            found |= self.over_time.facts()
        found["missing values"] = "none in quasi-identifiers"
        if self.missing:
            counts = ", ".join(f"{name} {n:,}" for name, n in self.missing.items())
            is_marked = self.missing_as == Missing.MARK
            done = "every cell of their class says so" if is_marked else "imputed"
            found["missing values"] = f"{counts}; {done}"
        for d in self.diversity:
            found[f"{d.column} ({d.role})"] = (
                f"distinct l {d.distinct_l:,}, entropy l {d.entropy_l:.2f}, one value at most"
                f" {d.shares}, t-closeness {d.distances} ({d.distance} distance)"
            )
        found["risk of re-identification"] = (
            f"prosecutor {self.prosecutor_max:.3f} at most, {self.prosecutor_mean:.3f} on average;"
            f" journalist {self.journalist_max:.3f} and {self.journalist_mean:.3f}"
        )
        if self.bound_owners is not None and self.bound_owners_exact is not None:
            found["owners of bounds"] = (
                f"{share(self.bound_owners)} of the records alone have a value that is printed as"
                f" a bound of their class; {share(self.bound_owners_exact)} if no bound was capped"
                " or rounded"
            )
        if self.bins:
            found["common bins"] = ", ".join(
                f"{name} {each.width} ({share(each.spanning)} of the records span several)"
                for name, each in self.bins.items()
            )
        if (left_out := self.suppressed) is not None:
            moved = ", ".join(f"{name} {by:.3f}" for name, by in left_out.moved.items())
            found["suppressed"] = (
                f"{left_out.records:,} records of {left_out.people:,} people; distributions moved"
                f" by {moved}"
            )
        found["information lost"] = f"NCP {self.ncp:.3f}, discernibility {self.discernibility:,}"
        joined, before = self.joined, self.joined.ncp_before
        found["joined"] = (
            f"{joined.records:,} records in classes of several leaves, the largest"
            f" {joined.largest_class:,}"
            + ("" if before is None else f"; NCP would be {before:.3f} without joining")
        )
        if self.enforced and self.told_by_joining is not None:
            found["revealed by joining"] = (
                f"at most {self.told_by_joining:.2%} of the records are certain to somebody who"
                " knows quasi-identifiers and tree, though their class shows"
                f" {NEARLY_ALL:.0%} or less"
            )
        return found

    def __repr__(self) -> str:
        return (
            f"<Sheet: k {self.k:,} (agreed {self.k_agreed:,}), {self.n_classes:,} classes of"
            f" {self.n_records:,} records, {counted(len(self.warnings), 'warning')}>"
        )

    def _repr_html_(self) -> str:
        losses = as_table((each.cells for each in self.losses), LOSS_HEAD) if self.losses else ""
        return as_table(self.facts().items()) + losses + as_list(self.warnings)

    def to_json(self) -> str:
        """The sheet as JSON."""
        sizes, root = self.class_sizes, self.root
        return to_json(
            {
                "format": FORMAT,
                **asdict(self),
                "class_sizes": None if sizes is None else sizes.to_json(),
                "root": None if root is None else root.hex(),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Sheet":
        """Read a sheet back.

        Raises:
            TableError: This is not a privacy sheet, or it is damaged.
        """
        fields = _parsed(text)
        enforced, joined = fields.inner("enforced"), fields.inner("joined")
        # A sheet with `ncp_after` measured both in another way, so `ncp_before` is left out.
        others: dict[str, Any] = {"ncp_before": None} if joined.has("ncp_after") else {}
        # What is not named here is read by its type.
        found = fields.record(
            cls,
            optional=("bins",),
            enforced={name: _asked(enforced.inner(name)) for name in enforced.values},
            class_sizes=SizeHistogram.from_json(fields.inner("class_sizes"))
            if fields.has("class_sizes")
            else None,
            discernibility=fields.whole("discernibility", range(2**64)),
            joined=joined.record(Joining, **others),
            losses=losses_of(fields),
        )
        over_time = found.over_time
        if over_time is not None and not (over_time.releases and over_time.least_by):
            raise fields.fail("the privacy sheet: over_time lacks a release or a column")
        return found

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Sheet":
        """Read the file that `release` wrote.

        Raises:
            TableError: There is none, this is not a privacy sheet, or it is damaged.
        """
        try:
            text = Path(path_text(path)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise TableError(f"the privacy sheet {path} cannot be read") from None
        return cls.from_json(text)


def _parsed(text: str) -> Fields:
    try:
        fields = Fields.parse(text, "the privacy sheet", TableError)
        fields.expect("format", FORMAT)
    except TableError as error:
        raise TableError(
            f"this is not a privacy sheet ({error}); write one with"
            " verix-anon release --privacy-sheet FILE, or print it with --json"
        ) from None
    return fields


def _asked(fields: Fields) -> dict[str, float]:
    fields.only((), optional=tuple(Measure))
    return fields.all_numbers()


def _worst_first(found: Iterable[tuple[float, str]]) -> tuple[str, ...]:
    return tuple(text for _, text in sorted(found, key=lambda each: -each[0]))


Reached = Callable[[Sheet], float]
OVER_TIME_L = "over-time-l"

AT_LEAST: Mapping[str, Reached] = {
    "k": lambda sheet: sheet.k,
    "linked-k": lambda sheet: sheet.k if sheet.linked is None else sheet.linked.k,
    "l": lambda sheet: min(d.distinct_l for d in sheet.diversity),
    OVER_TIME_L: lambda sheet: (
        0 if sheet.over_time is None else min(sheet.over_time.least_by.values())
    ),
}
AT_MOST: Mapping[str, Reached] = {
    "cap": lambda sheet: max(d.worst_share for d in sheet.diversity),
    "t": lambda sheet: max(d.worst_t for d in sheet.diversity),
    "risk": lambda sheet: sheet.prosecutor_max,
    "singled-out": lambda sheet: sheet.singled_out,
    "bound-owners": lambda sheet: 1.0 if sheet.bound_owners is None else sheet.bound_owners,
    "ncp": lambda sheet: sheet.ncp,
}
GATES = (*AT_LEAST, *AT_MOST)
"""`l`, `cap` and `t` are of the target and of every sensitive column: the worst counts."""
HIDING = frozenset(Measure)


def check_gate_names(required: Mapping[str, float]) -> None:
    """Raise TableError unless each is a gate."""
    for name in required:
        if name not in GATES:
            raise TableError(f"there is no gate {name!r}; the gates are {', '.join(GATES)}")


def missed_gates(required: Mapping[str, float], sheet: Sheet) -> tuple[str, ...]:
    """Say what the release does not reach, each in a few words."""
    found = []
    for name, value in required.items():
        if name in HIDING and not sheet.diversity:
            raise TableError(f"there is no target or sensitive column to require {name} of")
        if name == OVER_TIME_L and sheet.over_time is None:
            raise TableError(f"{name} is of a series: release with series (--series FOLDER)")
        if name in AT_LEAST:
            reached, wanted = AT_LEAST[name](sheet), f"at least {value:g}"
            is_met = reached >= value
        else:
            reached, wanted = AT_MOST[name](sheet), f"at most {value:g}"
            is_met = reached <= value + SLACK
        if not is_met:
            found.append(f"{name} is {reached:.3g}, not {wanted}")
    return tuple(found)


def gate_error(found: Sequence[str]) -> GateError:
    """The error for what is not reached."""
    return GateError(f"nothing is published: {'; '.join(found)}")


def check_gates(required: Mapping[str, float], sheet: Sheet) -> None:
    """Raise GateError unless the release reaches all of it."""
    if found := missed_gates(required, sheet):
        raise gate_error(found)
